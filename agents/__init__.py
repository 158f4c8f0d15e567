"""Agents: all decisions about memories. No Kafka, network or files: the outside is reached through `ports` alone."""
