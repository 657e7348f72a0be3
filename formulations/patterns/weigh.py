"""Integer weights: a row of a certificate that closes a case (*pattern* in docs/proof.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.instance import Instance, IntArray, Objective
from formulations.instance.facts import per_option
from formulations.patterns.found import Floats, Mask
from formulations.patterns.portions import Portions

#: Weights tried for a full rank, small numbers first, because the weights at a vertex of a linear
#: program are often simple fractions.
_SCALES = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 20, 24, 30, 60, 120, 180, 360, 720, 2520, 10_000)
_NEVER = 2**62


def closing_row(
    portions: Portions, weight: Floats, target: int, keep: Mask
) -> dict[str, Any] | None:
    """The row that proves that no plan with the options kept costs ``target`` or less.

    ``weight`` is the weight of one shard, float array [entries], with patterns of at most about 1.
    None where no scale tried closes the case.
    """
    for scale in _SCALES:
        whole = np.floor(weight * scale + 1e-6).astype(np.int64)
        least = _least(portions, whole, keep)
        if least <= portions.instance.num_ranks * scale:
            continue
        most = _most(portions, whole, target, scale)
        if most is not None and least > portions.instance.num_ranks * most:
            weights = listed(portions.instance, whole)
            of = Objective(portions.instance.objective).value
            return {"row": "pattern", "of": of, "most": most, "weights": weights, "times": 1}
    return None


def _least(portions: Portions, whole: IntArray, keep: Mask) -> int:
    """The least total weight of all tables' shards, with the options kept."""
    instance = portions.instance
    each = np.where(keep, per_option(instance, whole * portions.number), _NEVER)
    return int(np.minimum.reduceat(each, instance.table_options[:-1]).sum())


def _most(portions: Portions, whole: IntArray, target: int, scale: int) -> int | None:
    """The largest weight that a rank can hold; None if it exceeds ``scale``.

    ``least[w]`` is the smallest load of a pattern that weighs w or more.
    """
    least = np.full(scale + 2, _NEVER, dtype=np.int64)
    least[0] = 0
    for own in portions.of_table:
        new = least.copy()
        for portion in own.tolist():
            weight = int(whole[portions.entry[portion]] * portions.copies[portion])
            if weight and portions.load[portion] <= target:
                from_ = np.maximum(np.arange(scale + 2) - weight, 0)
                np.minimum(new, least[from_] + portions.load[portion], out=new)
        least = np.minimum(new, _NEVER)
    return None if least[scale + 1] <= target else int(np.flatnonzero(least <= target)[-1])


def listed(instance: Instance, weight: IntArray) -> list[list[int]]:
    """Weights of shard entries as a certificate states them: table, its option, the option's shard
    and the weight, where that is not 0."""
    entry = np.flatnonzero(weight)
    option = np.repeat(instance.option_of, np.diff(instance.block_shards))[entry]
    table, first = instance.table_of[option], instance.block_shards[instance.option_blocks[option]]
    columns = table, option - instance.table_options[table], entry - first, weight[entry]
    found: list[list[int]] = np.stack(columns, axis=1).tolist()
    return found
