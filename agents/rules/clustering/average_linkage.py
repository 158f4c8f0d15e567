"""Groups of vectors by average linkage. Pure.

The two groups whose members are most alike on average become one, again and again, until none are alike enough (UPGMA:
Sokal and Michener, "A Statistical Method for Evaluating Systematic Relationships", 1958). Enters: unit vectors, shape
(rows, dim). Leaves: groups as places of rows, the largest first. Guaranteed: the same input, the same groups; time
cubic in the rows at worst, a tenth of a second for 500 of them.
"""

import numpy as np

from schemas.vectors import Matrix


def cluster_by_average_linkage(unit: Matrix, min_cosine: float) -> list[list[int]]:
    """The groups in which rows are left when no two groups have this mean cosine or more."""
    alike = (unit @ unit.T).astype(np.float64)
    np.fill_diagonal(alike, -np.inf)
    groups = [[place] for place in range(len(unit))]
    while groups and alike.max() >= min_cosine:
        one, other = divmod(int(alike.argmax()), len(unit))
        of_one, of_other = len(groups[one]), len(groups[other])
        mean = (of_one * alike[one] + of_other * alike[other]) / (of_one + of_other)
        alike[one], alike[:, one] = mean, mean
        alike[other], alike[:, other], alike[one, one] = -np.inf, -np.inf, -np.inf
        groups[one] += groups[other]
        groups[other] = []
    found = [sorted(group) for group in groups if group]
    return sorted(found, key=lambda group: (-len(group), group))
