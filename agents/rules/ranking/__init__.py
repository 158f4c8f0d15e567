"""Ranking: features of each memory, their weights, rank fusion, explanation."""
