"""The cheapest way to place every table at given prices, in exact integers, without a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from formulations.bounds.components import BigArray, Component, components
from formulations.bounds.own import own_cost, per_option, shard_counts, usable
from formulations.certificate import Certificate
from formulations.instance import BlockView, Instance, Objective, Scope, Where


def least_priced(instance: Instance, certificate: Certificate) -> int | None:
    """Σ over fusion components of their cheapest priced choice, times D.

    Parameters
    ----------
    instance : Instance
    certificate : Certificate

    Returns
    -------
    int or None
        None when some table has no option left.
    """
    keep = usable(instance)
    if certificate.cutoff is not None and certificate.kind == "bound":
        keep &= own_cost(instance) < certificate.cutoff
    values = priced_options(instance, certificate)
    total = 0
    for tables, groups in components(instance, keep):
        least = Component(instance, values, keep, tables, groups).least
        if least is None:
            return None
        total += least
    return total


def priced_options(instance: Instance, certificate: Certificate) -> BigArray:
    """Least priced value of each option over its places, object array [options] of int.

    Distinctness is used where every shard is alike, and relaxed elsewhere; limits on moves are
    relaxed. Both make the value smaller, never larger.
    """
    if not instance.num_options:
        return np.zeros(0, dtype=object)
    prices = _Prices(instance, certificate)
    if prices.uniform:
        counts = shard_counts(instance).astype(object)
        return np.asarray(per_option(instance, prices.values[:, 0] * counts), dtype=object)
    values = np.zeros(instance.num_options, dtype=object)
    pinned = {p.option: p.ranks for p in instance.pins if p.ranks is not None}
    for option in range(instance.num_options):
        ranks = pinned.get(option)
        values[option] = sum(
            prices.block(instance.block(b), None if ranks is None else ranks[i])
            for i, b in enumerate(instance.blocks_of(option))
        )
    return values


class _Prices:
    """Priced value of every shard entry on every kind of rank.

    Ranks with the same column of prices form a kind.

    Attributes
    ----------
    values : object array [entries, kinds]
    uniform : bool
        One kind of rank and machines of one size, so places do not matter.
    """

    def __init__(self, instance: Instance, certificate: Certificate) -> None:
        self._instance = instance
        columns = list(zip(*_rank_prices(instance, certificate), strict=True))
        kinds: dict[tuple[int, ...], int] = {}
        kind = [kinds.setdefault(column, len(kinds)) for column in columns]
        self._kind = np.asarray(kind, dtype=np.int64)
        table = np.asarray(list(kinds), dtype=object).T
        off = np.repeat(instance.block_where == Where.CLUSTER, np.diff(instance.block_shards))
        cost = instance.shard_cost.astype(object)
        if instance.objective != Objective.TOTAL:
            cost[off] = 0
        features = np.concatenate([cost, instance.shard_use.astype(object)], axis=1)
        self.values: BigArray = features.dot(table)
        plain = not (instance.place_sets or instance.pins)
        sizes = {len(m) for m in instance.machines}
        self.uniform = len(kinds) == 1 and len(sizes) == 1 and (plain or len(kinds) == 1)
        self._machine_kinds = _machine_kinds(instance, self._kind)

    def block(self, block: BlockView, pinned: Sequence[int] | None) -> int:
        """Least value of a block over the places it may take."""
        if block.where == Where.CLUSTER:
            return sum(int(self.values[block.entry(i), 0]) for i in range(block.count))
        if pinned is not None:
            return self._pinned(block, np.asarray(pinned, dtype=np.int64))
        if block.where == Where.EVERY_RANK:
            return self._fixed(block, self._kind)
        if block.where == Where.LIST:
            return self._fixed(block, self._kind[list(block.places or ())])
        if block.where == Where.ANY_RANK:
            kinds = self._kind if block.places is None else self._kind[list(block.places)]
            return self._any(block, np.bincount(kinds, minlength=self.values.shape[1]))
        if block.where == Where.ONE_MACHINE:
            return self._machines(block)
        return min(
            self._any(block, np.bincount(list(kinds), minlength=self.values.shape[1]))
            for kinds in self._allowed_machines(block)
        )

    def _fixed(self, block: BlockView, kinds: np.ndarray) -> int:
        if block.shared:
            times = np.bincount(kinds, minlength=self.values.shape[1])
            return int(self.values[block.entries[0]].dot(times.astype(object)))
        return int(self.values[block.entries, kinds].sum())

    def _any(self, block: BlockView, room: np.ndarray) -> int:
        """Shards on ranks of which ``room`` [kinds] says how many there are of each kind."""
        there = np.flatnonzero(room)
        if not (block.shared and block.distinct):
            low = self.values[block.entries][:, there].min(axis=1)
            return int(low[0]) * block.count if block.shared else int(low.sum())
        row, left, total = self.values[block.entries[0]], block.count, 0
        for kind in sorted(there, key=lambda k: row[k]):
            take = min(left, int(room[kind]))
            total, left = total + take * int(row[kind]), left - take
        # Shards without a rank of their own cannot be placed here at all: any value is valid.
        return total + left * max(int(row[kind]) for kind in there)

    def _machines(self, block: BlockView) -> int:
        counts = self._allowed_machines(block)
        each = {kinds: self._fixed(block, np.asarray(kinds, dtype=np.int64)) for kinds in counts}
        if not block.distinct:
            return min(each.values()) * block.count
        total, left = 0, block.count
        for kinds in sorted(each, key=lambda k: each[k]):
            take = min(left, counts[kinds])
            total, left = total + take * each[kinds], left - take
        return total

    def _allowed_machines(self, block: BlockView) -> Mapping[tuple[int, ...], int]:
        """How many machines there are of each row of kinds, of those the block may take."""
        machines = range(len(self._instance.machines)) if block.places is None else block.places
        counts: dict[tuple[int, ...], int] = {}
        for machine in machines:
            kinds = self._machine_kinds[machine]
            counts[kinds] = counts.get(kinds, 0) + 1
        return counts

    def _pinned(self, block: BlockView, ranks: np.ndarray) -> int:
        if block.shared:
            return self._fixed(block, self._kind[ranks])
        there = np.unique(self._kind[ranks])
        repeat = block.count if block.where == Where.ONE_MACHINE else 1
        return int(self.values[block.entries][:, there].min(axis=1).sum()) * repeat


def _machine_kinds(instance: Instance, kind: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(int(kind[r]) for r in ranks) for ranks in instance.machines]


def _rank_prices(instance: Instance, certificate: Certificate) -> list[list[int]]:
    """What a unit of each phase's cost and each resource costs at each rank, rows of [ranks]."""
    ranks = range(instance.num_ranks)
    if certificate.kind == "infeasible":
        rows = [[0 for _ in ranks] for _ in instance.phases]
    elif instance.objective == Objective.TOTAL:
        rows = [[certificate.denominator for _ in ranks] for _ in instance.phases]
    elif instance.objective == Objective.BUSIEST_RANK:
        rows = [list(certificate.weights[0]) for _ in instance.phases]
    else:
        rows = [list(row) for row in certificate.weights]
    for resource in instance.resources:
        prices = certificate.prices[resource.name]
        if resource.scope == Scope.RANK:
            rows.append([prices[r] for r in ranks])
        elif resource.scope == Scope.MACHINE:
            rows.append([prices[int(instance.machine_of[r])] for r in ranks])
        else:
            rows.append([prices[0] for _ in ranks])
    return rows
