"""An oracle for small instances: every option of every table at every allowed set of places.

Deliberately written apart from the product: it shares only the Instance with it, so an error in the
product's own sums cannot hide here.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from formulations.instance import BlockView, Instance, Scope, Where
from formulations.result.placement import Placement

Ranks = tuple[int, ...]
#: No level yet: less than any level an instance may name.
OPEN = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Choice:
    """One table at one option on given ranks.

    ``loads`` holds, one after another, the cost of every (rank, phase), the cost off ranks of
    every phase, and the use of every resource at every place.
    """

    option: int
    ranks: tuple[Ranks, ...]
    loads: tuple[int, ...]
    moved: int
    moved_bytes: int


@dataclass(frozen=True)
class Truth:
    """The optimum and one plan that reaches it; both None when the instance is infeasible."""

    objective: int | None
    placement: Placement | None


def brute_force(instance: Instance, limit: int = 3_000_000) -> Truth:
    """Enumerate everything.

    Raises
    ------
    ValueError
        When there are more than ``limit`` combinations even after merging equal ones.
    """
    lists = [_choices(instance, t) for t in range(instance.num_tables)]
    groups = len(instance.fusion_groups)
    width = _width(instance)
    # A state: loads, moved tables, moved bytes, level of each group.
    states = np.concatenate(
        [np.zeros((1, width + 2), dtype=np.int64), np.full((1, groups), OPEN, dtype=np.int64)],
        axis=1,
    )
    trail: list[tuple[np.ndarray, np.ndarray]] = []
    for choices in lists:
        if len(states) * max(1, len(choices)) > limit:
            raise ValueError(f"{len(states)} × {len(choices)} combinations are too many")
        states, parents, taken = _extend(instance, states, choices)
        trail.append((parents, taken))
    if not len(states):
        return Truth(None, None)
    values = np.asarray([_objective(instance, s) for s in states])
    best = int(values.argmin())
    return Truth(int(values[best]), _rebuild(instance, lists, trail, best))


def combinations(instance: Instance) -> int:
    """How many plans there are: an upper bound on the work of :func:`brute_force`."""
    return prod(
        sum(
            prod(_ways(instance, instance.block(b)) for b in instance.blocks_of(o))
            for o in instance.options_of(t)
        )
        for t in range(instance.num_tables)
    )


def table_placements(instance: Instance, option: int) -> Iterator[tuple[Ranks, ...]]:
    """Every way to put the blocks of an option on ranks."""
    blocks = [instance.block(b) for b in instance.blocks_of(option)]
    return itertools.product(*(_block_placements(instance, b) for b in blocks))


def _ways(instance: Instance, block: BlockView) -> int:
    return sum(1 for _ in _block_placements(instance, block))


def _block_placements(instance: Instance, block: BlockView) -> Iterator[Ranks]:
    ranks = range(instance.num_ranks)
    if block.where == Where.EVERY_RANK:
        yield tuple(ranks)
    elif block.where == Where.LIST:
        yield tuple(block.places or ())
    elif block.where == Where.CLUSTER:
        yield ()
    elif block.where == Where.ANY_RANK:
        yield from _any(block, ranks if block.places is None else block.places)
    else:
        machines = range(len(instance.machines)) if block.places is None else block.places
        if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
            for machine in machines:
                yield from _any(block, instance.machines[machine])
        else:
            pick = (
                itertools.combinations if block.distinct
                else itertools.combinations_with_replacement
            )  # fmt: skip
            for chosen in pick(machines, block.count):
                yield tuple(r for m in chosen for r in instance.machines[m])


def _any(block: BlockView, ranks: range | Ranks) -> Iterator[Ranks]:
    if block.shared:
        pick = itertools.combinations if block.distinct else itertools.combinations_with_replacement
        yield from pick(ranks, block.count)
    elif block.distinct:
        yield from itertools.permutations(ranks, block.count)
    else:
        yield from itertools.product(ranks, repeat=block.count)


def _choices(instance: Instance, table: int) -> list[Choice]:
    """Allowed placements of a table, one for each distinct effect."""
    pin = next((p for p in instance.pins if p.table == table), None)
    found: dict[tuple[object, ...], Choice] = {}
    for option in instance.options_of(table):
        if (table, option) in instance.forbidden or (pin is not None and pin.option != option):
            continue
        for ranks in table_placements(instance, option):
            if pin is not None and pin.ranks is not None and not _same(pin.ranks, ranks):
                continue
            choice = _choice(instance, table, option, ranks)
            fusion = (int(instance.option_group[option]), int(instance.option_level[option]))
            found.setdefault((fusion, choice.loads, choice.moved, choice.moved_bytes), choice)
    return list(found.values())


def _same(a: tuple[Ranks, ...], b: tuple[Ranks, ...]) -> bool:
    return [sorted(x) for x in a] == [sorted(x) for x in b]


def _choice(instance: Instance, table: int, option: int, ranks: tuple[Ranks, ...]) -> Choice:
    loads = [0] * _width(instance)
    size = 0
    for index, placed in zip(instance.blocks_of(option), ranks, strict=True):
        for entry, rank in _shards(instance, instance.block(index), placed):
            _add(instance, loads, entry, rank)
            size += int(instance.shard_move[entry])
    now = next((c for c in instance.current if c.table == table), None)
    moved = now is not None and (now.option != option or not _same(now.ranks, ranks))
    return Choice(option, ranks, tuple(loads), int(moved), size if moved else 0)


def _shards(instance: Instance, block: BlockView, ranks: Ranks) -> Iterator[tuple[int, int | None]]:
    if block.where == Where.CLUSTER:
        for position in range(block.count):
            yield block.entry(position), None
        return
    for position, rank in enumerate(ranks):
        local = position
        if block.where == Where.ONE_MACHINE and not block.shared:
            local = position % len(block.entries)
        yield block.entry(local), rank


def _add(instance: Instance, loads: list[int], entry: int, rank: int | None) -> None:
    phases = len(instance.phases)
    at = (instance.num_ranks if rank is None else rank) * phases
    for phase in range(phases):
        loads[at + phase] += int(instance.shard_cost[entry, phase])
    offset = (instance.num_ranks + 1) * phases
    for column, resource in enumerate(instance.resources):
        use = int(instance.shard_use[entry, column])
        if resource.scope == Scope.CLUSTER:
            loads[offset] += use
        elif rank is not None:
            place = rank if resource.scope == Scope.RANK else int(instance.machine_of[rank])
            loads[offset + place] += use
        offset += len(resource.capacity)


def _width(instance: Instance) -> int:
    places = sum(len(r.capacity) for r in instance.resources)
    return (instance.num_ranks + 1) * len(instance.phases) + places


def _extend(
    instance: Instance, states: np.ndarray, choices: list[Choice]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States after one more table, with their parents and the choice taken."""
    width = _width(instance)
    parts, parents, taken = [states[:0]], [np.empty(0, int)], [np.empty(0, int)]
    for index, choice in enumerate(choices):
        new = states.copy()
        new[:, :width] += np.asarray(choice.loads, dtype=np.int64)
        new[:, width] += choice.moved
        new[:, width + 1] += choice.moved_bytes
        keep = _within(instance, new)
        group = int(instance.option_group[choice.option])
        if group >= 0:
            level = int(instance.option_level[choice.option])
            column = new[:, width + 2 + group]
            keep &= (column == OPEN) | (column == level)
            new[:, width + 2 + group] = level
        parts.append(new[keep])
        parents.append(np.flatnonzero(keep))
        taken.append(np.full(int(keep.sum()), index))
    merged, first = np.unique(np.concatenate(parts), axis=0, return_index=True)
    return merged, np.concatenate(parents)[first], np.concatenate(taken)[first]


