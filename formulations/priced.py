"""A price on moves: an instance whose costs include it, exactly.

A table of ``current`` either stays, which is an additional option on the present ranks of its
shards, or takes one of its options and pays a price for all its bytes. The price is a cost of a
further phase, :data:`PHASE`, the same on every rank (under ``total``: on none), so under every
objective the optimum minimises the objective + Σ of the prices of the tables that move. No other
module needs to know: the instance is searched, bounded, certified and checked like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import Current, Instance, IntArray, Objective, Where
from formulations.instance.assigning import assigned, misplaced
from formulations.instance.facts import bytes_to_move, members
from formulations.instance.instance import MAX_VALUE
from formulations.proof.build import build_rows
from formulations.proof.weights import vector_of
from formulations.result.certificate import Certificate
from formulations.result.placement import Placement

#: Name of the phase in which moves are paid for.
PHASE = "moving"
#: Suffix of the name of an option that leaves its table where it is.
STAYS = " (stays)"
#: Ranks of each block of an option, in position order.
Blocks = list[list[int]]


@dataclass(frozen=True, eq=False)
class Priced:
    """An instance that includes the price of moves, and conversions to and from the one without.

    Attributes
    ----------
    base, instance : Instance
        Without and with the price.
    origin : int64 array [options of ``instance``]
        The option of ``base`` that each stands for.
    price : int64 array [options of ``instance``]
        The price of moving that each pays.
    homes : mapping of int to list of lists of int
        The present ranks of the blocks in ``base``, by the option of ``instance`` that stays there.
    """

    base: Instance
    instance: Instance
    origin: IntArray
    price: IntArray
    homes: Mapping[int, Blocks]

    def with_price(self, placement: Placement) -> Placement:
        """The placement in the instance with the price; option −1 and ranks that do not suit an
        option stay as they are."""
        now = {c.table: c for c in self.instance.current if c.option in self.homes}
        options, ranks = placement.options.copy(), list(placement.ranks)
        first = np.searchsorted(self._table_of(), np.arange(self.base.num_tables))
        for table, option in enumerate(placement.options.tolist()):
            if option < 0:
                continue
            blocks = [list(map(int, block)) for block in ranks[table]]
            stays = now[table].option if table in now else -1
            if stays >= 0 and self.origin[stays] == option and blocks == self.homes[stays]:
                options[table] = stays
                ranks[table] = [np.asarray(b, dtype=np.int64) for b in now[table].ranks]
                continue
            options[table] = first[table] + option - self.base.table_options[table]
            if self.price[options[table]] and blocks:
                ranks[table] = [*ranks[table], self._everywhere()]
        return Placement(options, ranks)

    def without_price(self, placement: Placement) -> Placement:
        """The same placement in the instance without the price."""
        options = self.origin[placement.options]
        ranks = [
            self._plain(int(option), placed)
            for option, placed in zip(placement.options, placement.ranks, strict=True)
        ]
        return Placement(options, ranks)

    def _plain(self, option: int, placed: Sequence[IntArray]) -> list[IntArray]:
        """Ranks of an option's blocks: the present ones, or those given without the block that
        pays."""
        if option in self.homes:
            return [np.asarray(ranks, dtype=np.int64) for ranks in self.homes[option]]
        return list(placed[:-1] if self.price[option] else placed)

    def paid(self, placement: Placement) -> int:
        """The sum that a placement of the instance with the price pays for its moves."""
        return int(self.price[placement.options].sum())

    def _table_of(self) -> IntArray:
        return self.base.table_of[self.origin]

    def _everywhere(self) -> IntArray:
        ranks = 0 if self.base.objective == Objective.TOTAL else self.base.num_ranks
        return np.arange(ranks)


def priced(instance: Instance, price: Fraction) -> Priced:
    """Put a price on moving.

    Parameters
    ----------
    instance : Instance
        Moves are counted from its ``current``; tables that a pin names pay nothing.
    price : Fraction
        Units of cost per byte. What an option pays is rounded up. A shard that is given once for
        machines of several sizes counts as if on the smallest.

    Raises
    ------
    InstanceError
        For a price below 0, or so large that costs exceed what an instance may hold.
    """
    if price < 0:
        raise InstanceError(f"the price of a byte that moves must be 0 or more, found {price}")
    if PHASE in instance.phases:
        raise InstanceError(f"the instance already has a phase {PHASE!r}")
    free = {pin.table for pin in instance.pins}
    now = {c.table: c for c in instance.current if c.table not in free}
    size = bytes_to_move(instance).tolist()
    counted = np.isin(instance.table_of, list(now)).tolist()
    pays = [ceil(price * b) if counts else 0 for b, counts in zip(size, counted, strict=True)]
    if max(pays, default=0) >= MAX_VALUE:
        raise InstanceError("the price of a byte that moves leads to costs of 2^53 or more")
    stays: dict[int, Blocks] = {}
    for table, current in now.items():
        ranks = _in_order(instance, current)
        if ranks is None or not instance.allowed[current.option]:
            continue
        if all(instance.settled[block] for block in instance.blocks_of(current.option)):
            pays[current.option] = 0
        elif pays[current.option]:
            stays[table] = ranks
    return _Build(instance, np.asarray(pays, dtype=np.int64), now, stays).priced()


def with_moving(prices: Certificate, instance: Instance) -> Certificate:
    """Multipliers that also weigh the price of moves, as much as any phase may weigh.

    Parameters
    ----------
    prices : Certificate
        Multipliers of an instance without the price, by names.
    instance : Instance
        With the price; its phase has a row of its own only where every phase has a peak.
    """
    if not instance.by_phase:
        return prices
    rows = build_rows(instance)
    vectors = []
    for vector in prices.vectors:
        each = vector_of(rows, vector).level // instance.num_ranks
        vectors.append([*vector, {"row": "cost", "of": PHASE, "times": each}] if each else vector)
    return replace(prices, vectors=tuple(vectors))


def _in_order(instance: Instance, now: Current) -> Blocks | None:
    """Ranks of a current option's blocks in position order; None where it cannot lie there."""
    if now.option < 0:
        return None
    blocks = instance.blocks_of(now.option)
    given = [np.asarray(ranks, dtype=np.int64) for ranks in now.ranks]
    if len(given) == len(blocks) and all(
        misplaced(instance, instance.block(b), own) is None
        for b, own in zip(blocks, given, strict=True)
    ):
        return [own.tolist() for own in given]
    found = assigned(instance, now.option, now.ranks)
    return None if found is None else [list(block) for block in found]


