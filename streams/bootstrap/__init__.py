"""Builds a worker from the settings: adapters, agents, checks at startup."""
