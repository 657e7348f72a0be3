"""TorchRec's proposers on an Instance; their proposals are placed one after another, as in its
planner loop, and the best becomes an Outcome.

A proposer yields int64 arrays [proposals, tables] of global option indices, in the order in which
TorchRec 1.8.0 (``torchrec/distributed/planner/proposers.py``) would propose them; tables and
options in the instance's order stand for its search space.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from formulations.baselines.partition.partitioner import Partition, Partitioner
from formulations.clock import Clock
from formulations.fusion import mixed_groups, respreads, without_fusion
from formulations.instance import Instance, IntArray, Objective
from formulations.instance.facts import OptionFacts
from formulations.result.check import check, compute_loads, objectives
from formulations.result.outcome import Outcome, StoppedBy, nothing, why_stopped
from formulations.result.outcome import found as outcome_with
from formulations.result.outcome_file import tables_to_dict
from formulations.result.placement import Placement
from formulations.settings import Settings

#: Grid search proposes nothing above this many combinations (TorchRec's ``MAX_PROPOSALS``).
MAX_GRID = 10_000
_BATCH = 64


def sorted_options(instance: Instance, score: IntArray) -> list[list[int]]:
    """Allowed options of every table by increasing score, ties in instance order."""
    result = []
    for table in range(instance.num_tables):
        options = np.asarray(instance.options_of(table))
        options = options[instance.allowed[options]]
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


def _greedy(instance: Instance, facts: OptionFacts, score: IntArray) -> Iterator[IntArray]:
    """TorchRec's greedy proposer: start with each table's cheapest option; in every step, the table
    that stores most takes its next option.

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

#: Greedy compares options by their most expensive shard, or by the sum over their shards.
PROPOSERS: dict[str, Proposer] = {
    "grid": grid,
    "depth": lambda instance, facts: _greedy(instance, facts, facts.depth),
    "total": lambda instance, facts: _greedy(instance, facts, facts.cost),
    "uniform": uniform,
}


#: Streams of int64 arrays [proposals, tables].
Proposals = Iterable[IntArray]


@dataclass
class Found:
    """The result of a search over proposals.

    Attributes
    ----------
    placement : Placement or None
        The best plan, *fusion groups ignored*; None when no proposal could be placed.
    rating : int or None
        Its objective.
    stopped_by : StoppedBy
        ``EXHAUSTED`` when every proposal was seen (or the search ended at the first that fits).
    proposed, skipped, placed, accepted : int
        Proposals seen; not placed because their bound could not beat the best; placed on ranks;
        better than all before.
    tells : bool
        Whether ratings are the instance's own objective, and so belong in the trace (plans that
        ignore fusion groups have another objective once they run).
    """

    placement: Placement | None = None
    rating: int | None = None
    stopped_by: StoppedBy = StoppedBy.EXHAUSTED
    proposed: int = 0
    skipped: int = 0
    placed: int = 0
    accepted: int = 0
    tells: bool = True


def search(
    partitioner: Partitioner,
    proposals: Proposals,
    settings: Settings,
    clock: Clock,
    first: bool = False,
    found: Found | None = None,
    threshold: int | None = None,
) -> Found:
    """Place every proposal and keep the one with the lowest objective.

    A proposal is not placed when a bound on its objective (its total, or the largest of total ÷
    ranks and its most expensive shard) cannot beat the best so far; that never changes the answer.
    Fusion groups are ignored, as TorchRec's planner ignores them; every other constraint is
    checked. A unit of work is a proposal placed.

    Parameters
    ----------
    partitioner : Partitioner
    proposals : iterable of int64 array [proposals, tables]
    settings : Settings
    clock : Clock
    first : bool
        Stop at the first proposal that can be placed, instead of trying all.
    found : Found, optional
        The result of an earlier search, to be continued.
    threshold : int, optional
        End when more proposals in a row than this rate worse than the best of this search (as
        TorchRec's ``GreedyProposer`` does); then every proposal is placed.
    """
    found = found or Found()
    instance = without_fusion(partitioner.instance)
    best, inferior = None, 0
    for options in _worth_placing(partitioner, proposals, found, threshold is None):
        if found.placement is not None and first:
            break
        if clock.over():
            found.stopped_by = why_stopped(clock)
            break
        rating = _consider(partitioner, instance, options, found, clock)
        if threshold is None or rating is None:
            continue
        inferior = 0 if best is None or rating < best else inferior + 1
        best = rating if best is None else min(best, rating)
        if inferior > threshold:
            break
    return found


