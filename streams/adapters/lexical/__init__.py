"""The lexical index on SQLite, one file a partition."""
