"""Unit-length rows, so that a dot product is a cosine. Pure."""

import numpy as np

from schemas.models.vectors import Matrix


def normalise_rows(rows: Matrix) -> Matrix:
    """Scale each row to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths), np.float32)
