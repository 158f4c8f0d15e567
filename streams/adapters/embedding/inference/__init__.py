"""Runs a model: tokens in, pooled and token vectors out."""
