"""Metrics, liveness and logs of a worker."""
