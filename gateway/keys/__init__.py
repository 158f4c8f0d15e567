"""Keys of callers: a file of digests, and the principals and grants that they stand for."""
