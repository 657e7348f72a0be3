"""Fusion groups: dynamicemb tables with equal grouped keys share one cache ratio.

The runtime puts tables whose grouped key agrees into one module and spreads the group's HBM over
all of them in proportion. Of tables that agree in every other field there are exactly two groups:
one with ``caching`` off (HOST_ONLY at level 0, HYBRID between, HBM_ONLY at the top) and one with
it on (CACHING between, HBM_ONLY at the top).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.pricing.job import OptionColumns
from milp_planner.pricing.options import SHARDING_TYPES, Choice
from milp_planner.pricing.units import IntArray


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


def fusion_of(
    model: Model, choices: Sequence[Choice], columns: OptionColumns, denominator: int
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Group and level of every option.

    Returns
    -------
    group : int64 array [options]
        Index in ``names``, −1 where the option fuses with nothing.
    level : int64 array [options]
        Cache ratio times ``denominator``.
    names : tuple of str
    """
    group = np.full(len(choices), -1, dtype=np.int64)
    names: dict[str, int] = {}
    known: dict[tuple[int, str, bool], int] = {}
    for option, (choice, owner) in enumerate(zip(choices, columns.table.tolist(), strict=True)):
        if choice.caching_group is None or choice.dist_type is None:
            continue
        key = (owner, choice.dist_type, choice.caching_group)
        if key not in known:
            name = group_name(model.tables[owner], model.workload.trains, *key[1:])
            known[key] = names.setdefault(name, len(names))
        group[option] = known[key]
    level = np.where(group >= 0, columns.over * denominator // columns.under, 0)
    return group, level, tuple(names)


def collectives_of(model: Model, columns: OptionColumns) -> tuple[IntArray, tuple[str, ...]]:
    """One collective for each library, kind of output and sharding type.

    TorchRec exchanges the outputs of all tables of a module that share a sharding type in one
    call; a replicated table exchanges none.

    Returns
    -------
    index : int64 array [options]
        −1 for none.
    names : tuple of str
        Such as ``torchrec/sequence/row_wise``.
    """
    kinds: dict[str, int] = {}
    owner = [kinds.setdefault(f"{t.kind}/{t.output}", len(kinds)) for t in model.tables]
    kind = np.array(owner, dtype=np.int64)[columns.table]
    used, index = np.unique(kind * len(SHARDING_TYPES) + columns.sharding, return_inverse=True)
    names = list(kinds)
    labels = [divmod(int(code), len(SHARDING_TYPES)) for code in used]
    index = np.where(columns.is_sharding("data_parallel"), -1, index)
    return index, tuple(f"{names[k]}/{SHARDING_TYPES[s]}" for k, s in labels)
