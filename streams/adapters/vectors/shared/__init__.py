"""Payloads, vectors and checks that both vector indexes share."""
