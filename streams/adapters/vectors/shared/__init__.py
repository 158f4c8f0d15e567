"""What both vector indexes share: payloads, vectors, checks."""
