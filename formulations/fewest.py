"""The plan that moves least, whatever it costs: neighbourhoods of a plan by the exact model."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock, OutOfTime
from formulations.cpsat import Asked, Use, solve_cpsat
from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import bytes_to_move, total_use
from formulations.instance.instance import MAX_VALUE, BlockView
from formulations.model.build import Model, build
from formulations.model.limits import bytes_moving
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.presolve import presolve, usable
from formulations.result.check import check, compute_loads, moved_bytes, moved_tables
from formulations.result.must_move import Counted
from formulations.result.placement import Placement
from formulations.settings import Settings

#: Options in places that one neighbourhood may open, units of work for it, and how many of them in
#: a row may find nothing.
OPENED, UNITS, PATIENCE = 20_000, 3.0, 6
#: Ranks of the first neighbourhood, and by how much the next one has more, or fewer if this one
#: was not solved.
RANKS, MORE, FEWER = 8.0, 1.3, 0.7


def moves_of(instance: Instance, counted: Counted, plan: Placement) -> int:
    """Tables, or bytes, that a plan moves."""
    moved = moved_tables(instance, plan)
    return len(moved) if counted == Counted.TABLES else moved_bytes(instance, plan, moved)


def _size(instance: Instance, counted: Counted) -> IntArray:
    """What moves if a table takes an option anywhere else, int64 array [options]."""
    size = bytes_to_move(instance) if counted == Counted.BYTES else 1
    known = np.isin(instance.table_of, [now.table for now in instance.current])
    return np.where(known, size, 0).astype(np.int64)


def housed(
    instance: Instance, counted: Counted, wish: Placement, going: Collection[int]
) -> Placement | None:
    """A plan in which only some tables go: the largest first, each to the option that moves least
    and to the places of which it takes the least share of what is left.

    Parameters
    ----------
    instance : Instance
    counted : Counted
    wish : Placement
        Tables with option −1 go, too.
    going : collection of int
    """
    gone = {*going, *np.flatnonzero(wish.options < 0).tolist()}
    room = _Room(instance, wish, [t for t in range(instance.num_tables) if t not in gone])
    able, size, share = usable(instance), _size(instance, counted), room.shares()
    ways = {}
    for table in gone:
        own = np.asarray([o for o in instance.options_of(table) if able[o]], dtype=np.int64)
        ways[table] = own[np.lexsort((share[own], size[own]))]
        if not len(own):
            return None
    options, ranks = wish.options.copy(), list(wish.ranks)
    for table in sorted(gone, key=lambda t: -share[ways[t][0]]):
        found = ((option, room.put(option)) for option in ways[table].tolist())
        option, there = next((each for each in found if each[1] is not None), (-1, None))
        if there is None:
            return None
        options[table], ranks[table] = option, there
    plan = Placement(options, ranks)
    free = replace(instance, max_moved_tables=None, max_moved_bytes=None)
    return plan if check(free, plan).feasible else None


class _Room:
    """What is left of every place while tables are put there."""

    def __init__(self, instance: Instance, plan: Placement, tables: list[int]) -> None:
        self._instance = instance
        use = compute_loads(instance, plan, tables).use
        self._left = [r.capacity - u for r, u in zip(instance.resources, use, strict=True)]
        every = np.arange(instance.num_ranks)
        at = {Scope.RANK: every, Scope.MACHINE: instance.machine_of}
        self._at = [at.get(r.scope, 0 * every) for r in instance.resources]

    def shares(self) -> NDArray[np.float64]:
        """What each option takes of all that is left of some resource, float array [options]."""
        left = [max(1.0, float(np.maximum(left, 0).sum())) for left in self._left]
        return np.asarray((total_use(self._instance) / np.asarray(left)).max(axis=1, initial=0.0))

    def put(self, option: int) -> list[IntArray] | None:
        """Put an option's shards somewhere, and return their ranks; None where one has no room."""
        before, found = [left.copy() for left in self._left], list[IntArray]()
        for block in map(self._instance.block, self._instance.blocks_of(option)):
            ranks = self._block(block)
            if ranks is None or any((left < 0).any() for left in self._left):
                self._left = before
                return None
            found.append(ranks)
        return found

    def _block(self, block: BlockView) -> IntArray | None:
        """Put a block somewhere; None where it must choose as nothing here knows to."""
        instance = self._instance
        ranks = instance.settled_ranks(block.index)
        if ranks is not None:
            for position in range(block.count if block.unplaced else len(ranks)):
                self._take(block.entry(position), -1 if block.unplaced else int(ranks[position]))
            return ranks
        places = instance.places(block.index)
        if block.whole and block.count == 1:
            worth = [self._share(block.entry(0), np.asarray(instance.machines[q])).max()
                     for q in places]  # fmt: skip
            ranks = np.asarray(instance.machines[places[int(np.argmin(worth))]])
            for position, rank in enumerate(ranks.tolist()):
                self._take(block.entry(position), rank)
            return ranks
        if block.by_machine:
            return None
        chosen = list[int]()
        for position in range(block.count):
            share = self._share(block.entry(position), places)
            if block.distinct:
                share[np.isin(places, chosen)] = np.inf
            chosen.append(int(places[int(np.argmin(share))]))
            self._take(block.entry(position), chosen[-1])
        return np.asarray(chosen, dtype=np.int64)

    def _share(self, entry: int, ranks: IntArray) -> NDArray[np.float64]:
        """What a shard takes of what is left at each of some ranks, at most of any resource."""
        found = np.zeros(len(ranks))
        for left, at, use in zip(
            self._left, self._at, self._instance.shard_use[entry].tolist(), strict=True
        ):
            if use:
                found = np.maximum(found, use / np.maximum(left[at[ranks]], 1e-9))
        return found

    def _take(self, entry: int, rank: int) -> None:
        """Take what a shard uses at a rank; at −1, of the whole cluster only."""
        for index, use in enumerate(self._instance.shard_use[entry].tolist()):
            scope = self._instance.resources[index].scope
            if rank >= 0 or scope == Scope.CLUSTER:
                self._left[index][self._at[index][max(0, rank)]] -= use


