"""Ruling options out: the bare rule, and a sum of rows (docs/proof.md)."""

from __future__ import annotations

import numpy as np

from formulations.proof.rows import Rows
from formulations.proof.weights import BigArray

Mask = np.ndarray
#: Above every sum of floors: those stay below 2^62.
_ABSENT = 2**62


def empty_table(rows: Rows, keep: Mask) -> bool:
    """Whether some table has no option left."""
    if not rows.instance.num_tables:
        return False
    return not np.logical_or.reduceat(keep, rows.instance.table_options[:-1]).all()


def bare(rows: Rows, keep: Mask, limit: int | None) -> Mask:
    """The bare rule until it removes nothing, or a table is empty."""
    instance, floor = rows.instance, rows.measures.floor
    if not instance.num_tables or not floor.shape[1]:
        return keep
    costs, start = len(rows.measures.costs), instance.table_options[:-1]
    peak = floor + rows.measures.excess
    while not empty_table(rows, keep):
        least = np.minimum.reduceat(np.where(keep[:, None], floor, _ABSENT), start)
        alone = peak + (least.sum(axis=0) - least)[instance.table_of]
        fits = (alone[:, costs:] <= rows.measures.most[costs:]).all(axis=1)
        if limit is not None and costs:
            fits &= alone[:, :costs].sum(axis=1) <= limit
        if fits[keep].all():
            break
        keep = keep & fits
    return keep


def swept(rows: Rows, keep: Mask, prices: BigArray, right: int) -> tuple[Mask, int | float]:
    """Options that a sum of rows leaves, and the least left-hand side (inf: no choice).

    Parameters
    ----------
    rows : Rows
    keep : bool array [options]
    prices : object array [options]
        inf: the option has no place.
    right : int
        The right-hand side.
    """
    forced, total = forced_sums(rows, keep, prices)
    return keep & (forced <= right).astype(bool), total


def forced_sums(rows: Rows, keep: Mask, prices: BigArray) -> tuple[BigArray, int | float]:
    """The least left-hand side with each option in its table's place, and the least of all.

    Parameters as :func:`swept`; inf for options not kept, and where there is no choice.
    """
    instance, inf = rows.instance, float("inf")
    if not instance.num_tables:
        return prices, 0
    kept: BigArray = np.where(keep, prices, inf)
    least = np.minimum.reduceat(kept, instance.table_options[:-1])
    total = least.sum()
    if total == inf:
        return np.full(len(prices), inf, dtype=object), inf
    return kept + (total - least)[instance.table_of], int(total)
