"""Steps: each agent's reads, writes and publications."""
