"""Kafka: producers, topics and offsets apart from Faust's own, and the client's connection."""
