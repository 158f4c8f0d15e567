"""The pages, one module each: requests to the service, and the data of the template."""
