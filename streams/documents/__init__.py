"""What the wire looks like, for programs to read: JSON Schemas and an AsyncAPI document, made of models and wiring."""
