"""Valid cuts: a table's largest shard plus the load that every rank carries.

The rank that holds a table's largest shard also carries whatever lies on every rank of its region.
So for every table and region, (least load that covers the region) + (largest shard of the table
there) ≤ z, and likewise ≤ the largest capacity there. Only one shard of a candidate counts, because
two may lie on two ranks. Regions are the cells of several ranks; where every cell is one rank, all
ranks are one region.
"""

from __future__ import annotations

import numpy as np

from formulations.instance import IntArray, Scope
from formulations.model.columns import Columns, Table
from formulations.model.limits import ALL
from formulations.model.linear import Name, merged
from formulations.model.loads import Loads, Row, collect
from formulations.model.peaks import Goal

Least = dict[int, tuple[IntArray, IntArray]]


def add_largest(loads: Loads, columns: Columns, goal: Goal) -> None:
    """Add the rows ("largest", "peak" | "capacity", name, table, region) and the pooled peaks."""
    instance, partition = columns.candidates.instance, columns.partition
    if len(partition.cell_of) < 2 or not columns.candidates.count:
        return
    largest = _Largest(loads, columns)
    for phase, values, z, hidden in goal.phases:
        if partition.single:
            row = loads.everything(values, off=False)
            column, amount = np.append(row.column, z), np.append(row.coefficient, -row.size)
            loads.model.row(("peak", phase, ALL), column, amount, high=row.size * hidden)
        largest.rows(("largest", "peak", phase), values, z, np.full(len(largest.size), hidden))
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.RANK:
            most = np.zeros(len(largest.size), dtype=np.int64)
            np.maximum.at(most, largest.region_of[partition.cell_of], resource.capacity)
            name = ("largest", "capacity", resource.name)
            largest.rows(name, instance.shard_use[:, index], None, most)


