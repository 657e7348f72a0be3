"""Load rows of a neighbourhood: every open rank by itself, closed ranks by their fullest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.aggregate.linear import LinearModel
from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.search.seats import Seat
from formulations.search.state import Load, place_use

if TYPE_CHECKING:
    from formulations.search.neighbourhood import Part

#: Overflow of one place is paid in this many parts of its capacity.
_PARTS = 2**20


def add_load_rows(
    instance: Instance,
    costs: IntArray,
    model: LinearModel,
    terms: list[Seat],
    rest: Load,
    part: Part,
) -> None:
    """Rows and objective of a neighbourhood.

    Closed ranks of a machine share one row per feature: the most any of them carries plus the
    most a shard can add to one of them. That may be too careful; it is never too lax.
    """
    slots = _Slots(instance, part.free)
    matrix = np.concatenate([costs, instance.shard_use], axis=1)
    gathered = _gather(slots, terms, matrix)
    peaks = costs.shape[1]
    if instance.objective == Objective.TOTAL:
        _total(costs, model, terms, rest, part)
    elif not part.repair or (part.limit is not None and not part.soft):
        _peaks(slots, model, gathered, rest, part)
    elif part.limit is not None:
        _soft_peaks(slots, model, gathered, rest, part.limit)
    for index, resource in enumerate(instance.resources):
        use = place_use(instance, rest, index)
        room = resource.capacity - use
        if resource.scope == Scope.RANK:
            rows = gathered.per_slot(peaks + index)
            limits = slots.least(room)
            capacity = slots.least(resource.capacity)
        else:
            rows = _totals(instance, terms, instance.shard_use[:, index], resource.scope)
            limits, capacity = room, resource.capacity
        for place, (columns, values) in rows.items():
            _limit(model, columns, values, int(limits[place]), int(capacity[place]), part.repair)


def _limit(
    model: LinearModel, columns: IntArray, values: IntArray, room: int, capacity: int, repair: bool
) -> None:
    upper = np.asarray([model.upper[c] for c in columns.tolist()], dtype=np.float64)
    if float((upper * values).sum()) <= room * (1 - 1e-9):
        return
    if not repair:
        model.row(columns, values, high=room)
        return
    step = max(1, capacity // _PARTS)
    most = (int((upper * values).sum()) + max(0, -room)) // step + 2
    over = model.columns(1, upper=most, unit=most)
    model.row(np.append(columns, over), np.append(values, -step), high=room)
    model.objective[over] = 1


class _Slots:
    """Row of each rank: its own when free, else one it shares with its machine's closed ranks."""

    def __init__(self, instance: Instance, free: np.ndarray) -> None:
        key = np.where(free, np.arange(instance.num_ranks), -1 - instance.machine_of)
        _, self.of = np.unique(key, return_inverse=True)
        self.count = int(self.of.max()) + 1
        self.free = np.zeros(self.count, dtype=bool)
        self.free[self.of[free]] = True

    def worst(self, term: Seat, matrix: IntArray) -> tuple[IntArray, IntArray]:
        """Slots a term reaches, and the most one rank of each gets: (slots, [slots, features])."""
        slot = self.of[term.ranks]
        order = np.argsort(slot, kind="stable")
        slot, entries = slot[order], term.entries[order]
        first = np.flatnonzero(np.append(True, np.diff(slot) != 0))
        worst = np.maximum.reduceat(matrix[entries], first, axis=0)
        if len(set(term.ranks.tolist())) < len(term.ranks):  # a pinned multiset may repeat ranks
            worst = worst * int(np.unique(term.ranks, return_counts=True)[1].max())
        return slot[first], worst

    def least(self, per_rank: IntArray) -> IntArray:
        """Smallest value over the ranks of each slot."""
        result = np.full(self.count, np.iinfo(np.int64).max)
        np.minimum.at(result, self.of, per_rank)
        return result

    def most(self, per_rank: IntArray) -> IntArray:
        """Largest value over the ranks of each slot."""
        result = np.full(self.count, np.iinfo(np.int64).min)
        np.maximum.at(result, self.of, per_rank)
        return result


class _Gathered:
    """What each column adds to each slot."""

    def __init__(self, column: IntArray, slot: IntArray, amount: IntArray) -> None:
        order = np.lexsort((column, slot))
        self._column, self._slot, self._amount = column[order], slot[order], amount[order]

    def per_slot(self, feature: int) -> dict[int, tuple[IntArray, IntArray]]:
        """Columns and amounts of one feature, per slot."""
        amount = self._amount[:, feature]
        use = amount != 0
        slot, column, amount = self._slot[use], self._column[use], amount[use]
        return _merged(slot, column, amount)


def _merged(
    place: IntArray, column: IntArray, amount: IntArray
) -> dict[int, tuple[IntArray, IntArray]]:
    """Sum amounts of equal (place, column); sorted by place, then column, on entry."""
    if not len(place):
        return {}
    fresh = np.append(True, (np.diff(place) != 0) | (np.diff(column) != 0))
    first = np.flatnonzero(fresh)
    amount = np.add.reduceat(amount, first)
    place, column = place[first], column[first]
    starts = np.flatnonzero(np.append(True, np.diff(place) != 0))
    ends = np.append(starts[1:], len(place))
    return {
        int(place[a]): (column[a:b], amount[a:b])
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    }


