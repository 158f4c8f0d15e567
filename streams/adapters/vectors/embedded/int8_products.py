"""Products of 8-bit integers, by the vector instructions of the processor."""

import numpy as np
import simsimd
from numpy.typing import NDArray


def int8_products(rows: NDArray[np.int8], question: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the dot product of each row, at least one, with the question: exact."""
    products: NDArray[np.float32] = np.asarray(simsimd.cdist(question[np.newaxis], rows, metric="dot"), np.float32)[0]
    return products
