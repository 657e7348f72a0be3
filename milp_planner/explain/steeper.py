"""More or less skew: each row's share of the lookups to a power, and the shares made whole again.

For Zipf's law that multiplies the exponent; the other statistics are changed in the same way.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from milp_planner.costs.units import FloatArray
from milp_planner.inputs.access import (
    Access,
    Histogram,
    MissRate,
    Sample,
    TopIds,
    Unknown,
    Zipf,
)

_STEEPEST = 10.0
"""The largest Zipf exponent a model file may give."""


def is_skewed(access: Access) -> bool:
    """Whether any statistics say that rows differ, so that the skew can be changed."""
    if isinstance(access, Zipf):
        return access.alpha > 0
    return not isinstance(access, Unknown) or access.measured_skew is not None


def steeper(access: Access, rows: int, power: float) -> Access:
    """Access statistics with every row's share of the lookups raised to a power.

    A miss-rate curve is read as that of an ideal cache, whose rows between two points share what
    the miss rate falls by; misses that remain at its end are first accesses and stay. A measured
    busiest rank's excess over the mean is multiplied. A measured unique fraction stays.

    Parameters
    ----------
    access : Access
    rows : int
        Of the table.
    power : float
        Above 0: 1 changes nothing, more is steeper.
    """
    if power == 1.0:
        return access
    if (measured := access.measured_skew) is not None:
        load = 1 + (measured.max_over_mean - 1) * power
        measured = measured.model_copy(update={"max_over_mean": load})
        access = access.model_copy(update={"measured_skew": measured})
    if isinstance(access, Zipf):
        return access.model_copy(update={"alpha": min(_STEEPEST, access.alpha * power)})
    if isinstance(access, Histogram):
        counts, mass = np.array(access.bins).T
        bins = zip(counts.tolist(), _powered(counts, mass, power).tolist(), strict=True)
        return access.model_copy(update={"bins": tuple(bins)})
    if isinstance(access, TopIds):
        return _top_ids(access, rows, power)
    if isinstance(access, MissRate):
        return _miss_rate(access, power)
    if isinstance(access, Unknown | Sample):  # a sample was read into a histogram
        return access
    assert_never(access)


def _top_ids(access: TopIds, rows: int, power: float) -> TopIds:
    shares = np.array([hot.share for hot in access.ids])
    counts = np.append(np.ones(len(shares)), max(rows - len(shares), 1))
    mass = np.append(shares, max(1.0 - float(shares.sum()), 0.0))
    made = zip(access.ids, _powered(counts, mass, power).tolist(), strict=False)
    return access.model_copy(
        update={"ids": tuple(hot.model_copy(update={"share": share}) for hot, share in made)}
    )


def _miss_rate(access: MissRate, power: float) -> MissRate:
    points = access.points if access.points[0][0] == 0 else ((0.0, 1.0), *access.points)
    ratio, miss = np.array(points).T
    hits = _powered(np.diff(ratio), -np.diff(miss), power) * (miss[0] - miss[-1])
    changed = np.clip(miss[0] - np.cumsum(hits), miss[-1], miss[0])
    made = [points[0], *zip(ratio[1:].tolist(), changed.tolist(), strict=True)]
    return access.model_copy(update={"points": tuple(made[-len(access.points) :])})


def _powered(counts: FloatArray, mass: FloatArray, power: float) -> FloatArray:
    """Share of the lookups of each class of so many rows, which had ``mass`` before; sums to 1."""
    rows = np.maximum(counts, np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        logs = np.where(mass > 0, np.log(rows) + power * (np.log(mass) - np.log(rows)), -np.inf)
    if not (mass > 0).any():
        return mass
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
