"""Integer weights: a row of a certificate that closes a case (*pattern* in docs/proof.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Objective
from formulations.patterns.knapsack import Floats
from formulations.patterns.portions import Portions

#: Weights tried for a full rank, small numbers first, because the weights at a vertex of a linear
#: program are often simple fractions.
_SCALES = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 20, 24, 30, 60, 120, 180, 360, 720, 2520, 10_000)
_NEVER = 2**62


def closing_row(
    portions: Portions, weight: Floats, target: int, keep: NDArray[np.bool_]
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
            return _row(portions, whole, most)
    return None


def _least(portions: Portions, whole: NDArray[np.int64], keep: NDArray[np.bool_]) -> int:
    """The least total weight of all tables' shards, with the options kept."""
    instance = portions.instance
    owner = np.repeat(
        instance.option_of, np.diff(instance.block_shards)
    )  # the option of each entry
    each = np.zeros(instance.num_options, dtype=np.int64)
    np.add.at(each, owner, whole * portions.number)
    each = np.where(keep, each, _NEVER)
    return int(np.minimum.reduceat(each, instance.table_options[:-1]).sum())


def _most(portions: Portions, whole: NDArray[np.int64], target: int, scale: int) -> int | None:
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


def _row(portions: Portions, whole: NDArray[np.int64], most: int) -> dict[str, Any]:
    """The row as a certificate states it: weights by table, option and shard of the option."""
    instance = portions.instance
    items = sorted(
        {
            (t, int(o - instance.table_options[t]),
             int(e - instance.block_shards[instance.option_blocks[o]]), int(whole[e]))
            for t, o, e in zip(
                portions.table.tolist(), portions.option.tolist(), portions.entry.tolist(),
                strict=True,
            )
            if whole[e]
        }
    )  # fmt: skip
    of = Objective(instance.objective).value
    weights = [list(item) for item in items]
    return {"row": "pattern", "of": of, "most": most, "weights": weights, "times": 1}
