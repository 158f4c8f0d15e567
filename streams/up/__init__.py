"""`streams up`: a supervisor of the broker, the workers and the gateway."""
