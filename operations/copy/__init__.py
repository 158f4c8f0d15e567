"""Copying the logs of a deployment into another one: sources, order, target."""
