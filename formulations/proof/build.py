"""Number the choices of a proof, and sum up what each adds to the rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.model.partition import by_class, by_machine, pooled
from formulations.proof.rows import FREE, Layout, Rows, measures
from formulations.proof.shards import Items, Shards, Terms, joined, starts_of


@lru_cache(maxsize=3)
def build_rows(instance: Instance, apart: bool = False, together: bool = False) -> Rows:
    """The rows of an instance, cached for its next use.

    Parameters
    ----------
    instance : Instance
    apart, together : bool
        Ranks that are alike are pooled; with ``apart`` only within each machine, with ``together``
        all ranks are. What options add is then the least that they add to any place, if no cost is
        negative: equal multipliers for all ranks prove no more over these rows than over finer
        ones.
    """
    return _Builder(instance, apart, together).build()


class _Builder:
    """Lays the rows out, and fills them with what :class:`Shards` finds."""

    def __init__(self, instance: Instance, apart: bool, together: bool) -> None:
        self._instance, self._apart = instance, apart
        partition = pooled if together else by_machine if apart else by_class
        self._cells = partition(instance)
        self._measures = measures(instance)
        named = instance.option_group >= 0
        columns = (instance.table_of, instance.option_group, instance.option_level)
        fused = np.unique(np.stack([c[named] for c in columns], axis=1), axis=0)
        self._fused = {(t, g, level): i for i, (t, g, level) in enumerate(fused.tolist())}
        self._layout = self._lay_out()
        self._moves = self._moving()

    def _lay_out(self) -> Layout:
        instance, cells, width = self._instance, self._cells, self._measures.value.shape[1]
        at = len(self._measures.costs) * cells.count + (instance.objective == Objective.TOTAL)
        resource = []
        for r in instance.resources:
            resource.append(at)
            at += {Scope.RANK: cells.count, Scope.MACHINE: cells.groups}.get(r.scope, 1)
        sets = 1 + (len(instance.machines) if self._apart else 0)
        cover, chief = at, at + sets * width
        end = chief + sets * width * instance.num_tables
        size = end + 3 + len(self._fused)
        return Layout(0, resource, cover, chief, end, end + 1, end + 2, end + 3, size)

    def _moving(self) -> IntArray:
        """1 for options that move their table, else 0; int64 array [options]."""
        instance = self._instance
        now = {c.table: c.option for c in instance.current}
        moves = np.isin(instance.table_of, list(now)).astype(np.int64)
        moves[[option for option in now.values() if option >= 0]] = 0
        return moves

    def build(self) -> Rows:
        """Number the choices, and sum up what each adds to the rows."""
        instance = self._instance
        shards = Shards(instance, self._apart, self._cells, self._measures, self._layout)
        slots, possible = shards.slots, shards.possible
        block, order, times, role = map(joined, (slots.block, slots.order, slots.times, slots.role))
        slot, group = joined(slots.slot), joined(slots.group)
        option = instance.option_of[block]
        count = np.bincount(slot, minlength=len(block))
        possible[option[count == 0]] = False
        alive = possible[option]
        merged = alive & (count == 1) & (role == FREE)  # a single place needs no slot
        kept = np.flatnonzero(alive & ~merged)
        kept = kept[np.lexsort((order[kept], block[kept]))]
        place = np.full(len(block), -1)
        place[kept] = np.arange(len(kept))
        chosen = np.argsort(place[slot], kind="stable")
        chosen = chosen[np.searchsorted(place[slot][chosen], 0) :]
        first = instance.num_options
        number = np.where(merged[slot], option[slot], -1)
        number[chosen] = first + np.arange(len(chosen))
        factor = np.where(merged[slot], times[slot], 1)

        items = [*shards.own]
        moves = [self._moves[i.of] for i in shards.own]
        terms = [*shards.terms]
        for i in slots.items:
            some = number[i.of] >= 0
            of = i.of[some]
            times_of = i.times[some] * factor[of]
            items.append(Items(number[of], i.entry[some], i.cell[some], times_of))
            moves.append(self._moves[option[slot[of]]])
        for of, row, amount in slots.terms:
            some = number[of] >= 0
            terms.append((number[of[some]], row[some], amount[some] * factor[of[some]]))
        found = [*self._options_terms(), *self._summed(items, moves)]
        if terms:
            of, row, amount = map(joined, zip(*terms, strict=True))
            found.append(_combined(of, row, amount, self._layout.size))
        start, row, amount = self._sorted(found, first + len(chosen))
        return Rows(
            instance, self._cells, self._apart, self._measures, self._layout, start, row, amount,
            option[kept], times[kept], role[kept],
            first + np.append(0, np.cumsum(count[kept])),
            np.append(np.full(first, -1), group[chosen]),
            possible, self._limits(), list(self._fused),
        )  # fmt: skip

    def _options_terms(self) -> list[Terms]:
        """What options add to rows whatever the places of their shards."""
        instance, layout, measured = self._instance, self._layout, self._measures
        every, table = np.arange(instance.num_options), instance.table_of
        named = np.flatnonzero(instance.option_group >= 0)
        columns = table, instance.option_group, instance.option_level
        keys = zip(*(column[named].tolist() for column in columns), strict=True)
        fused = np.asarray([self._fused[key] for key in keys], dtype=np.int64)
        found = [
            (every, np.full(len(every), layout.moved_tables), self._moves),
            (named, layout.fusion + fused, np.ones_like(named)),
        ]
        for f in range(measured.value.shape[1]):
            found.append((every, np.full(len(every), layout.cover + f), measured.floor[:, f]))
            chief = layout.chief + f * instance.num_tables + table
            found.append((every, chief, measured.excess[:, f]))
        return found

    def _summed(self, items: list[Items], moves: list[IntArray]) -> list[Terms]:
        """What the shards of every option and choice add to the rows of their places."""
        instance, layout, cells = self._instance, self._layout, self._cells
        of, entry = joined([i.of for i in items]), joined([i.entry for i in items])
        cell, times = joined([i.cell for i in items]), joined([i.times for i in items])
        rows: dict[Scope, list[int]] = {scope: [] for scope in Scope}
        rows[Scope.RANK] += [
            layout.cost + f * cells.count for f in range(len(self._measures.costs))
        ]
        columns = {scope: [instance.shard_use[:, :0]] for scope in Scope}
        columns[Scope.RANK].append(self._measures.value[:, : len(self._measures.costs)])
        for i, resource in enumerate(instance.resources):
            rows[resource.scope].append(layout.resource[i])
            columns[resource.scope].append(instance.shard_use[:, i : i + 1])
        if instance.objective == Objective.TOTAL:
            rows[Scope.CLUSTER].append(layout.cost)
            columns[Scope.CLUSTER].append(instance.shard_cost.sum(axis=1, keepdims=True))
        if instance.current:
            rows[Scope.CLUSTER].append(layout.moved_bytes)
            columns[Scope.CLUSTER].append(instance.shard_move[:, None])
        found = []
        for scope in Scope:
            if not rows[scope]:
                continue
            place = {Scope.RANK: cell, Scope.MACHINE: cells.cell_group[cell]}.get(scope, 0 * cell)
            key = of * cells.count + place
            order = np.argsort(key, kind="stable")
            amount = np.hstack(columns[scope])[entry[order]] * times[order, None]
            if scope == Scope.CLUSTER and instance.current:
                amount[:, -1] *= joined(moves)[order]
            key = key[order]
            first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
            sums = np.add.reduceat(amount, first, axis=0) if len(first) else amount
            at = order[first]
            for row, total in zip(rows[scope], sums.T, strict=True):
                found.append((of[at], row + place[at], total))
        return found

    def _sorted(self, found: list[Terms], choices: int) -> tuple[IntArray, IntArray, IntArray]:
        """Start, row and amount of all terms, choice by choice; at least one each."""
        kept = []
        for of, row, amount in found:  # each ordered by choice
            there = np.flatnonzero(amount)
            kept.append((of[there], row[there], amount[there]))
        length = np.bincount(joined([of for of, _, _ in kept]), minlength=choices)
        none = np.flatnonzero(length == 0)
        kept.append((none, np.full(len(none), self._layout.nothing), np.zeros_like(none)))
        length[none] = 1
        start = starts_of(length)
        end, rows, amounts = start[:-1].copy(), *np.zeros((2, start[-1]), dtype=np.int64)
        for of, row, amount in kept:
            runs = starts_of(np.bincount(of, minlength=choices))
            at = end[of] + np.arange(len(of)) - runs[of]
            rows[at], amounts[at] = row, amount
            end += np.diff(runs)
        return start, rows, amounts

    def _limits(self) -> IntArray:
        instance, cells, layout = self._instance, self._cells, self._layout
        limit = np.zeros(layout.size, dtype=np.int64)
        for first, resource in zip(layout.resource, instance.resources, strict=True):
            part = {Scope.RANK: cells.cell_of, Scope.MACHINE: cells.group_of}.get(
                resource.scope, np.zeros(1, dtype=np.int64)
            )
            np.add.at(limit, first + part, resource.capacity)
        for f, hidden in enumerate(self._measures.hidden.tolist()):
            first = layout.cost + f * cells.count
            limit[first : first + cells.count] = hidden * cells.cell_size
        width, tables = self._measures.value.shape[1], instance.num_tables
        for index in range(1 + (len(instance.machines) if self._apart else 0)):
            ranks = range(instance.num_ranks) if index == 0 else instance.machines[index - 1]
            most = [*self._measures.hidden.tolist()]
            for ranked in self._measures.ranked:
                most.append(int(instance.resources[ranked].capacity[list(ranks)].max()))
            for f, each in enumerate(most):
                first = layout.chief + (index * width + f) * tables
                limit[first : first + tables] = each
        limit[layout.moved_tables] = instance.max_moved_tables or 0
        limit[layout.moved_bytes] = instance.max_moved_bytes or 0
        return limit


def _combined(
    of: IntArray, row: IntArray, amount: IntArray, rows: int
) -> tuple[IntArray, IntArray, IntArray]:
    """The terms with one amount for each choice and row."""
    key, index = np.unique(of * rows + row, return_inverse=True)
    total = np.zeros(len(key), dtype=np.int64)
    np.add.at(total, index, amount)
    return key // rows, key % rows, total
