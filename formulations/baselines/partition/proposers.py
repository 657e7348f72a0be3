"""TorchRec's proposers on an Instance: streams of one option a table.

Every function yields int64 arrays [proposals, tables] of global option indices, in the order in
which TorchRec 1.8.0 (``torchrec/distributed/planner/proposers.py``) would propose them; tables
and options in the instance's order stand for its search space.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from formulations.bounds.own import OptionFacts
from formulations.instance import Instance, IntArray

#: Grid search proposes nothing above this many combinations (TorchRec's ``MAX_PROPOSALS``).
MAX_GRID = 10_000
_BATCH = 64


def allowed_options(instance: Instance, table: int) -> IntArray:
    """Options of a table that pins and ``forbidden`` leave, in instance order."""
    options = np.arange(instance.table_options[table], instance.table_options[table + 1])
    return options[instance.allowed[options]]


def sorted_options(instance: Instance, score: IntArray) -> list[list[int]]:
    """Allowed options of every table by increasing score, ties in instance order."""
    result = []
    for table in range(instance.num_tables):
        options = allowed_options(instance, table)
        result.append(options[np.argsort(score[options], kind="stable")].tolist())
    return result


def grid(instance: Instance, facts: OptionFacts) -> Iterator[IntArray]:
    """Every combination, where there are at most :data:`MAX_GRID` of them; else nothing."""
    options = sorted_options(instance, facts.depth)
    if math.prod(map(len, options)) > MAX_GRID:
        return
    combinations = itertools.product(*options)
    while batch := list(itertools.islice(combinations, _BATCH)):
        yield np.asarray(batch, dtype=np.int64).reshape(len(batch), instance.num_tables)


def greedy_by_depth(instance: Instance, facts: OptionFacts) -> Iterator[IntArray]:
    """TorchRec's greedy proposer with options sorted by their most expensive shard."""
    return _greedy(instance, facts, facts.depth)


def greedy_by_total(instance: Instance, facts: OptionFacts) -> Iterator[IntArray]:
    """TorchRec's greedy proposer with options sorted by the sum over their shards."""
    return _greedy(instance, facts, facts.cost)


def _greedy(instance: Instance, facts: OptionFacts, score: IntArray) -> Iterator[IntArray]:
    """Cheapest option a table; then, step by step, the table that stores most takes its next one.

    "Stores most" compares (largest shard, sum) resource by resource; a table whose current option
    stores nothing, or that has no next option, stays.
    """
    options = sorted_options(instance, score)
    if not all(options):
        return
    storage = np.stack([facts.peak, facts.use], axis=2).reshape(
        len(facts.cost), 2 * facts.use.shape[1]
    )
    current = np.asarray([o[0] for o in options], dtype=np.int64)
    step = [0] * len(options)

    def entry(table: int) -> tuple[tuple[int, ...], int]:
        return tuple((-storage[options[table][step[table]]]).tolist()), table

    heap = [entry(t) for t in range(len(options)) if len(options[t]) > 1]
    heap = [e for e in heap if any(e[0])]
    heapq.heapify(heap)
    batch = [current.copy()]
    while heap:
        _, table = heapq.heappop(heap)
        step[table] += 1
        current[table] = options[table][step[table]]
        batch.append(current.copy())
        if step[table] + 1 < len(options[table]):
            item = entry(table)
            if any(item[0]):
                heapq.heappush(heap, item)
        if len(batch) >= _BATCH:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)


def uniform(instance: Instance, facts: OptionFacts) -> Iterator[IntArray]:
    """For each kind of option that every table has: each table's best one of that kind.

    The kind is the option's name up to its first ``/`` or ``:`` (the sharding type, as our
    pricing and the TorchRec import name options); best by most expensive shard.
    """
    order = sorted_options(instance, facts.depth)
    best: list[dict[str, int]] = []
    for options in order:
        first: dict[str, int] = {}
        for option in options:
            first.setdefault(option_kind(instance.option_names[option]), option)
        best.append(first)
    if not best:
        yield np.empty((1, 0), dtype=np.int64)
        return
    kinds = dict.fromkeys(map(option_kind, instance.option_names))
    for kind in kinds:
        if all(kind in first for first in best):
            yield np.asarray([[first[kind] for first in best]], dtype=np.int64)


def option_kind(name: str) -> str:
    """An option's kind: its name up to the first ``/`` or ``:``."""
    return name.split("/", 1)[0].split(":", 1)[0]


Proposer = Callable[[Instance, OptionFacts], Iterator[IntArray]]

PROPOSERS: dict[str, Proposer] = {
    "grid": grid,
    "depth": greedy_by_depth,
    "total": greedy_by_total,
    "uniform": uniform,
}
