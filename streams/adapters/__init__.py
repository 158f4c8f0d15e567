"""Implementations of the ports: models, indexes, Kafka. Errors of vendors are translated here."""
