"""Kafka: producers, topics and offsets beside Faust's own, and the client's connection."""
