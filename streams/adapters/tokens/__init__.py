"""Tokenizers that count."""
