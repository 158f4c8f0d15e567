"""AsyncAPI and JSON Schema documents of the wire contract, generated from the models."""
