"""Fusion groups: dynamicemb tables with equal grouped keys share one cache ratio.

The runtime puts tables whose grouped key agrees into one module and spreads the group's HBM over
all of them in proportion. Of tables that agree in every other field there are exactly two groups:
one with ``caching`` off (HOST_ONLY at level 0, HYBRID between, HBM_ONLY at the top) and one with
it on (CACHING between, HBM_ONLY at the top).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table


def group_name(table: Table, training: bool, dist_type: str, caching: bool) -> str:
    """Name of a fusion group: every field of the grouped key, in words.

    Parameters
    ----------
    table : Table
    training : bool
    dist_type : str
    caching : bool
        Which of the two groups.

    References
    ----------
    NVIDIA/recsys-examples, ``corelib/dynamicemb`` (grouped key of batched tables). Output kind
    and weighting are added: such tables live in different TorchRec modules.
    """
    fields = {
        "training": str(training).lower(),
        "caching": str(caching).lower(),
        "external_storage": table.external_storage or "none",
        "index_type": table.index_type,
        "dist_type": dist_type,
        "score_strategy": table.score_strategy,
        "admit_strategy": table.admit_strategy or "none",
        "dim": str(table.dim),
        "dtype": table.dtype,
        "optimizer": table.optimizer,
        "output": table.output,
        "weighted": str(table.weighted).lower(),
    }
    return "dynamicemb[" + ",".join(f"{key}={value}" for key, value in fields.items()) + "]"


def level_denominator(model: Model) -> int:
    """Least common denominator of all cache ratios of a model: levels are ratios over it."""
    grids: Iterable[tuple[Fraction, ...]] = (
        model.workload.cache_ratios,
        *(t.constraints.cache_ratios for t in model.tables if t.constraints.cache_ratios),
    )
    return math.lcm(*{ratio.denominator for grid in grids for ratio in grid})