class _Largest:
    """Shards that candidates certainly have in a region, and shards on all ranks of it.

    Attributes
    ----------
    region_of : int64 array [cells]
    size : int64 array [regions]
        Ranks of each.
    """

    def __init__(self, loads: Loads, columns: Columns) -> None:
        self._loads, self._columns, partition = loads, columns, columns.partition
        whole = partition.single
        cells = np.arange(len(partition.cell_size))
        self.region_of: IntArray = np.zeros_like(cells) if whole else cells
        self.size = np.bincount(self.region_of, weights=partition.cell_size).astype(np.int64)
        #: A shard like ``entry`` lies in the region whenever the columns add up to 1.
        self._seen = Table(("candidate", "region", "entry", "first", "length"))
        self._used: list[IntArray] = [columns.x[:0]]
        self._cover = Table(("column", "region", "entry"))
        self._place_spread()
        self._place_machines()

    def _see(
        self, candidate: IntArray, region: IntArray, entry: IntArray, used: IntArray,
        length: IntArray,
    ) -> None:  # fmt: skip
        first = sum(map(len, self._used)) + np.cumsum(length) - length
        self._seen.add(candidate, region, entry, first, length)
        self._used.append(used)

    def _place_spread(self) -> None:
        """Freely placed shards: x where they can only lie in this region, else the columns counting
        them."""
        columns, assignments = self._columns, self._columns.assignments
        if not len(assignments.candidate):
            return
        region = self.region_of[assignments.cell]
        kind = np.stack([assignments.candidate, assignments.block, assignments.entry], axis=1)
        owner = np.unique(kind, axis=0, return_inverse=True)[1].ravel()
        order = np.lexsort((region, owner))
        start = np.flatnonzero(
            np.append(True, (np.diff(owner[order]) != 0) | (np.diff(region[order]) != 0))
        )
        regions = np.bincount(owner[order[start]])[owner[order[start]]]
        at = order[start]
        sole = at[regions == 1]
        self._see(
            assignments.candidate[sole], region[sole], assignments.entry[sole],
            columns.x[assignments.candidate[sole]], np.ones_like(sole),
        )  # fmt: skip
        length = np.diff(np.append(start, len(order)))
        several = regions > 1
        mine = np.repeat(several, length)
        if several.any():
            self._place_parted(at[several], length[several], order[mine], region)

    def _place_parted(
        self, at: IntArray, length: IntArray, assignment: IntArray, region: IntArray
    ) -> None:
        """Shards that may lie in several regions: a binary where more than one may lie in a
        region."""
        columns, assignments = self._columns, self._columns.assignments
        alone = assignments.count[at] == 1
        of = np.repeat(np.arange(len(at)), length)
        lone = at[alone]
        self._see(
            assignments.candidate[lone], region[lone], assignments.entry[lone],
            assignments.column[assignment[alone[of]]], length[alone],
        )  # fmt: skip
        many = at[~alone]
        made = columns.model.columns(len(many))
        row = np.cumsum(~alone) - 1
        some = assignment[~alone[of]]
        entries = (
            np.concatenate([row[of[~alone[of]]], np.arange(len(many))]),
            np.concatenate([assignments.column[some], made]),
            np.concatenate([assignments.each[some], -assignments.count[many]]),
        )
        keys = np.stack(
            [assignments.candidate[many], assignments.block[many], region[many]], axis=1
        )
        columns.model.rows(("assignment",), keys, entries, high=0)
        one = np.ones_like(many)
        self._see(assignments.candidate[many], region[many], assignments.entry[many], made, one)

    def _place_machines(self) -> None:
        """Whole machines cover the regions inside one machine; in others one of their shards
        lies."""
        columns, partition = self._columns, self._columns.partition
        for group, indices, taken in columns.machines:
            kinds = [partition.kinds[i] for i in indices]
            even = group.entries.shape[1] == 1
            for kind, column in zip(kinds, taken.T, strict=True):
                for cell in np.unique(kind.cells).tolist():
                    here = kind.cells == cell
                    if partition.single or partition.cell_size[cell] > here.sum():
                        continue
                    entries = group.entries if even else group.entries[:, here]
                    self._cover.add(column[:, None], cell, entries)
            for position in range(group.entries.shape[1]):
                cells = [k.cells if even else k.cells[[position]] for k in kinds]
                for region in set.intersection(*({*self.region_of[c].tolist()} for c in cells)):
                    entry = group.entries[:, position]
                    x = columns.x[group.candidate]
                    self._see(group.candidate, np.full_like(x, region), entry, x, np.ones_like(x))

    def rows(self, name: Name, values: IntArray, z: int | None, most: IntArray) -> None:
        """The rows for one measure of shards, limited by z and what is hidden, or by the largest
        capacities [regions]."""
        candidate, region, column, amount = self._largest(values)
        table = self._columns.candidates.table[candidate]
        regions = len(self.size)
        key, row = np.unique(table * regions + region, return_inverse=True)
        row = row.ravel()
        base = self._base(name, values)
        if z is None and len(key):
            top = np.zeros(len(key), dtype=np.int64)
            np.maximum.at(top, row, amount)
            bound = np.asarray([self._loads.most(b) if len(b.column) else 0 for b in base])
            tight = bound[key % regions] + top > most[key % regions]
            place = np.cumsum(tight) - 1
            used = tight[row]
            key, row = key[tight], place[row[used]]
            column, amount = column[used], amount[used]
        parts = [(row, column, amount)]
        for index, carried in enumerate(base):
            mine = np.flatnonzero(key % regions == index)
            parts.append((
                np.repeat(mine, len(carried.column)), np.tile(carried.column, len(mine)),
                np.tile(carried.coefficient, len(mine)),
            ))  # fmt: skip
        if z is not None:
            parts.append((np.arange(len(key)), np.full(len(key), z), np.full(len(key), -1)))
        entries = tuple(np.concatenate(p) for p in zip(*parts, strict=True))
        keys = np.stack([key // regions, key % regions], axis=1)
        self._loads.model.rows(name, keys, entries, high=most[key % regions])  # type: ignore[arg-type]

    def _largest(self, values: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The largest shard that each candidate certainly has in each region, as terms: candidate,
        region, column and value."""
        count, seen = self._columns.candidates.count, self._seen
        value, key = values[seen.entry], seen.region * count + seen.candidate
        order = np.lexsort((value, key))
        order = order[np.append(np.diff(key[order]) != 0, True)] if len(order) else order
        gain_key, gain = self._gains(values)
        best = np.zeros(count * len(self.size), dtype=np.int64)
        best[key[order]] = value[order]
        more = gain > best[gain_key]
        best[gain_key[more]] = gain[more]
        order = order[(value[order] > 0) & (value[order] == best[key[order]])]
        length = seen.length[order]
        run = np.repeat(np.arange(len(order)), length)
        offset = np.arange(len(run)) - (np.cumsum(length) - length)[run]
        used = np.concatenate(self._used)[seen.first[order][run] + offset]
        by_assignment, by_gain = key[order][run], gain_key[more]
        where = np.concatenate([by_assignment, by_gain])
        return (
            where % count, where // count,
            np.concatenate([used, self._columns.x[by_gain % count]]),
            np.concatenate([value[order][run], gain[more]]),
        )  # fmt: skip

    def _gains(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """The most that a candidate's fixed shards put on a rank of a region, minus the least."""
        key, low, high = self._extremes(values)
        return key[high > low], (high - low)[high > low]

    def _extremes(self, values: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Least and most that fixed shards put on a rank of a region: key, least, most."""
        candidate, rank, entry, times = self._columns.candidates.fixed.by_rank
        ranks, count = len(self._columns.partition.cell_of), self._columns.candidates.count
        key, amount = merged(candidate * ranks + rank, values[entry] * times)
        candidate, rank = key // ranks, key % ranks
        region = self.region_of[self._columns.partition.cell_of[rank]]
        order = np.lexsort((candidate, region))
        key, amount = (region * count + candidate)[order], amount[order]
        start = np.flatnonzero(np.append(True, np.diff(key) != 0))[: len(key)]
        if not len(key):
            return key, amount, amount
        low, high = np.minimum.reduceat(amount, start), np.maximum.reduceat(amount, start)
        partial = np.diff(np.append(start, len(key))) < self.size[key[start] // count]
        low = np.where(partial, np.minimum(low, 0), low)
        high = np.where(partial, np.maximum(high, 0), high)
        return key[start], low, high

    def _base(self, name: Name, values: IntArray) -> list[Row]:
        """The least load of every rank of each region, as a column where the sum is long."""
        columns, even = self._columns, self._loads.even(values)
        key, low, _ = self._extremes(values)
        covered = self._least_cover(values)
        none = (columns.x[:0], columns.x[:0])
        found = []
        for region in range(len(self.size)):
            own = (key // max(1, columns.candidates.count) == region) & (low != 0)
            extra = covered.get(region, none)
            x = columns.x[key[own] % max(1, columns.candidates.count)]
            column = np.concatenate([even.column, x, extra[0]])
            amount = np.concatenate([even.coefficient, low[own], extra[1]])
            row = Row(-1, 1, *collect(column, amount))
            found.append(self._loads.shortened(("least", *name[1:], region), row))
        return found

    def _least_cover(self, values: IntArray) -> Least:
        """The least shard that a whole machine puts on a rank of the region, per column."""
        cover, found = self._cover, Least()
        if not len(cover.column):
            return found
        key = cover.region * self._columns.model.num_columns + cover.column
        order = np.argsort(key, kind="stable")
        start = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
        least = np.minimum.reduceat(values[cover.entry][order], start)
        column, region = cover.column[order][start], cover.region[order][start]
        for index in np.unique(region).tolist():
            here = (region == index) & (least > 0)
            found[int(index)] = (column[here], least[here])
        return found