def _flat(blocks: list[list[int]]) -> list[int]:
    return [rank for block in blocks for rank in block]


class _Build:
    """The arrays of the instance with the price."""

    def __init__(
        self,
        base: Instance,
        pays: IntArray,
        now: dict[int, Current],
        stays: dict[int, Blocks],
    ) -> None:
        self._base, self._pays, self._now, self._stays = base, pays, now, stays
        self._sets = list(base.place_sets)
        self._index = {places: i for i, places in enumerate(self._sets)}
        # blocks and entries to append: of options that stay, then those that pay
        self._where: list[int] = []
        self._places: list[int] = []
        self._entries: list[list[int]] = []

    def _list(self, ranks: list[int], entries: list[int]) -> int:
        """Add a block of shards like these entries on these ranks."""
        key = tuple(ranks)
        self._where.append(int(Where.LIST))
        self._places.append(self._index.setdefault(key, len(self._index)))
        if self._places[-1] == len(self._sets):
            self._sets.append(key)
        self._entries.append(entries)
        return self._base.num_blocks + len(self._where) - 1

    def _still(self, table: int) -> list[int]:
        """Blocks of the option that leaves a table where it is."""
        base, found = self._base, list[int]()
        option = self._now[table].option
        for block, ranks in zip(base.blocks_of(option), self._stays[table], strict=True):
            view = base.block(block)
            if view.settled:
                found.append(block)
            elif view.whole:
                for machine in _machines(base, ranks):
                    entries = [view.entry(p) for p in range(len(machine))]
                    found.append(self._list(machine, entries[:1] if view.shared else entries))
            else:
                found += [self._list([rank], [view.entry(at)]) for at, rank in enumerate(ranks)]
        return found

    def priced(self) -> Priced:
        base = self._base
        origin, blocks, names, homes = list[int](), list[list[int]](), list[str](), dict[int, int]()
        table_options = [0]
        for table in range(base.num_tables):
            for option in base.options_of(table):
                origin.append(option)
                blocks.append(list(base.blocks_of(option)))
                names.append(base.option_names[option])
            if table in self._stays:
                homes[table] = len(origin)
                origin.append(self._now[table].option)
                blocks.append(self._still(table))
                names.append(base.option_names[origin[-1]] + STAYS)
            table_options.append(len(origin))
        pays = self._pays[origin]
        pays[list(homes.values())] = 0
        self._append_payers(blocks, pays)
        options: dict[str, Any] = {
            "option_names": tuple(names),
            "table_options": np.asarray(table_options, dtype=np.int64),
            "option_blocks": np.cumsum([0, *map(len, blocks)]).astype(np.int64),
            "option_group": base.option_group[origin],
            "option_level": base.option_level[origin],
        }
        arrays = self._blocks(np.asarray(_flat(blocks), dtype=np.int64), pays[pays > 0])
        rules = self._constraints(origin, homes)
        phases, hidden = (*base.phases, PHASE), (*base.hidden, 0) if base.hidden else ()
        instance = replace(
            base, phases=phases, hidden=hidden, reference=(), **options, **arrays, **rules
        )
        ranks = {option: self._stays[table] for table, option in homes.items()}
        return Priced(base, instance, np.asarray(origin, dtype=np.int64), pays, ranks)

    def _append_payers(self, blocks: list[list[int]], pays: IntArray) -> None:
        """Append a block that pays to every option that has a price."""
        total, entry = self._base.objective == Objective.TOTAL, len(self._base.shard_move)
        for option in np.flatnonzero(pays):
            self._where.append(int(Where.CLUSTER if total else Where.EVERY_RANK))
            self._places.append(-1)
            self._entries.append([entry])
            blocks[option].append(self._base.num_blocks + len(self._where) - 1)
            entry += 1

    def _blocks(self, flat: IntArray, prices: IntArray) -> dict[str, Any]:
        """Arrays of blocks and shard entries, for the blocks of all options one after another."""
        base, further, payers = self._base, len(self._where), len(prices)
        # entries of all blocks, old and new, then the rows of the entries themselves
        old = len(base.shard_move)
        every = np.concatenate([np.arange(old), _flat(self._entries)]).astype(np.int64)
        ends = np.cumsum([0, *map(len, self._entries)])[1:]
        first = np.concatenate([base.block_shards, old + ends]).astype(np.int64)
        chosen, block_shards = members(first, flat)
        entry = every[chosen]

        def column(name: str, more: object) -> IntArray:
            extra = np.broadcast_to(np.asarray(more, dtype=np.int64), further)
            return np.concatenate([getattr(base, name), extra])[flat]

        def shards(values: IntArray, last: object = 0) -> IntArray:
            extra = np.zeros((payers, *values.shape[1:]), dtype=np.int64)
            extra[..., -1:] = last
            return np.concatenate([values, extra])[entry]

        cost = np.concatenate([base.shard_cost, np.zeros((old, 1), dtype=np.int64)], axis=1)
        return {
            "block_where": column("block_where", self._where).astype(np.int8),
            "block_count": column("block_count", 1),
            "block_distinct": column("block_distinct", 0).astype(np.bool_),
            "block_places": column("block_places", self._places),
            "place_sets": tuple(self._sets),
            "block_shards": block_shards.astype(np.int64),
            # blocks that were cut have one entry per position
            "shard_repeat": np.where(chosen < old, shards(base.shard_repeat), 1),
            "shard_use": shards(base.shard_use),
            "shard_cost": shards(cost, prices[:, None]),
            "shard_move": shards(base.shard_move),
        }

    def _constraints(self, origin: list[int], homes: dict[int, int]) -> dict[str, Any]:
        """Pins, forbidden options and the plan in production, with the new indices."""
        base = self._base
        index: dict[int, int] = {}
        for new, old in enumerate(origin):
            index.setdefault(old, new)
        current = []
        for now in base.current:
            option = index.get(now.option, -1)
            ranks = now.ranks
            if now.table in homes:
                option = homes[now.table]
                ranks = tuple(
                    tuple(block) for block in _cut(base, now.option, self._stays[now.table])
                )
            current.append(Current(now.table, option, ranks))
        return {
            "pins": tuple(replace(pin, option=index[pin.option]) for pin in base.pins),
            "forbidden": tuple((table, index[option]) for table, option in base.forbidden),
            "current": tuple(current),
        }


def _cut(base: Instance, option: int, ranks: Blocks) -> Iterator[list[int]]:
    """Ranks of the blocks of the option that stays: whole machines, else single ranks."""
    for block, own in zip(base.blocks_of(option), ranks, strict=True):
        view = base.block(block)
        if view.settled:
            yield own
            continue
        yield from _machines(base, own) if view.whole else ([rank] for rank in own)


def _machines(base: Instance, ranks: list[int]) -> Iterator[list[int]]:
    """The ranks of whole machines, machine by machine."""
    at = 0
    while at < len(ranks):
        wide = len(base.machines[int(base.machine_of[ranks[at]])])
        yield ranks[at : at + wide]
        at += wide
