"""Rows of length 1, so that a product of two is their cosine. Pure."""

import numpy as np

from schemas.vectors import Matrix


def normalise_rows(rows: Matrix) -> Matrix:
    """Each row as long as 1; one without any length stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths), np.float32)
