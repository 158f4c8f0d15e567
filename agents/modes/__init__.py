"""Modes as vector spaces, and suggestions of new modes."""
