"""Turn a choice of options into a placement: patterns that together hold every shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from formulations.instance import IntArray
from formulations.patterns.master import Master
from formulations.patterns.portions import Portions, portions_of
from formulations.result.placement import Placement


def packed(
    portions: Portions,
    options: IntArray,
    target: int,
    seconds: float,
    over: Callable[[], bool],
) -> Placement | None:
    """Place the options so that no rank costs more than the target; None where that fails.

    Patterns come from the linear program with the options fixed; HiGHS then chooses how many of
    each to use, in a mixed-integer program. The caller must check the placement.
    """
    instance = portions.instance
    keep = np.zeros(instance.num_options, dtype=np.bool_)
    keep[options] = True
    own = portions_of(instance, keep)
    blocks = instance.option_blocks[options]
    settled = instance.settled[blocks] & ~instance.everywhere[blocks]
    if own is None or settled.any() or instance.by_machine[blocks].any():
        return None
    patterns: set[tuple[int, ...]] = set()
    solved = Master(own, target, patterns, over).solve(keep, fits=True)
    if solved is None or solved.ranks > instance.num_ranks + 1e-6:
        return None
    alone = np.flatnonzero((own.load <= target) & (own.copies == 1))
    columns = [np.asarray(p, dtype=np.int64) for p in patterns] + [
        alone[i : i + 1] for i in range(len(alone))
    ]
    counts = _whole(own, columns, seconds)
    return None if counts is None else _placement(own, options, columns, counts)


def _whole(own: Portions, columns: list[IntArray], seconds: float) -> IntArray | None:
    """How many ranks take each pattern, so that every shard is held and the ranks suffice."""
    import highspy

    entries = np.unique(own.entry)
    lp: Any = highspy.Highs()
    lp.setOptionValue("output_flag", False)
    lp.setOptionValue("time_limit", seconds)
    lp.setOptionValue("mip_max_improving_sols", 1)
    infinity = highspy.kHighsInf
    for entry in entries.tolist():
        lp.addRow(float(own.number[entry]), infinity, 0, np.empty(0, np.int32), np.empty(0))
    lp.addRow(-infinity, float(own.instance.num_ranks), 0, np.empty(0, np.int32), np.empty(0))
    for pattern in columns:
        rows = np.append(np.searchsorted(entries, own.entry[pattern]), len(entries))
        values = np.append(own.copies[pattern].astype(np.float64), 1.0)
        lp.addCol(1.0, 0.0, infinity, len(rows), rows.astype(np.int32), values)
        lp.changeColIntegrality(lp.getNumCol() - 1, highspy.HighsVarType.kInteger)
    lp.run()
    value = np.asarray(lp.getSolution().col_value)
    if len(value) != len(columns) or lp.getInfo().primal_solution_status != 2:
        return None
    return np.rint(value).astype(np.int64)


def _placement(
    own: Portions, options: IntArray, columns: list[IntArray], counts: IntArray
) -> Placement:
    """Deal the patterns to ranks one after another, leaving out shards already held."""
    instance = own.instance
    ranks_of: dict[int, list[int]] = {int(e): [] for e in own.entry}
    rank = 0
    for pattern, count in zip(columns, counts.tolist(), strict=True):
        for _ in range(count):
            for portion in pattern.tolist():
                entry = int(own.entry[portion])
                missing = int(own.number[entry]) - len(ranks_of[entry])
                ranks_of[entry] += [rank] * min(missing, int(own.copies[portion]))
            rank += 1
    found = []
    for option in options.tolist():
        block = instance.block(int(instance.option_blocks[option]))
        if block.everywhere:
            found.append([np.arange(instance.num_ranks)])
            continue
        left = {e: iter(ranks_of[e]) for e in set(block.entries.tolist())}
        places = [next(left[block.entry(i)]) for i in range(block.count)]
        found.append([np.asarray(places, dtype=np.int64)])
    return Placement(options, found)
