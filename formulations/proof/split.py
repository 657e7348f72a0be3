"""How to split a case: by the option of a table, by how many of some equal tables take some
options, or by the machine of a table's first shard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.classes import classes_left, counted, interchangeable
from formulations.instance import Instance, IntArray
from formulations.instance.facts import total_cost, total_use
from formulations.proof.rows import HOME, Rows

#: Table -> machines of its first shard.
Homes = dict[int, frozenset[int]]
_WHOLE = 1e-6


@dataclass(frozen=True)
class Split:
    """Cases that together cover the case that is split: sets of options, or of home machines, of
    one table; or at most so many of some equal tables with some options, or more.

    Attributes
    ----------
    table : int
    options : tuple of tuples of int
        Positions within the table; empty where machines are split. Where tables are counted, the
        first are the options that count.
    machines : tuple of tuples of int
    tables : tuple of int
        Those that are counted, ``table`` first.
    most : int
        How many of them take one of the options in the first case.
    """

    table: int
    options: tuple[tuple[int, ...], ...] = ()
    machines: tuple[tuple[int, ...], ...] = ()
    tables: tuple[int, ...] = ()
    most: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The split as a node of the certificate's file states it."""
        if self.tables:
            return {"tables": [*self.tables], "counted": [*self.options[0]], "most": self.most}
        key, lists = ("options", self.options) if self.options else ("machines", self.machines)
        return {"table": self.table, key: [list(case) for case in lists]}

    def cases(
        self, rows: Rows, keep: NDArray[np.bool_], homes: Homes
    ) -> list[tuple[NDArray[np.bool_], Homes]]:
        """The options kept and the homes of each case."""
        if self.tables:
            return [(case, homes) for case in counted(rows.instance, keep, self.to_dict())]
        if self.options:
            own = rows.instance.options_of(self.table)
            found = []
            for positions in self.options:
                mask = keep.copy()
                mask[own.start : own.stop] = False
                at = [own.start + p for p in positions]
                mask[at] = keep[at]
                found.append((mask, homes))
            return found
        home = homes.get(self.table, _everywhere(rows.instance))
        nows = [home & frozenset(machines) for machines in self.machines]
        return [(keep.copy(), {**homes, self.table: now}) for now in nows]


def _everywhere(instance: Instance) -> frozenset[int]:
    return frozenset(range(len(instance.machines)))


def candidates(
    rows: Rows, keep: NDArray[np.bool_], homes: Homes, shares: NDArray[np.float64] | None,
    counts: bool = False,
) -> list[Split]:  # fmt: skip
    """Splits where the linear program's solution is fractional, the most promising first; with
    ``counts`` also by how many equal tables take some options."""
    if shares is None:
        return _any_table(rows, keep)
    found = [*_by_options(rows, keep, shares)]
    if counts:
        found += _by_count(rows, keep, homes, shares)
    if rows.apart:
        found += _by_home(rows, homes, shares)
    return [split for _, split in sorted(found, key=lambda item: -item[0])]


def _any_table(rows: Rows, keep: NDArray[np.bool_]) -> list[Split]:
    """Halve the options of a table, where the linear program has no solution to branch on."""
    for table in range(rows.instance.num_tables):
        own = rows.instance.options_of(table)
        left = [p for p, o in enumerate(own) if keep[o]]
        if len(left) > 1:
            half = len(left) // 2
            return [Split(table, options=(tuple(left[:half]), tuple(left[half:])))]
    return []


def _by_options(
    rows: Rows, keep: NDArray[np.bool_], shares: NDArray[np.float64]
) -> list[tuple[float, Split]]:
    instance, weight = rows.instance, _features(rows)
    share = shares[: instance.num_options] * keep
    parted = np.maximum.reduceat(share, instance.table_options[:-1]) < 1 - _WHOLE
    found = []
    for table in np.flatnonzero(parted).tolist():
        own = instance.options_of(table)
        part, size = share[own.start : own.stop, None], weight[own.start : own.stop]
        mean = (part * size).sum(axis=0)
        spread = (part * abs(size - mean)).sum(axis=0)
        by = int(spread.argmax())
        kept = keep[own.start : own.stop]
        low = np.flatnonzero(kept & (size[:, by] <= mean[by])).tolist()
        high = np.flatnonzero(kept & (size[:, by] > mean[by])).tolist()
        if low and high:
            found.append((float(spread[by]), Split(table, options=(tuple(high), tuple(low)))))
    return found


