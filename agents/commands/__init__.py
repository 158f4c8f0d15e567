"""Command handlers, request admission, health."""
