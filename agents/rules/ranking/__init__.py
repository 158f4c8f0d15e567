"""Ranking: features, the linear models over them, rank fusion across vector spaces, explanation."""
