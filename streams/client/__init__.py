"""The Python client: `MemoryClient` over Kafka. Knows schemas and topics, nothing of the worker."""
