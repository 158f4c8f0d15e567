"""Kafka without Faust: producers, topics and offsets, and the client's connection."""
