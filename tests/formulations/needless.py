"""Tables that a plan keeps in host memory, or cuts, without need: each is moved on its own.

All other tables stay where they are. Options with one shard (or on one machine) are tried at every
place, so that nothing is missed; for the others, every shard goes where it costs least.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from formulations.instance import BlockView, Instance, IntArray, Objective, Scope, Where
from formulations.instance.facts import per_option, shard_counts
from formulations.result.check import Loads, check, compute_loads
from formulations.result.piles import position_entries
from formulations.result.placement import Placement


@dataclass(frozen=True)
class Needless:
    """A table and the option, with less in host memory or fewer shards, that it could have."""

    table: str
    now: str
    instead: str


def needless(instance: Instance, placement: Placement) -> list[Needless]:
    """Every table that could move back at no cost to the objective and within all capacities."""
    verdict = check(instance, placement)
    assert verdict.feasible, verdict.violations
    assert verdict.loads is not None
    value, names = verdict.objectives[instance.objective.value], instance.option_names
    keys, found = _keys(instance), []
    for table, own in enumerate(placement.options.tolist()):
        better = [o for o in instance.options_of(table) if keys[o] < keys[own]]
        others = _Others(instance, verdict.loads, placement, table) if better else None
        for option in better:
            possible = instance.allowed[option] and not _conflicts(
                instance, placement, table, option
            )
            if others is not None and possible and others.with_(option) <= value:
                found.append(Needless(instance.table_names[table], names[own], names[option]))
                break
    return found


def suspects(instance: Instance, placement: Placement) -> int:
    """How many tables use host memory or have several shards: those that may be needless."""
    keys = _keys(instance)
    return sum(keys[option] > (0, 1) for option in placement.options)


def _keys(instance: Instance) -> list[tuple[float, int]]:
    """Every option's share of the memory beyond ranks, and its number of shards."""
    counts = shard_counts(instance)
    host = [i for i, r in enumerate(instance.resources) if r.scope != Scope.RANK]
    use = per_option(instance, instance.shard_use[:, host] * counts[:, None])
    rooms = [max(1, int(instance.resources[i].capacity.sum())) for i in host]
    shares = (use / np.asarray(rooms)).sum(axis=1)
    return list(zip(shares.tolist(), per_option(instance, counts).tolist(), strict=True))


def _conflicts(instance: Instance, placement: Placement, table: int, option: int) -> bool:
    others = np.delete(placement.options, table)
    same = others[instance.option_group[others] == instance.option_group[option]]
    level = int(instance.option_level[option])
    return bool(instance.option_group[option] >= 0 and (instance.option_level[same] != level).any())


class _Others:
    """Loads of every table but one."""

    def __init__(self, instance: Instance, loads: Loads, placement: Placement, table: int) -> None:
        own = compute_loads(instance, placement, [table])
        self._instance = instance
        self._cost, self._off = loads.cost - own.cost, loads.unplaced_cost - own.unplaced_cost
        self._use = [all_ - mine for all_, mine in zip(loads.use, own.use, strict=True)]

    def with_(self, option: int) -> float:
        """The least objective with the table at an option; infinite where nothing fits."""
        instance, fits = self._instance, True
        cost, off, use = self._cost.copy(), self._off.copy(), [u.copy() for u in self._use]
        for block in map(instance.block, instance.blocks_of(option)):
            ranks = instance.settled_ranks(block.index)
            if block.where == Where.CLUSTER:
                for i in range(block.count):
                    off += instance.shard_cost[block.entry(i)]
                    for u, amount in zip(use, instance.shard_use[block.entry(i)], strict=True):
                        u += amount
            elif ranks is not None:
                _put(instance, block, ranks, cost, use)
            else:
                fits = fits and self._assignment(block, cost, use)
        fits = fits and _fits(instance, use)
        return self._value(cost, off) if fits else np.inf

    def _assignment(self, block: BlockView, cost: IntArray, use: list[IntArray]) -> bool:
        taken: list[tuple[int, ...]] = []
        for position in range(block.count):
            best, least = None, np.inf
            for ranks in self._places(block, position, taken):
                new_cost, new_use = cost.copy(), [u.copy() for u in use]
                _put(self._instance, block, np.asarray(ranks), new_cost, new_use, position)
                fit = _fits(self._instance, new_use)
                value = self._value(new_cost, 0) if fit else np.inf
                if value < least:
                    best, least = (ranks, new_cost, new_use), value
            if best is None:
                return False
            taken.append(best[0])
            cost[:], use[:] = best[1], best[2]
        return True

    def _places(
        self, block: BlockView, position: int, taken: list[tuple[int, ...]]
    ) -> Iterator[tuple[int, ...]]:
        instance = self._instance
        machines = range(len(instance.machines)) if block.places is None else block.places
        if block.where == Where.ONE_MACHINE:
            choice = [tuple(instance.machines[m]) for m in machines]
        elif block.where == Where.ANY_RANK:
            choice = [(r,) for r in block.places or range(instance.num_ranks)]
        else:
            at = {int(instance.machine_of[r]) for t in taken for r in t}
            choice = [(r,) for m in at or machines for r in instance.machines[m]]
        return (ranks for ranks in choice if not (block.distinct and ranks in taken))

    def _value(self, cost: IntArray, off: IntArray | int) -> float:
        if self._instance.objective == Objective.TOTAL:
            return int(cost.sum() + np.sum(off))
        if self._instance.objective == Objective.BUSIEST_RANK:
            return int(cost.sum(axis=1).max())
        return int(cost.max(axis=0).sum())


def _fits(instance: Instance, use: list[IntArray]) -> bool:
    pairs = zip(use, instance.resources, strict=True)
    return all((amount <= resource.capacity).all() for amount, resource in pairs)


def _put(
    instance: Instance, block: BlockView, ranks: IntArray, cost: IntArray, use: list[IntArray],
    position: int | None = None,
) -> None:  # fmt: skip
    """Add a block (or one position of it) at ranks to the loads."""
    if position is None or (block.where == Where.ONE_MACHINE and not block.shared):
        entries = position_entries(instance, block, ranks) if position is None else block.entries
    else:
        entries = np.full(
            len(ranks), block.entry(position) if not block.shared else block.entries[0]
        )
    np.add.at(cost, ranks, instance.shard_cost[entries])
    for index, resource in enumerate(instance.resources):
        at = {Scope.RANK: ranks, Scope.MACHINE: instance.machine_of[ranks]}.get(
            resource.scope, np.zeros(len(ranks), dtype=np.int64)
        )
        np.add.at(use[index], at, instance.shard_use[entries, index])


def main() -> None:
    """Judge a plan.json: which tables are in host memory or cut without need?"""
    from milp_planner import read_plan

    plan = read_plan(sys.argv[1])
    placement = plan.outcome.placement
    assert placement is not None
    found = needless(plan.instance, placement)
    for one in found:
        print(f"{one.table}: {one.now} could be {one.instead}")
    moved = suspects(plan.instance, placement)
    print(f"{moved} of {len(plan.tables)} tables in host memory or cut; {len(found)} without need")


if __name__ == "__main__":
    main()
