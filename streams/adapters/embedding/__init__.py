"""Texts to vectors: MiniLM exported from its published weights, and any ONNX model through fastembed."""
