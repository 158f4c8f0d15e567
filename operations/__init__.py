"""What an operator runs over a whole deployment: jobs, verification, migration, backup and restore."""
