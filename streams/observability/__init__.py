"""Metrics, liveness, logs and status of a worker."""
