"""The calls of a client, the same over every transport."""
