"""Own steps of a deployment."""