@dataclass(frozen=True, eq=False)
class Near:
    """What a neighbourhood opens: options, ranks and tables of a plan, and whether that is all that
    can matter; or the whole instance, of which no plan is known."""

    keep: NDArray[np.bool_]
    ranks: NDArray[np.bool_]
    tables: IntArray | None = None
    base: Placement | None = None
    whole: bool = True


class Fewest:
    """A search for a plan that moves less.

    Parameters
    ----------
    instance : Instance
        Moves are counted from its ``current``; its limits on them do not count.
    counted : Counted
    """

    def __init__(self, instance: Instance, counted: Counted) -> None:
        free = np.zeros((len(instance.shard_cost), 1), dtype=np.int64)
        self._instance = replace(
            instance, phases=(counted.value,), shard_cost=free, objective=Objective.TOTAL,
            hidden=(), reference=(), max_moved_tables=instance.num_tables,
            max_moved_bytes=MAX_VALUE - 1 if counted == Counted.BYTES else None,
        )  # fmt: skip
        self._counted = counted
        self._size = _size(instance, counted)
        self._kept = presolve(self._instance).kept

    def least(
        self, plan: Placement | None, enough: int, settings: Settings, clock: Clock, units: float
    ) -> Placement | None:
        """The plan found that moves least, from a plan if there is one; None if there is none.

        Parameters
        ----------
        plan : Placement or None
        enough : int
            What is little enough.
        settings : Settings
        clock : Clock
        units : float
            Of the clock.
        """
        end, misses, ranks, draw = clock.now() + units, 0, RANKS, random.Random(settings.seed)
        most = None if plan is None else moves_of(self._instance, self._counted, plan)
        while (most is None or most > enough) and misses < PATIENCE and clock.now() < end:
            near = self._drawn(plan, most, round(ranks), draw)
            model = self._model(near, clock)
            if model is None:
                break
            hint = None if plan is None else encode(model, plan)
            limits = clock.limits(UNITS, draw.randrange(2**31), settings.workers)
            answer = solve_cpsat(model.linear, limits, hint, Asked(Use.PLANS))
            clock.spend(answer.work)
            ranks, misses = max(2.0, ranks * (MORE if answer.done else FEWER)), misses + 1
            found = None if answer.values is None else decode(model, answer.values)
            if found is not None and check(self._instance, found).feasible:
                value = moves_of(self._instance, self._counted, found)
                if most is None or value < most:
                    plan, most, misses = found, value, 0
            if near.whole and (answer.done or hint is None):
                break
        return plan

    def _model(self, near: Near, clock: Clock) -> Model | None:
        """What moves, over a neighbourhood; None where the time is over."""
        parts = Parts(
            keep=near.keep, base=near.base, tables=near.tables, cuts=False, check=clock.check
        )
        try:
            model = build(self._instance, by_rank(self._instance, near.ranks), parts)
        except OutOfTime:
            return None
        if self._counted == Counted.BYTES:
            model.linear.minimise(*bytes_moving(model.columns))
        else:
            moving = model.columns.x[model.columns.candidates.moves]
            model.linear.minimise(moving, np.ones(len(moving), dtype=np.int64))
        return model

    def _drawn(
        self, plan: Placement | None, most: int | None, many: int, draw: random.Random
    ) -> Near:
        """A neighbourhood: the whole instance if that is small enough, else so many ranks and
        tables that choose places among these only."""
        instance, keep = self._instance, self._kept.copy()
        ranks = np.ones(instance.num_ranks, dtype=bool)
        if plan is None or most is None:
            return Near(keep, ranks)
        first, moved = instance.table_options[:-1], moved_tables(instance, plan)
        keep &= self._size < most  # one that costs as much is in no plan that moves less
        can = np.logical_or.reduceat(keep, first)
        can[moved] = True
        now = np.asarray([n.option for n in instance.current if n.option >= 0], dtype=np.int64)
        keep[now[instance.allowed[now]]] = True
        keep[plan.options] = True
        width = np.add.reduceat(np.where(keep, self._width(instance.num_ranks), 0), first)
        if width[can].sum() > OPENED:
            ranks = self._opened(plan, moved, min(many, instance.num_ranks), draw)
            width = np.add.reduceat(np.where(keep, self._width(int(ranks.sum())), 0), first)
            can &= ~self._on(plan)[:, ~ranks].any(axis=1)
        tables = np.flatnonzero(can)
        chance = np.asarray([draw.random() for _ in tables])
        order = np.lexsort((chance, ~np.isin(tables, moved)))
        fits = np.cumsum(width[tables[order]]) <= OPENED
        whole = bool(ranks.all() and fits.all())
        return Near(keep, ranks, np.sort(tables[order[fits]]), plan, whole)

    def _width(self, ranks: int) -> IntArray:
        """Columns of each option with so many open ranks, int64 array [options]."""
        instance = self._instance
        each = np.where(instance.whole, len(instance.machines), instance.free * ranks)
        return 1 + np.add.reduceat(np.where(instance.settled, 0, each), instance.option_blocks[:-1])

    def _opened(
        self, plan: Placement, moved: list[int], many: int, draw: random.Random
    ) -> NDArray[np.bool_]:
        """Ranks between which some tables moved, those with most room, and some others."""
        instance, open_ = self._instance, dict[int, None]()
        now = {each.table: each.ranks for each in instance.current}
        on = self._on(plan)
        for table in draw.sample(moved, len(moved)):
            here = {*np.flatnonzero(on[table]).tolist()}
            here |= {rank for block in now.get(table, ()) for rank in block if len(block) <= many}
            if len({*open_} | here) <= many:
                open_ |= dict.fromkeys(here)
        room = np.ones(instance.num_ranks)
        for use, resource in zip(
            compute_loads(instance, plan).use, instance.resources, strict=True
        ):
            if len(use) == instance.num_ranks:
                room = np.minimum(room, 1 - use / np.maximum(1, resource.capacity))
        others = [*np.argsort(-room)[: many // 4].tolist(), *draw.sample(range(len(room)), many)]
        ranks = np.zeros(instance.num_ranks, dtype=bool)
        ranks[[*open_, *others][: max(many, len(open_))]] = True
        return ranks

    def _on(self, plan: Placement) -> NDArray[np.bool_]:
        """Ranks that each table's shards chose, bool array [tables, ranks]."""
        instance = self._instance
        found = np.zeros((instance.num_tables, instance.num_ranks), dtype=bool)
        for table, option in enumerate(plan.options.tolist()):
            for block, ranks in zip(instance.blocks_of(option), plan.ranks[table], strict=True):
                if not instance.settled[block]:
                    found[table, ranks] = True
        return found
