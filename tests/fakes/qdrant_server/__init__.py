"""A server that speaks Qdrant's gRPC over the embedded engine: for tests and faults, where no Qdrant is at hand.

It is no Qdrant: one thread, no optimiser, one shard a collection, and only the calls that the adapter makes. What it
takes in time says nothing about Qdrant.
"""
