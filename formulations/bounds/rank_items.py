"""What one rank may hold: the shards of a set of options, and the best-paid handful of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.cpsat import Limits, solve_cpsat
from formulations.aggregate.linear import LinearModel
from formulations.bounds.own import shard_counts
from formulations.instance import Instance, IntArray, Scope, Where


@dataclass(frozen=True, eq=False)
class RankClass:
    """Ranks with the same capacities: ``size`` of them, ``capacity`` [rank resources]."""

    size: int
    capacity: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RankItems:
    """Shard entries a rank may hold, arrays [items].

    Attributes
    ----------
    table, option, block : int64 arrays
        What each shard entry belongs to.
    count : int64 array
        Shards like it that a plan with its option places (at least).
    most : int64 array
        Shards of its block that one rank may hold.
    use : int64 array [items, rank resources]
    cost : int64 array
        Sum over phases.
    """

    table: IntArray
    option: IntArray
    block: IntArray
    count: IntArray
    most: IntArray
    use: IntArray
    cost: IntArray

    @property
    def number(self) -> int:
        """How many items there are."""
        return len(self.table)

    def fitting(self, capacity: Iterable[int], target: int) -> np.ndarray:
        """Items that fit a rank of this capacity without costing more than the target."""
        return (self.use <= np.asarray(list(capacity))).all(axis=1) & (self.cost <= target)


@dataclass(frozen=True, eq=False)
class Priced:
    """A handful of shards one rank may hold, at prices.

    Attributes
    ----------
    most : int
        No handful pays more.
    held : int64 array [items]
        The best one found.
    work : float
        CP-SAT's deterministic seconds.
    """

    most: int
    held: IntArray
    work: float = 0.0


def rank_items(instance: Instance, keep: np.ndarray) -> RankItems:
    """The items of the options kept; places a block may not take are not looked at."""
    block = np.repeat(np.arange(instance.num_blocks), np.diff(instance.block_shards))
    placed = instance.block_where[block] != Where.CLUSTER
    entry = np.flatnonzero(keep[instance.option_of[block]] & placed)
    block = block[entry]
    option = instance.option_of[block]
    once = instance.block_distinct | np.isin(instance.block_where, [Where.EVERY_RANK, Where.LIST])
    most = np.where(once, 1, instance.block_count)
    at_rank = [i for i, r in enumerate(instance.resources) if r.scope == Scope.RANK]
    return RankItems(
        table=instance.table_of[option],
        option=option,
        block=block,
        count=shard_counts(instance)[entry],
        most=most[block],
        use=instance.shard_use[entry][:, at_rank],
        cost=instance.shard_cost[entry].sum(axis=1),
    )


def rank_classes(instance: Instance) -> list[RankClass]:
    """Ranks by their capacities."""
    rows = [r.capacity.tolist() for r in instance.resources if r.scope == Scope.RANK]
    sizes: dict[tuple[int, ...], int] = {}
    for rank in range(instance.num_ranks):
        key = tuple(row[rank] for row in rows)
        sizes[key] = sizes.get(key, 0) + 1
    return [RankClass(size, capacity) for capacity, size in sizes.items()]


def best_pattern(
    items: RankItems, rank: RankClass, target: int, price: IntArray, limits: Limits
) -> Priced | None:
    """The handful of shards one rank may hold that pays most.

    A rank holds shards of one option of a table at most, within its capacities, costing
    ``target`` or less together.

    Parameters
    ----------
    items : RankItems
    rank : RankClass
    target : int
    price : int64 array [items]
        Paid for each shard, 0 or more; sums must stay below 2^53.
    limits : Limits
        For CP-SAT.

    Returns
    -------
    Priced or None
        None: no answer in time.
    """
    pattern = np.zeros(items.number, dtype=np.int64)
    pays = np.flatnonzero(items.fitting(rank.capacity, target) & (price > 0))
    if not len(pays):
        return Priced(0, pattern)
    result = solve_cpsat(_pricing_model(items, rank, target, price, pays), limits)
    if result.status not in ("optimal", "feasible") or result.values is None:
        return None
    assert result.bound is not None
    pattern[pays] = result.values[: len(pays)]
    return Priced(-result.bound, pattern, result.work)


def _pricing_model(
    items: RankItems, rank: RankClass, target: int, price: IntArray, pays: IntArray
) -> LinearModel:
    model = LinearModel()
    for item in pays.tolist():
        model.columns(1, upper=int(min(items.most[item], items.count[item])))
    options, own = np.unique(items.option[pays], return_inverse=True)
    first = model.columns(len(options))
    blocks, block = np.unique(items.block[pays], return_inverse=True)
    for index in range(len(blocks)):
        inside = np.flatnonzero(block == index)
        most = int(items.most[pays[inside[0]]])
        chosen = first + int(own[inside[0]])
        model.row([*inside.tolist(), chosen], [1] * len(inside) + [-most], high=0)
    table_of = np.zeros(len(options), dtype=np.int64)
    table_of[own] = items.table[pays]
    for table in np.unique(table_of).tolist():
        columns = (first + np.flatnonzero(table_of == table)).tolist()
        model.row(columns, [1] * len(columns), high=1)
    for index, room in enumerate(rank.capacity):
        model.row(np.arange(len(pays)), items.use[pays, index], high=room)
    model.row(np.arange(len(pays)), items.cost[pays], high=target)
    model.objective = {i: -int(p) for i, p in enumerate(price[pays].tolist())}
    return model
