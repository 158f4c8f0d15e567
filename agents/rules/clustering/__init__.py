"""Clustering and nearest neighbours over unit vectors, in NumPy."""
