"""The pages, a module each: what is asked of the service, and what a template gets."""
