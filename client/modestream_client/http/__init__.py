"""The client over the gateway: records of the wire contract as HTTP requests, and answers as replies."""
