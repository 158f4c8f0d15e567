"""Kafka's rules of the wire contract: partitions, relocated records, reply addresses, dead letters. Pure."""
