"""Ids as published: Criteo's one-hot ids by Zipf's law, each expanded to the ids of a bag."""

from typing import Any

import numpy as np

CLASSES = 40
"""Classes of equal popularity, wider for less popular ids."""


def access(alpha: float, distinct: int, rows: int, ids: float) -> dict[str, Any]:
    """The access statistics of a table, as in a model file.

    Parameters
    ----------
    alpha : float
        Zipf exponent of the one-hot ids.
    distinct : int
        Distinct one-hot ids.
    rows : int
        Rows of the table.
    ids : float
        Ids of a bag. Every one-hot id stands for so many rows of equal popularity, or for fewer
        where the table has not so many.
    """
    weights = np.arange(1, distinct + 1, dtype=np.float64) ** -alpha
    edges = np.unique(np.geomspace(1, distinct + 1, CLASSES + 1).round().astype(int)) - 1
    lookups = np.add.reduceat(weights, edges[:-1]) / weights.sum()
    each = min(ids, rows / distinct)
    shares = np.diff(edges) * each / rows
    bins = [[round(float(r), 12), float(n)] for r, n in zip(shares, lookups, strict=True)]
    if (rest := 1 - float(shares.sum())) > 0:
        bins.append([rest, 0.0])
    return {"kind": "histogram", "bins": bins}