def _gather(slots: _Slots, terms: list[Seat], matrix: IntArray) -> _Gathered:
    """Amounts per (column, slot): one shard's, or the worst any closed rank of the slot gets."""
    single = [t for t in terms if len(t.ranks) == 1]
    columns = [np.asarray([t.column for t in single], dtype=np.int64)]
    places = [slots.of[[int(t.ranks[0]) for t in single]]]
    amounts = [matrix[[int(t.entries[0]) for t in single]].reshape(-1, matrix.shape[1])]
    for term in terms:
        if len(term.ranks) < 2:
            continue
        slot, worst = slots.worst(term, matrix)
        columns.append(np.full(len(slot), term.column))
        places.append(slot)
        amounts.append(worst)
    return _Gathered(np.concatenate(columns), np.concatenate(places), np.concatenate(amounts))


def _totals(
    instance: Instance, terms: list[Seat], values: IntArray, scope: Scope
) -> dict[int, tuple[IntArray, IntArray]]:
    """What each column adds to each machine, or to the cluster."""
    none = np.empty(0, dtype=np.int64)
    if scope == Scope.MACHINE:
        terms = [t for t in terms if len(t.ranks)]
        place = np.concatenate([none, *(t.ranks for t in terms)])
        place = instance.machine_of[place]
    else:
        place = np.zeros(sum(len(t.entries) for t in terms), dtype=np.int64)
    entry = np.concatenate([none, *(t.entries for t in terms)])
    column = np.repeat([t.column for t in terms], [len(t.entries) for t in terms])
    amount = values[entry]
    use = amount != 0
    place, column, amount = place[use], column[use].astype(np.int64), amount[use]
    order = np.lexsort((column, place))
    return _merged(place[order], column[order], amount[order])


def _total(costs: IntArray, model: LinearModel, terms: list[Seat], rest: Load, part: Part) -> None:
    if part.repair:
        return  # a cheaper plan comes after a feasible one
    for term in terms:
        amount = int(costs[term.entries, 0].sum())
        if amount:
            model.objective[term.column] = model.objective.get(term.column, 0) + amount
    model.offset = int(rest.cost.sum()) + rest.off_cost


def _soft_peaks(
    slots: _Slots, model: LinearModel, gathered: _Gathered, rest: Load, target: int
) -> None:
    """Pay for cost beyond the target: per rank, or in the sum over phases."""
    count = rest.cost.shape[1]
    step = max(1, target // _PARTS)
    if count == 1:
        carried = slots.most(rest.cost[:, 0])
        for slot, (columns, values) in gathered.per_slot(0).items():
            room = target - int(carried[slot])
            _limit(model, columns, values, room, target, repair=True)
        return
    top = _most(model, gathered, rest, count)
    first = _peak_rows(slots, model, gathered, rest, top)
    most = max(1, top // step + 1)
    over = model.columns(1, upper=most, unit=most)
    model.row([*range(first, first + count), over], [1] * count + [-step], high=target)
    model.objective[over] = 1


def _peaks(slots: _Slots, model: LinearModel, gathered: _Gathered, rest: Load, part: Part) -> None:
    count = rest.cost.shape[1]
    top = part.limit if part.limit is not None else _most(model, gathered, rest, count)
    first = _peak_rows(slots, model, gathered, rest, top)
    for peak in range(first, first + count):
        if not part.repair:
            model.objective[peak] = 1
    if part.limit is not None and count > 1:
        model.row(list(range(first, first + count)), [1] * count, high=part.limit)


def _peak_rows(slots: _Slots, model: LinearModel, gathered: _Gathered, rest: Load, top: int) -> int:
    """Peaks above what every slot carries; a single peak only over the free ranks, so that it
    can fall although another rank stays the busiest."""
    count = rest.cost.shape[1]
    first = model.columns(count, upper=top, unit=max(1, top))
    none = (np.empty(0, np.int64), np.empty(0, np.int64))
    for index in range(count):
        carried = slots.most(rest.cost[:, index])
        rows = gathered.per_slot(index)
        for slot in range(slots.count):
            columns, values = rows.get(slot, none)
            fixed = int(carried[slot])
            if slots.free[slot] or count > 1:
                model.row(np.append(columns, first + index), np.append(values, -1), high=-fixed)
            elif len(columns):
                model.row(columns, values, high=top - fixed)
    return first


def _most(model: LinearModel, gathered: _Gathered, rest: Load, count: int) -> int:
    total = int(rest.cost.max(axis=0).sum())
    for index in range(count):
        for columns, values in gathered.per_slot(index).values():
            total += sum(
                model.upper[c] * v for c, v in zip(columns.tolist(), values.tolist(), strict=True)
            )
    return total
