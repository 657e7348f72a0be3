"""What TorchRec's planner chooses where a table's type or kernel is left to it.

Its four default proposers take turns: every combination, if there are few; twice the cheapest
options, then less storage table by table; one type for all tables. Each proposal goes through
:func:`milp_planner.integrations.replay.greedy.partition`, and the first of the least busiest rank
is the plan. :mod:`formulations.baselines.partition.proposals` has the same rules on an Instance, in
whole picoseconds; here sums are TorchRec's floats, whose last digit decides.

References
----------
TorchRec 1.9.2, ``distributed/planner/proposers.py``, ``planners.py`` (``plan``) and
``perf_models.py`` (``NoopPerfModel``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from milp_planner.errors import FallsShort
from milp_planner.integrations.replay.estimate import Asked, Bytes, Job, shards_of
from milp_planner.integrations.replay.greedy import partition

MAX_GRID = 10_000
"""Most combinations that are all proposed (``MAX_PROPOSALS``)."""
Proposal = tuple[Asked, ...]
"""An option of every table."""


def plan(
    tables: Sequence[Sequence[Asked]],
    job: Job,
    room: Bytes,
    proposed: Iterable[Proposal] | None = None,
) -> tuple[Proposal, dict[str, tuple[int, ...]]]:
    """The option of every table, and the rank of each of its shards.

    Parameters
    ----------
    tables
        The options of every table, in the order in which TorchRec's enumerator lists them.
    job, room
        As for :func:`~milp_planner.integrations.replay.greedy.partition`.
    proposed
        What the trainer's own proposers propose, in their order; by default TorchRec's.

    Raises
    ------
    FallsShort
        In the planner's words, if no proposal finds a place.
    """
    best: tuple[Proposal, dict[str, tuple[int, ...]]] | None = None
    least, failure = math.inf, None
    for proposal in dict.fromkeys(_proposals(tables, job) if proposed is None else proposed):
        if _least(proposal, job) >= least:
            continue  # however it is placed, it is no better
        try:
            ranks = partition(proposal, job, room)
        except FallsShort as error:
            failure = error
            continue
        if (rating := _rating(proposal, ranks, job)) < least:
            best, least = (proposal, ranks), rating
    if best is None:
        raise failure or FallsShort("its planner has nothing to propose")
    return best


def _proposals(tables: Sequence[Sequence[Asked]], job: Job) -> Iterator[Proposal]:
    by_depth = [sorted(options, key=lambda o: max(_times(o, job))) for options in tables]
    if math.prod(map(len, tables)) <= MAX_GRID:
        yield from itertools.product(*by_depth)
    yield from _greedy(by_depth, job)
    yield from _greedy([sorted(each, key=lambda o: sum(_times(o, job))) for each in tables], job)
    yield from uniform(tables, job)


def uniform(tables: Sequence[Sequence[Asked]], job: Job) -> Iterator[Proposal]:
    """One type for all tables, with each table's option of it whose largest shard takes least."""
    by_depth = [sorted(options, key=lambda o: max(_times(o, job))) for options in tables]
    for kind in dict.fromkeys(option.sharding_type for options in tables for option in options):
        best = [next((o for o in own if o.sharding_type == kind), None) for own in by_depth]
        yield from [tuple(filter(None, best))] if None not in best else ()


def _greedy(tables: Sequence[Sequence[Asked]], job: Job) -> Iterator[Proposal]:
    """The first options; then, again and again, the table that stores most takes its next one."""
    at = [0] * len(tables)
    while True:
        yield tuple(options[i] for options, i in zip(tables, at, strict=True))
        stored = [
            _stored(options[i], job) if i + 1 < len(options) else (0, 0, 0, 0)
            for options, i in zip(tables, at, strict=True)
        ]
        most = max(stored, default=(0, 0, 0, 0))
        if not any(most):
            return
        at[stored.index(most)] += 1


def _least(proposal: Proposal, job: Job) -> float:
    """No busiest rank takes less, by more than rounding."""
    total = sum(sum(_times(option, job)) for option in proposal)
    return total / job.world * (1 - 1e-9)


def _times(option: Asked, job: Job) -> list[float]:
    return [shard.perf.total for shard in shards_of(option, job)]


def _stored(option: Asked, job: Job) -> tuple[int, int, int, int]:
    """Largest shard and sum, of HBM and of host memory."""
    shards = [shard.storage for shard in shards_of(option, job)]
    hbm, ddr = [each.hbm for each in shards], [each.ddr for each in shards]
    return max(hbm), sum(hbm), max(ddr), sum(ddr)


def _rating(proposal: Proposal, ranks: dict[str, tuple[int, ...]], job: Job) -> float:
    """Milliseconds of the busiest rank, added up shard by shard."""
    total = [0.0] * job.world
    for option in proposal:
        for rank, time in zip(ranks[option.name], _times(option, job), strict=True):
            total[rank] += time
    return max(total)
