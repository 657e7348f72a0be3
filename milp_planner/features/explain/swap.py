"""Give one table another option while every other table stays where it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations import Instance, Placement, Where
from formulations.fusion import mixed_groups
from formulations.instance import BlockView, IntArray, Scope
from formulations.result.check import Verdict, gather, judge, loads_of
from formulations.result.piles import Piles, position_entries
from formulations.result.placement import machine_ranks
from milp_planner.plans.compile import RULE, memories


@dataclass(frozen=True)
class Shortage:
    """How much of a resource is missing at one place."""

    resource: str
    scope: str
    place: int
    """Rank or machine number, 0 for the cluster."""
    short_by: int
    """Bytes (the instance's unit)."""


@dataclass(frozen=True, eq=False)
class Swap:
    """The result of giving one table another option."""

    placement: Placement
    """The placement with the option at the best places found, whether or not it fits."""
    objective: int | None
    """None when it does not fit."""
    lacks: tuple[Shortage, ...]
    """The largest shortage of each resource."""
    clashes: tuple[str, ...]
    """Those of ``fusion`` and ``moves`` that are violated."""


def swap(instance: Instance, placement: Placement, option: int, whole: Piles) -> Swap | None:
    """Give the option's table that option, each shard on the place with the least overflow.

    Ties go to the place with the least cost so far. None when there are too few places, such as
    distinct ranks for its shards. For options of several shards this is a heuristic: removing the
    reported shortage is sufficient, but a smaller one might do. ``whole`` holds the piles of all
    tables.
    """
    table = int(instance.table_of[option])
    now = Piles(*(part.copy() for part in whole))
    now.add_table(instance, placement, table, -1)
    ranks = []
    for index in instance.blocks_of(option):
        block = instance.block(index)
        placed = _place(instance, block, now.use, now.cost)
        if placed is None:
            return None
        ranks.append(placed)
        now.add(instance, block, placed)
    options = placement.options.copy()
    options[table] = option
    all_ranks = list(placement.ranks)
    all_ranks[table] = ranks
    changed = Placement(options, all_ranks)
    verdict = judge(instance, changed, loads_of(instance, now))
    return Swap(
        changed,
        verdict.objectives[instance.objective.value] if verdict.feasible else None,
        _lacks(instance, verdict),
        _clashes(instance, changed, verdict.violations),
    )


def _place(instance: Instance, block: BlockView, use: IntArray, cost: IntArray) -> IntArray | None:
    fixed = instance.settled_ranks(block.index)
    if fixed is not None:
        return fixed
    if block.where == Where.ANY_RANK:
        allowed = list(range(instance.num_ranks)) if block.places is None else list(block.places)
        return _shards(instance, block, allowed, use, cost)
    machines = list(range(len(instance.machines))) if block.places is None else list(block.places)
    if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
        tries = [_shards(instance, block, list(instance.machines[m]), use, cost) for m in machines]
        found = [ranks for ranks in tries if ranks is not None]
        return min(found, key=lambda ranks: _score(instance, block, ranks, use, cost), default=None)
    chosen = _machines(instance, block, machines, use, cost)
    return machine_ranks(instance, chosen) if len(chosen) == block.count else None


def _shards(
    instance: Instance, block: BlockView, allowed: list[int], use: IntArray, cost: IntArray
) -> IntArray | None:
    """Choose a rank for every shard in turn; None when there are too few ranks."""
    use, cost = use.copy(), cost.copy()
    chosen: list[int] = []
    for position in range(block.count):
        entry = block.entry(position)
        free = [r for r in allowed if not (block.distinct and r in chosen)]
        if not free:
            return None
        overflow, busy = _after_each(instance, np.asarray(free), entry, use, cost)
        ties = [chosen.count(r) for r in free]
        best = free[int(np.lexsort((np.asarray(free), np.asarray(ties), busy, overflow))[0])]
        chosen.append(best)
        use[best] += instance.shard_use[entry]
        cost[best] += instance.shard_cost[entry]
    return np.asarray(chosen, dtype=np.int64)


def _after_each(
    instance: Instance, ranks: IntArray, entry: int, use: IntArray, cost: IntArray
) -> tuple[IntArray, IntArray]:
    """For each of these ranks, its overflow and cost if the entry were added to it."""
    overflow = np.zeros(len(ranks), dtype=np.int64)
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.CLUSTER:
            continue
        places = ranks if resource.scope == Scope.RANK else instance.machine_of[ranks]
        load = gather(instance, index, use, 0)[places] + instance.shard_use[entry, index]
        overflow += np.maximum(0, load - resource.capacity[places])
    return overflow, (cost[ranks] + instance.shard_cost[entry]).sum(axis=1)


def _machines(
    instance: Instance, block: BlockView, allowed: list[int], use: IntArray, cost: IntArray
) -> list[int]:
    def score(machine: int) -> tuple[int, int]:
        ranks = list(instance.machines[machine])
        entries = [block.entry(i) for i in range(len(ranks))]
        return _after(instance, ranks, entries, use, cost)

    order = sorted(
        (m for m in allowed if block.shared or len(instance.machines[m]) == len(block.entries)),
        key=score,
    )
    return order[: block.count] if block.distinct else order[:1] * block.count


def _score(
    instance: Instance, block: BlockView, ranks: IntArray, use: IntArray, cost: IntArray
) -> tuple[int, int]:
    entries = position_entries(instance, block, ranks)
    return _after(instance, ranks.tolist(), entries.tolist(), use, cost)


def _after(
    instance: Instance, ranks: list[int], entries: list[int], use: IntArray, cost: IntArray
) -> tuple[int, int]:
    """Total overflow and largest cost of these ranks once the entries are added."""
    new_use, new_cost = use.copy(), cost.copy()
    np.add.at(new_use, ranks, instance.shard_use[entries])
    np.add.at(new_cost, ranks, instance.shard_cost[entries])
    overflow = 0
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.RANK:
            load, room = new_use[ranks, index], resource.capacity[ranks]
        elif resource.scope == Scope.MACHINE:
            machines = np.unique(instance.machine_of[ranks])
            load = np.asarray([new_use[list(instance.machines[m]), index].sum() for m in machines])
            room = resource.capacity[machines]
        else:
            continue
        overflow += int(np.maximum(0, load - room).sum())
    return overflow, int(new_cost[ranks].sum(axis=1).max(initial=0))


def _lacks(instance: Instance, verdict: Verdict) -> tuple[Shortage, ...]:
    assert verdict.loads is not None
    found = []
    for index, resource in memories(instance):
        use = verdict.loads.use[index]
        place = int(np.argmax(use - resource.capacity))
        over = int(use[place] - resource.capacity[place])
        if over > 0:
            found.append(Shortage(resource.name, resource.scope.value, place, over))
    return tuple(found)


def _clashes(
    instance: Instance, placement: Placement, violations: tuple[str, ...]
) -> tuple[str, ...]:
    found = ["fusion"] if mixed_groups(instance, placement) else []
    found += ["one ratio"] if any(RULE in v for v in violations) else []
    found += ["moves"] if any(v.endswith(" may") for v in violations) else []
    return tuple(found)
