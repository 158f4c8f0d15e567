"""The doors of the service: HTTP, and what is mounted beside it. Knows the client and the schemas alone."""
