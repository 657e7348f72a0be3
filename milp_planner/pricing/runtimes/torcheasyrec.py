"""The rules of TorchEasyRec's planner for dynamicemb tables, taken literally: bytes and speeds.

For comparison only (``storage_model`` and ``cost_model`` ``torcheasyrec``): given access
statistics, they ignore the path cost that a tiered lookup has even if every row is in HBM.

References
----------
alibaba/TorchEasyRec, ``tzrec/utils/plan_util.py`` and ``dynamicemb_util.py``, pull request 508.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milp_planner.inputs.model import CostModel
from milp_planner.pricing.storage import ALIGN, BUCKET_BYTES, SLOT_BYTES, TierBytes
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, ceil_div, round_up

if TYPE_CHECKING:
    from milp_planner.pricing.job import OptionColumns

DIVISOR = 10.0
"""Divides the bandwidth of every dynamicemb lookup, at every ratio."""
CACHING, HYBRID, SLOPE = 0.28, 0.11, 0.01
"""x_eff below ratio 1 is one of the first two, plus 0.01 times the ratio."""


MULTIPLE = 10.0
"""In the first commit, of the ratio: the share of CACHING's hits."""


def fitted(ratio: FloatArray, caching: BoolArray, model: CostModel = "torcheasyrec") -> FloatArray:
    """x_eff without statistics: 0.28 + 0.01 x (CACHING) or 0.11 + 0.01 x, and 1 at ratio 1.

    In the pull request's first commit (``torcheasyrec_first``): 10 x up to 1, or x.
    """
    if model == "torcheasyrec_first":
        return np.where(caching, np.minimum(MULTIPLE * ratio, 1.0), ratio)
    return np.where(ratio >= 1.0, 1.0, np.where(caching, CACHING, HYBRID) + SLOPE * ratio)


def measured(ratio: FloatArray, miss: FloatArray, model: CostModel) -> FloatArray:
    """x_eff given statistics: 1 − miss rate, even at ratio 1, in both modes; clamped to [0, 1].

    In the first commit never below HYBRID's, which is x there.
    """
    least = ratio if model == "torcheasyrec_first" else np.zeros_like(ratio)
    return np.clip(np.maximum(1.0 - miss, least), 0.0, 1.0)


def efficiency(
    options: OptionColumns, hit: FloatArray, known: BoolArray, model: CostModel
) -> FloatArray:
    """x_eff of every option; arrays [options]. HOST_ONLY, which it lacks, is HYBRID at ratio 0."""
    ratio: FloatArray = options.over / options.under.astype(np.float64)
    x_eff = fitted(ratio, options.is_mode("CACHING"), model)
    counted = known & ~options.is_mode("HOST_ONLY")
    return np.where(counted, measured(ratio, 1.0 - hit, model), x_eff)


def planner_value_bytes(dim: int, element_bytes: int, optimizer: str) -> int:
    """Bytes of one row with its state in TorchEasyRec: roundup16(ceil(dim · (1 + opt) · element)).

    opt is 0 for none and SGD, 2 for Adam, 1/dim for row-wise Adagrad, else 1.
    """
    state = {"none": 0, "sgd": 0, "adam": 2 * dim, "rowwise_adagrad": 1}.get(optimizer, dim)
    return int(round_up((dim + state) * element_bytes, ALIGN))


def torcheasyrec_tiers(
    rows: IntArray,
    value_bytes: IntArray,
    bucket: IntArray,
    ratio: tuple[IntArray, IntArray],
    keeps_all: BoolArray,
) -> TierBytes:
    """A shard as TorchEasyRec's planner counts it; int64 arrays, x as numerator and denominator.

    With a = rows per rank rounded up to 16 (at least 16): HBM = ceil(a · (vb·x + 8 + 8 + 1 +
    4/bucket)) in every mode; DDR = ceil(a · vb) where the host keeps all rows (CACHING), ceil(a ·
    vb · (1 − x)) otherwise; vb are the bytes of a row with its state. Exact where the original
    multiplies floats: at x = 0.1 it may be one byte above.
    """
    over, under = ratio
    a = np.maximum(round_up(rows, ALIGN), ALIGN)
    values = a * value_bytes
    # ceil(values·p/q + 17a + 4a/bucket) over the common denominator of the two fractions
    whole, rest = values * over // under, values * over % under
    buckets, part = BUCKET_BYTES * a // bucket, BUCKET_BYTES * a % bucket
    fraction = ceil_div(rest * bucket + part * under, under * bucket)
    hbm = SLOT_BYTES * a + whole + buckets + fraction
    ddr = np.where(keeps_all, values, ceil_div(values * (under - over), under))
    return TierBytes(hbm, ddr, whole + (rest > 0))