def _worth_placing(
    partitioner: Partitioner, proposals: Proposals, found: Found, may_skip: bool
) -> Iterator[IntArray]:
    for batch in proposals:
        bounds = lower_bounds(partitioner, batch)
        for row, bound in zip(batch, bounds.tolist(), strict=True):
            found.proposed += 1
            if may_skip and found.rating is not None and bound >= found.rating:
                found.skipped += 1
            else:
                yield row


def lower_bounds(partitioner: Partitioner, batch: IntArray) -> IntArray:
    """No placement of these options can cost less, int64 array [proposals]."""
    facts, instance = partitioner.facts, partitioner.instance
    if not facts.exact:
        return np.full(len(batch), np.iinfo(np.int64).min)
    if instance.objective == Objective.TOTAL:
        result: IntArray = facts.cost[batch].sum(axis=1)
        return result
    spread = -(-facts.placed_cost[batch].sum(axis=1) // instance.num_ranks)
    return np.maximum(spread, facts.depth[batch].max(axis=1, initial=0))


def _consider(
    partitioner: Partitioner, instance: Instance, options: IntArray, found: Found, clock: Clock
) -> int | None:
    """Place one proposal; its rating, or None where that fails."""
    partition = partitioner.partition(options)
    if partition is None:
        return None
    found.placed += 1
    clock.spend(1.0)
    rating = _rating(partitioner, instance, partition)
    if found.rating is not None and rating >= found.rating:
        return rating
    placement = partition.placement(instance)
    verdict = check(instance, placement)
    if not verdict.feasible:
        return rating
    found.accepted += 1
    found.placement, found.rating = placement, rating
    if found.tells and not partitioner.instance.fusion_groups:
        clock.record(rating, None, "placed")
    return rating


def _rating(partitioner: Partitioner, instance: Instance, partition: Partition) -> int:
    if instance.objective == Objective.TOTAL and partitioner.facts.exact:
        return int(partitioner.facts.cost[partition.options].sum())
    if instance.objective == Objective.BUSIEST_RANK:
        return max(partition.load)
    loads = compute_loads(instance, partition.placement(instance))
    return objectives(instance, loads)[instance.objective.value]


def outcome_of(
    instance: Instance, formulation: str, result: Found, why_nothing: str, **detail: object
) -> Outcome:
    """Turn what a search found into an Outcome that the check accepts.

    A plan that mixes levels in a fusion group is replaced by what the runtime would make of it
    (:func:`formulations.fusion.respreads`); the plan itself is kept in ``detail["unfused"]``.
    When even that breaks a constraint, the outcome is *unknown* and its note says which.
    """
    counted = ("proposed", "skipped", "placed", "accepted")
    detail = {name: getattr(result, name) for name in counted} | detail
    placement = result.placement
    if placement is None:
        return nothing(formulation, result.stopped_by, note=why_nothing, detail=detail)
    if not mixed_groups(instance, placement):
        return outcome_with(instance, formulation, placement, result.stopped_by, detail=detail)
    detail["unfused"] = _unfused(instance, placement)
    problem = "its tables share no level"
    for spread in respreads(instance, placement):
        verdict = check(instance, spread)
        if verdict.feasible:
            note = (
                f"planned {result.rating} without fusion groups; the runtime gives every table "
                f"of a group one level, which makes {verdict.objectives[instance.objective.value]}"
            )
            return outcome_with(
                instance, formulation, spread, result.stopped_by, note=note, detail=detail
            )
        problem = verdict.violations[0]
    note = f"its plan ignores fusion groups, and as the runtime would run it breaks: {problem}"
    return nothing(formulation, result.stopped_by, note=note, detail=detail)


def _unfused(instance: Instance, placement: Placement) -> dict[str, object]:
    """The plan as proposed: options, ranks, objectives and the groups it mixes, as JSON values."""
    mixed = mixed_groups(instance, placement)
    levels = instance.option_level[placement.options]
    return {
        "objectives": check(without_fusion(instance), placement).objectives,
        "mixed": {
            instance.fusion_groups[g]: sorted({int(levels[t]) for t in tables})
            for g, tables in mixed.items()
        },
        "tables": tables_to_dict(instance, placement),
    }
