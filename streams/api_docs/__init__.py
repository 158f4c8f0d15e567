"""AsyncAPI and JSON Schema documents of the wire, made from the models."""
