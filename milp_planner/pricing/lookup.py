"""Time a rank spends reading rows and writing outputs, and time to fill a cache ahead.

Everything is float64 seconds over arrays of shards; bandwidths are bytes per second.
"""

from __future__ import annotations

import numpy as np

from milp_planner.pricing.profile import EfficiencyCurve, Kernel, Profile
from milp_planner.pricing.units import BoolArray, FloatArray, Numbers


def efficiency(curve: EfficiencyCurve, argument: FloatArray) -> FloatArray:
    """x_eff of a tiered table: straight lines between the curve's points, level outside.

    Parameters
    ----------
    curve : EfficiencyCurve
    argument : float array
        Whatever the curve is given over.
    """
    points = np.array(curve.points, dtype=np.float64)
    return np.interp(argument, points[:, 0], points[:, 1])


def tiered_bandwidth(profile: Profile, x_eff: FloatArray) -> FloatArray:
    """Bandwidth of a table that lives in two tiers: x_eff · HBM + (1 − x_eff) · host link.

    References
    ----------
    TorchRec 1.8.0, ``planner/constants.py``; alibaba/TorchEasyRec, ``tzrec/utils/plan_util.py``.
    """
    return x_eff * profile.hbm + (1.0 - x_eff) * profile.host_link


def narrow_penalty(columns: Numbers, kernel: Kernel) -> FloatArray:
    """Factor by which rows of few columns waste a thread block (TorchRec: 1.15, 1.75)."""
    limits = np.array([limit for limit, _ in kernel.narrow_penalties])
    factors = np.array([*(factor for _, factor in kernel.narrow_penalties), 1.0])
    return factors[np.searchsorted(limits, columns, side="right")]


def forward_seconds(
    ids: FloatArray,
    output_bytes: FloatArray,
    row_bytes: Numbers,
    weighted: BoolArray,
    bandwidth: FloatArray,
) -> FloatArray:
    """Forward lookup of a shard: (input read + rows read + output written) / bandwidth.

    Parameters
    ----------
    ids : float array
        Ids the shard receives in a step; 8 bytes each, twice that with weights.
    output_bytes : float array
        Bytes it writes.
    row_bytes : float array
        Bytes of one row as read.
    weighted : bool array
    bandwidth : float array

    References
    ----------
    TorchRec 1.8.0, ``planner/estimator`` (forward compute); dynamicemb shards the same in
    TorchEasyRec.
    """
    read = np.ceil(ids * 8) * np.where(weighted, 2, 1)
    return (read + ids * row_bytes + output_bytes) / bandwidth


def backward_seconds(forward: FloatArray, weighted: BoolArray, kernel: Kernel) -> FloatArray:
    """Backward lookup: 2 · forward, and 1.1 · forward more for the gradient of the weights.

    References
    ----------
    TorchRec 1.8.0, ``planner/constants.py`` (backward and weighted-kernel multipliers).
    """
    extra = np.where(weighted, kernel.weighted_multiple, 0.0)
    return forward * (kernel.backward_multiple + extra)


def prefetch_seconds(misses: FloatArray, row_bytes: Numbers, profile: Profile) -> FloatArray:
    """Fetching a step's missing rows over the host link: misses · row / link.

    Parameters
    ----------
    misses : float array
        Distinct rows of the step that are not in the cache, on this shard.
    row_bytes : float array

    References
    ----------
    TorchRec 1.8.0, ``planner/estimator`` (prefetch compute).
    """
    return misses * row_bytes / profile.host_link
