"""Protocols that adapters and fakes implement, and the types that cross them."""