def _by_count(
    rows: Rows, keep: NDArray[np.bool_], homes: Homes, shares: NDArray[np.float64]
) -> list[tuple[float, Split]]:
    """Splits by how many of some equal tables take the larger of their options; tables whose homes
    were split are not equal."""
    instance, weight = rows.instance, _features(rows)
    share, found = shares[: instance.num_options] * keep, list[tuple[float, Split]]()
    for each in classes_left(instance, keep).members:
        tables = each[~np.isin(each, list(homes))]
        if len(tables) < 2 or not interchangeable(instance, tables):
            continue
        own = np.asarray(instance.options_of(int(tables[0])))
        kept, size = keep[own], weight[own]
        taken = share[instance.table_options[tables][:, None] + np.arange(len(own))].sum(axis=0)
        mean = taken @ size / max(_WHOLE, taken.sum())
        spread = taken @ abs(size - mean)
        for by in np.argsort(-spread, kind="stable").tolist():
            high = kept & (size[:, by] > mean[by])
            many = float(taken[high].sum())
            if spread[by] > 0 and abs(many - round(many)) > _WHOLE:
                every, those = tuple(tables.tolist()), (tuple(np.flatnonzero(high).tolist()),)
                found.append((float(spread[by]), Split(every[0], those, (), every, int(many))))
                break
    return found


@lru_cache(maxsize=4)
def _features(rows: Rows) -> NDArray[np.float64]:
    """Sizes of the options, each feature scaled by its own unit, float array [options,
    features]."""
    instance, found = rows.instance, rows.measures
    cost = total_cost(instance)
    both = [total_use(instance), cost, found.floor + found.excess]
    columns = np.concatenate(both, axis=1).astype(np.float64)
    capacity = [float(max(1, r.capacity.sum())) for r in instance.resources]
    most = found.most.astype(np.float64)
    typical = _typical(rows)
    most[: len(found.costs)] = typical
    width = cost.shape[1]
    unit = np.concatenate([capacity, np.full(width, typical * instance.num_ranks), most])
    return columns / np.maximum(unit, 1.0)


def _typical(rows: Rows) -> float:
    """The cost of a rank if the cheapest options were spread evenly: the unit of costs."""
    instance = rows.instance
    cost = total_cost(instance).sum(axis=1)
    least = np.minimum.reduceat(np.abs(cost), instance.table_options[:-1]).sum()
    return max(1.0, float(least) / instance.num_ranks)


def _by_home(rows: Rows, homes: Homes, shares: NDArray[np.float64]) -> list[tuple[float, Split]]:
    """Splits by machine, for tables whose first shard the linear program spreads over machines."""
    instance, sizes = rows.instance, _features(rows)
    slots = np.flatnonzero(rows.slot_role == HOME)
    at: dict[int, NDArray[np.float64]] = {}
    size: dict[int, float] = {}
    for slot in slots[shares[rows.slot_option[slots]] > _WHOLE].tolist():
        option = int(rows.slot_option[slot])
        table = int(instance.table_of[option])
        low, high = int(rows.slot_start[slot]), int(rows.slot_start[slot + 1])
        spread = at.setdefault(table, np.zeros(len(instance.machines)))
        np.add.at(spread, rows.machine[low:high], shares[low:high])
        size[table] = size.get(table, 0.0) + float(shares[option] * sizes[option].max())
    found = []
    for table, spread in at.items():
        if spread.max() < spread.sum() - _WHOLE:
            home = homes.get(table, _everywhere(instance))
            first = int(spread.argmax())
            others = tuple(sorted(home - {first}))
            found.append((size[table], Split(table, machines=((first,), others))))
    return found


def ruled_out(rows: Rows, homes: Homes) -> IntArray:
    """Choices that the homes rule out."""
    found = []
    for table, home in homes.items():
        options = rows.instance.options_of(table)
        slots = np.flatnonzero(
            (rows.slot_option >= options.start) & (rows.slot_option < options.stop)
        )
        for slot in slots[rows.slot_role[slots] == HOME].tolist():
            choices = range(int(rows.slot_start[slot]), int(rows.slot_start[slot + 1]))
            found += [c for c in choices if int(rows.machine[c]) not in home]
    return np.asarray(found, dtype=np.int64)
