"""Operator commands over a whole deployment: jobs, verification, migration, backup and restore."""
