"""The rules of TorchEasyRec's planner for the speed of dynamicemb lookups, taken literally.

For comparison only (``cost_model: torcheasyrec``): given access statistics, they ignore the path
cost that a tiered lookup has even if every row is in HBM.

References
----------
alibaba/TorchEasyRec, ``tzrec/utils/plan_util.py`` and ``dynamicemb_util.py``, pull request 508.
"""

from __future__ import annotations

import numpy as np

from milp_planner.inputs.model import CostModel
from milp_planner.pricing.job import OptionColumns
from milp_planner.pricing.units import BoolArray, FloatArray

DIVISOR = 10.0
"""Divides the bandwidth of every dynamicemb lookup, at every ratio."""
CACHING, HYBRID, SLOPE = 0.28, 0.11, 0.01
"""x_eff below ratio 1 is one of the first two, plus 0.01 times the ratio."""


def fitted(ratio: FloatArray, caching: BoolArray) -> FloatArray:
    """x_eff without statistics: 0.28 + 0.01 x (CACHING) or 0.11 + 0.01 x, and 1 at ratio 1."""
    return np.where(ratio >= 1.0, 1.0, np.where(caching, CACHING, HYBRID) + SLOPE * ratio)


def measured(ratio: FloatArray, miss: FloatArray, model: CostModel) -> FloatArray:
    """x_eff given statistics: 1 − miss rate, even at ratio 1, in both modes; clamped to [0, 1].

    The first version (``torcheasyrec_first``) never goes below HYBRID's 0.11 + 0.01 x.
    """
    least = HYBRID + SLOPE * ratio if model == "torcheasyrec_first" else np.zeros_like(ratio)
    return np.clip(np.maximum(1.0 - miss, least), 0.0, 1.0)


def efficiency(
    options: OptionColumns, hit: FloatArray, known: BoolArray, model: CostModel
) -> FloatArray:
    """x_eff of every option; arrays [options]. HOST_ONLY, which it lacks, is HYBRID at ratio 0."""
    ratio: FloatArray = options.over / options.under.astype(np.float64)
    x_eff = fitted(ratio, options.is_mode("CACHING"))
    counted = known & ~options.is_mode("HOST_ONLY")
    return np.where(counted, measured(ratio, 1.0 - hit, model), x_eff)
