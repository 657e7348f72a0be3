"""Translate kinds of place, pins and current places into the normal forms of `candidates`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from formulations.instance.assigning import Ranks, assigned
from formulations.instance.candidates import Candidates, Fixed, Inside, ShardKinds, Spread, Whole
from formulations.instance.instance import MAX_VALUE, Instance, IntArray, Where

_NONE = np.empty(0, dtype=np.int64)


def crowded(instance: Instance) -> NDArray[np.bool_]:
    """Options that need more distinct ranks (or machines) than there are, bool array [options]."""
    over = np.zeros(instance.num_options, dtype=bool)
    blocks = np.flatnonzero(instance.block_distinct & (instance.block_count > 1))
    key = np.stack([instance.block_where[blocks], instance.block_places[blocks]], axis=1)
    _, first, kind = np.unique(key, axis=0, return_index=True, return_inverse=True)
    room = np.asarray([_apart(instance, int(b)) for b in blocks[first]], dtype=np.int64)
    over[instance.option_of[blocks[instance.block_count[blocks] > room[kind.ravel()]]]] = True
    return over


def _apart(instance: Instance, block: int) -> int:
    """How many distinct ranks (or machines) a block can take."""
    where = instance.block_where[block]
    if where in (Where.ANY_RANK, Where.ONE_MACHINE):
        return len(instance.places(block))
    if where == Where.ANY_RANK_OF_ONE_MACHINE:
        return max(len(instance.machines[m]) for m in instance.places(block))
    return int(MAX_VALUE)


def lower(instance: Instance, keep: NDArray[np.bool_]) -> Candidates:
    """The candidates of the options in a mask [options], considering pins and current places."""
    held = {p.option: p.ranks for p in instance.pins if p.ranks is not None}
    pinned = [o for o in held if keep[o]]
    free = keep.copy()
    free[pinned] = False
    lowering = _Lowering(instance)
    lowering.free(np.flatnonzero(free))
    for option in pinned:
        lowering.held(option, held[option] or (), stays=False)
    current = {c.table: c for c in instance.current} if instance.limits_moves else {}
    for now in current.values():
        wanted = held.get(now.option)
        same = wanted is None or _multisets(wanted) == _multisets(now.ranks)
        if now.option >= 0 and keep[now.option] and same:
            lowering.held(now.option, now.ranks, stays=True)
    return lowering.done(set(current))


def settled_ranks(candidates: Candidates, candidate: int, block: int) -> IntArray:
    """Ranks, in position order, of a block whose candidate has no choice of place."""
    instance, option = candidates.instance, int(candidates.option[candidate])
    view, places = instance.block(block), instance.block(block).places
    named = candidates.held.get(candidate)
    if named is not None:
        return np.asarray(named[block - int(instance.option_blocks[option])], dtype=np.int64)
    if view.where == Where.EVERY_RANK:
        return np.arange(instance.num_ranks)
    if view.where in (Where.LIST, Where.CLUSTER):
        return np.asarray(places or (), dtype=np.int64)
    first = 0 if places is None else places[0]
    if view.where == Where.ONE_MACHINE:
        return np.tile(np.asarray(instance.machines[first], dtype=np.int64), view.count)
    rank = first if view.where == Where.ANY_RANK else instance.machines[first][0]
    return np.full(view.count, rank)


def _multisets(ranks: Sequence[Sequence[int]]) -> list[list[int]]:
    return [sorted(map(int, block)) for block in ranks]


class _Lowering:
    """Collects candidates: all unpinned ones at once, those on given ranks one by one."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._option: list[IntArray] = []
        self._stays: list[bool] = []
        self._count = 0
        self._held: dict[int, Ranks] = {}
        self._even: list[tuple[IntArray, IntArray]] = []
        self._fixed: list[tuple[IntArray, IntArray, IntArray, IntArray, IntArray]] = []
        self._off: list[tuple[IntArray, IntArray, IntArray]] = []
        self._spread: list[Spread] = []
        self._inside: list[Inside] = []
        self._whole: list[Whole] = []
        self._canonical = _canonical_entries(instance)

    def done(self, current: set[int]) -> Candidates:
        """The candidates collected."""
        instance = self._instance
        option = np.concatenate([_NONE, *self._option])
        stays = np.asarray(self._stays, dtype=bool)
        counted = np.isin(instance.table_of[option], list(current)) & ~stays
        even, off = _columns(self._even, 2), _columns(self._off, 3)
        return Candidates(
            instance, option, stays, counted, even[0], even[1],
            Fixed(*_columns(self._fixed, 5)), off[0], off[1], off[2],
            self._spread, self._inside, self._whole, self._canonical, self._held,
        )  # fmt: skip

    def _new(self, options: IntArray, stays: bool) -> IntArray:
        self._option.append(options)
        self._stays += [stays] * len(options)
        self._count += len(options)
        return np.arange(self._count - len(options), self._count)

    def free(self, options: IntArray) -> None:
        """Add the options whose ranks are not pinned, all at once."""
        instance = self._instance
        options = options[~crowded(instance)[options]]
        candidate = np.full(instance.num_options, -1, dtype=np.int64)
        candidate[options] = self._new(options, stays=False)
        owner = candidate[instance.option_of]
        blocks = np.flatnonzero(owner >= 0)
        where = instance.block_where[blocks]
        self._every_rank(owner, blocks[where == Where.EVERY_RANK])
        self._lists(owner, blocks[where == Where.LIST])
        self._cluster(owner, blocks[where == Where.CLUSTER])
        self._choosing(owner, blocks[where == Where.ANY_RANK], self._free_among)
        self._choosing(owner, blocks[where == Where.ONE_MACHINE], self._take_whole)
        inside = blocks[where == Where.ANY_RANK_OF_ONE_MACHINE]
        self._choosing(owner, inside, self._put_inside)

    def _groups(self, blocks: IntArray) -> Iterator[tuple[IntArray, bool]]:
        """Blocks grouped by the places they may take, and by whether these must be distinct."""
        instance = self._instance
        part = instance.block_distinct & (instance.block_count > 1)
        key = np.stack([instance.block_places[blocks], part[blocks]], axis=1)
        for places, apart in np.unique(key, axis=0):
            yield blocks[(key == [places, apart]).all(axis=1)], bool(apart)

    def _entries(self, blocks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Shard entries of some blocks: the block's position in ``blocks``, entry, run length."""
        instance = self._instance
        lengths = np.diff(instance.block_shards)[blocks]
        owner = np.repeat(np.arange(len(blocks)), lengths)
        first = np.cumsum(lengths) - lengths
        entry = instance.block_shards[blocks][owner] + np.arange(len(owner)) - first[owner]
        return owner, entry, instance.shard_repeat[entry]

    def _even_entries(self, blocks: IntArray) -> NDArray[np.bool_]:
        return np.asarray(np.diff(self._instance.block_shards)[blocks] == 1)

    def _every_rank(self, owner_of: IntArray, blocks: IntArray) -> None:
        """Add the most frequent shard as even, and corrections for ranks whose shard differs."""
        instance, alike = self._instance, self._even_entries(blocks)
        self._even.append((owner_of[blocks[alike]], instance.block_shards[blocks[alike]]))
        blocks = blocks[~alike]
        kinds = self._kinds(blocks)
        order = np.lexsort((-kinds.count, kinds.owner))
        base = kinds.entry[order[np.unique(kinds.owner[order], return_index=True)[1]]]
        self._even.append((owner_of[blocks], base))
        owner, entry, length = self._entries(blocks)
        start = np.cumsum(length) - length
        start = start - start[np.searchsorted(owner, np.arange(len(blocks)))][owner]
        differs = self._canonical[entry] != base[owner]
        owner, entry, start, length = (a[differs] for a in (owner, entry, start, length))
        one = np.ones(len(owner), dtype=np.int64)
        candidate = owner_of[blocks[owner]]
        self._fixed.append((candidate, self._canonical[entry], start, length, one))
        self._fixed.append((candidate, base[owner], start, length, -one))

    def _lists(self, owner_of: IntArray, blocks: IntArray) -> None:
        for own, _ in self._groups(blocks):
            ranks = self._instance.places(int(own[0]))
            alike = own[self._even_entries(own)]
            self._put(owner_of[alike], self._instance.block_shards[alike][:, None], ranks)
            uneven = own[~self._even_entries(own)]
            if len(uneven):
                _, entry, length = self._entries(uneven)
                entries = np.repeat(self._canonical[entry], length).reshape(len(uneven), -1)
                self._put(owner_of[uneven], entries, ranks)

    def _put(self, candidate: IntArray, entries: IntArray, ranks: IntArray) -> None:
        """Add a shard on each of some ranks: entries [candidates, ranks] or [candidates, 1]."""
        entries = np.broadcast_to(entries, (len(candidate), len(ranks)))
        size = len(candidate) * len(ranks)
        one = np.ones(size, dtype=np.int64)
        rank = np.tile(ranks, len(candidate))
        self._fixed.append((np.repeat(candidate, len(ranks)), entries.ravel(), rank, one, one))

    def _cluster(self, owner_of: IntArray, blocks: IntArray) -> None:
        kinds = self._kinds(blocks)
        self._off.append((owner_of[blocks[kinds.owner]], kinds.entry, kinds.count))

    def _free_among(
        self, candidate: IntArray, blocks: IntArray, ranks: IntArray, apart: bool
    ) -> None:
        """Add shards that lie freely among some ranks; on a single rank they are fixed."""
        kinds = self._kinds(blocks)
        if len(ranks) == 1:
            one = np.ones(len(kinds.owner), dtype=np.int64)
            where = np.full(len(one), ranks[0])
            self._fixed.append((candidate[kinds.owner], kinds.entry, where, one, kinds.count))
            return
        room = np.ones(len(ranks), dtype=np.int64) if apart else None
        count = self._instance.block_count[blocks]
        self._spread.append(Spread(candidate, blocks, count, ranks, room, kinds))

    def _choosing(
        self,
        owner_of: IntArray,
        blocks: IntArray,
        put: Callable[[IntArray, IntArray, IntArray, bool], None],
    ) -> None:
        for own, apart in self._groups(blocks):
            put(owner_of[own], own, self._instance.places(int(own[0])), apart)

    def _put_inside(
        self, candidate: IntArray, blocks: IntArray, machines: IntArray, apart: bool
    ) -> None:
        """Add blocks inside one machine; single shards, or a single machine, are free among
        ranks."""
        instance = self._instance
        ranks = np.concatenate([np.asarray(instance.machines[m], dtype=np.int64) for m in machines])
        single = instance.block_count[blocks] == 1
        if len(machines) == 1:
            self._free_among(candidate, blocks, ranks, apart)
            return
        if single.any():
            self._free_among(candidate[single], blocks[single], ranks, apart=False)
        candidate, blocks = candidate[~single], blocks[~single]
        if len(blocks):
            count, kinds = instance.block_count[blocks], self._kinds(blocks)
            self._inside.append(Inside(candidate, blocks, count, machines, apart, kinds))

    def _take_whole(
        self, candidate: IntArray, blocks: IntArray, machines: IntArray, apart: bool
    ) -> None:
        """Add blocks on whole machines; with a single machine to choose from they are fixed."""
        instance, alike = self._instance, self._even_entries(blocks)
        for some, entries in (
            (alike, instance.block_shards[blocks[alike]][:, None]),
            (~alike, self._positions(blocks[~alike])),
        ):
            own, mine = blocks[some], candidate[some]
            if not len(own):
                continue
            count = instance.block_count[own]
            if len(machines) == 1:
                ranks = np.asarray(instance.machines[int(machines[0])], dtype=np.int64)
                for times in np.unique(count):
                    same = count == times
                    for _ in range(int(times)):
                        self._put(mine[same], entries[same], ranks)
                continue
            self._whole.append(Whole(mine, own, count, machines, apart, entries))

    def _positions(self, blocks: IntArray) -> IntArray:
        """Entries of blocks of one length, position by position: [blocks, positions or 1]."""
        if not len(blocks) or self._even_entries(blocks).all():
            return self._instance.block_shards[blocks][:, None]
        _, entry, length = self._entries(blocks)
        return np.repeat(self._canonical[entry], length).reshape(len(blocks), -1)

    def _kinds(self, blocks: IntArray) -> ShardKinds:
        """Count the equal shards of each block."""
        instance = self._instance
        owner, entry, length = self._entries(blocks)
        free = ~np.isin(instance.block_where[blocks], [Where.EVERY_RANK, Where.LIST])
        shared = (self._even_entries(blocks) & free)[owner]
        count = np.where(shared, instance.block_count[blocks][owner], length)
        key, inverse = np.unique(
            np.stack([owner, self._canonical[entry]]), axis=1, return_inverse=True
        )
        total = np.zeros(key.shape[1], dtype=np.int64)
        np.add.at(total, inverse.ravel(), count)
        return ShardKinds(key[0], key[1], total)

    def held(self, option: int, ranks: Sequence[Sequence[int]], stays: bool) -> None:
        """Add an option on given ranks, if it can lie there."""
        placed = assigned(self._instance, option, ranks)
        if placed is None:
            return
        candidate = self._new(np.asarray([option], dtype=np.int64), stays)
        self._held[int(candidate[0])] = placed
        for block, named in zip(self._instance.blocks_of(option), placed, strict=True):
            self._hold(candidate, block, named)

    def _hold(self, candidate: IntArray, block: int, named: Sequence[int]) -> None:
        instance, own = self._instance, np.asarray([block])
        where, owner_of = instance.block_where[block], np.full(instance.num_blocks, candidate[0])
        if where == Where.EVERY_RANK:
            self._every_rank(owner_of, own)
        elif where == Where.CLUSTER:
            self._cluster(owner_of, own)
        elif where in (Where.LIST, Where.ONE_MACHINE):
            entries = self._positions(own)
            copies = max(1, len(named) // entries.shape[1]) if entries.shape[1] > 1 else 1
            self._put(candidate, np.tile(entries, (1, copies)), np.asarray(named, dtype=np.int64))
        else:
            self._hold_free(candidate, own, Counter(named))

    def _hold_free(self, candidate: IntArray, own: IntArray, wanted: Counter[int]) -> None:
        """Add a block on a multiset of ranks: fixed if all its shards, or all the ranks, are
        equal."""
        kinds, ranks = self._kinds(own), np.asarray(sorted(wanted), dtype=np.int64)
        room = np.asarray([wanted[int(r)] for r in ranks], dtype=np.int64)
        if len(kinds.entry) > 1 and len(ranks) > 1:
            count = self._instance.block_count[own]
            self._spread.append(Spread(candidate, own, count, ranks, room, kinds))
            return
        rank = np.tile(ranks, len(kinds.entry))
        times = room if len(kinds.entry) == 1 else kinds.count
        one = np.ones(len(rank), dtype=np.int64)
        entry = np.repeat(kinds.entry, len(ranks))
        self._fixed.append((candidate[0] * one, entry, rank, one, times))


def _columns(parts: Sequence[tuple[IntArray, ...]], width: int) -> list[IntArray]:
    """Concatenate tuples of arrays, array by array."""
    return [np.concatenate([_NONE, *(p[i] for p in parts)]) for i in range(width)]


def _canonical_entries(instance: Instance) -> IntArray:
    """For every shard entry, the first equal one of the instance's uneven blocks, [entries].

    Shards are equal if their use, cost and moving bytes are. Entries of even blocks represent
    themselves.
    """
    canonical = np.arange(len(instance.shard_repeat))
    lengths = np.diff(instance.block_shards)
    some = np.flatnonzero(np.repeat(lengths > 1, lengths))
    if len(some):
        content = np.concatenate(
            [instance.shard_use[some], instance.shard_cost[some], instance.shard_move[some, None]],
            axis=1,
        )
        _, first, inverse = np.unique(content, axis=0, return_index=True, return_inverse=True)
        canonical[some] = some[first[inverse.ravel()]]
    return canonical
