"""Kafka: what Faust leaves to us, and the client's connection."""