def _within(instance: Instance, states: np.ndarray) -> np.ndarray:
    width = _width(instance)
    start = (instance.num_ranks + 1) * len(instance.phases)
    capacity = [r.capacity for r in instance.resources]
    keep = np.ones(len(states), dtype=bool)
    if capacity:
        keep &= (states[:, start:width] <= np.concatenate(capacity)).all(axis=1)
    if instance.max_moved_tables is not None:
        keep &= states[:, width] <= instance.max_moved_tables
    if instance.max_moved_bytes is not None:
        keep &= states[:, width + 1] <= instance.max_moved_bytes
    return keep


def _objective(instance: Instance, state: np.ndarray) -> int:
    shape = (instance.num_ranks + 1, len(instance.phases))
    cost = state[: shape[0] * shape[1]].reshape(shape)
    if instance.objective == "total":
        return int(cost.sum())
    if instance.objective == "busiest_rank":
        return max(int(cost[r].sum()) for r in range(instance.num_ranks))
    hidden = instance.hidden if instance.objective == "pipelined_step" else [0] * shape[1]
    return sum(max(0, int(cost[:-1, p].max()) - hidden[p]) for p in range(shape[1]))


def _rebuild(
    instance: Instance,
    lists: list[list[Choice]],
    trail: list[tuple[np.ndarray, np.ndarray]],
    state: int,
) -> Placement:
    chosen: list[Choice] = []
    for choices, (parents, taken) in zip(reversed(lists), reversed(trail), strict=True):
        chosen.append(choices[int(taken[state])])
        state = int(parents[state])
    chosen.reverse()
    return Placement(
        options=np.asarray([c.option for c in chosen], dtype=np.int64),
        ranks=[[np.asarray(r, dtype=np.int64) for r in c.ranks] for c in chosen],
    )
