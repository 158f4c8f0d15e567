"""Grants of principals and limits of requests."""
