"""Options that no optimal plan needs: not allowed, too large for any place, or dominated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Scope
from formulations.instance.assigning import pinned_ranks
from formulations.instance.facts import per_option, total_use
from formulations.instance.lowering import crowded

#: Pairs of options compared at once, to bound memory.
_PAIRS = 1_000_000


@dataclass(frozen=True, eq=False)
class Presolved:
    """Options left by presolve.

    Attributes
    ----------
    kept : bool array [options]
        At least one optimal plan uses these only (if there is any plan).
    replacement : int64 array [options]
        The option to use instead, on the same ranks: itself where kept, the dominating one where
        dominated, -1 where no plan can contain it.
    """

    kept: NDArray[np.bool_]
    replacement: IntArray

    def empty_table(self, instance: Instance) -> int | None:
        """The first table without an option left, which proves there is no plan."""
        for table in range(instance.num_tables):
            if not self.kept[list(instance.options_of(table))].any():
                return table
        return None


@lru_cache(maxsize=1)
def presolve(instance: Instance) -> Presolved:
    """Find the options worth keeping; cached for the next call with the same Instance.

    An option dominates another of its table if it can be placed wherever the other can, each of its
    shards costs and uses at most as much, and it has the same fusion or none.

    Parameters
    ----------
    instance : Instance

    Returns
    -------
    Presolved
    """
    kept = usable(instance)
    replacement = np.where(kept, np.arange(instance.num_options), -1)
    _dominate(instance, np.flatnonzero(kept), replacement)
    while (replacement[replacement] != replacement)[kept].any():
        replacement[kept] = replacement[replacement[kept]]
    kept = kept & (replacement == np.arange(instance.num_options))
    return Presolved(kept, replacement)


def usable(instance: Instance) -> NDArray[np.bool_]:
    """Options allowed by pins and ``forbidden`` that may fit an empty cluster, bool [options].

    These are only necessary conditions: every shard has a place, where the pin says if there is
    one; all shards together do not exceed the whole capacity; there are enough places for shards
    that must lie apart.
    """
    mask = instance.allowed & _fits(instance)
    room = [sum(resource.capacity.tolist()) for resource in instance.resources]
    mask &= (total_use(instance) <= np.asarray(room, dtype=object)).all(axis=1).astype(bool)
    return mask & ~crowded(instance)


def placement_variables(instance: Instance, presolved: Presolved | None = None) -> int:
    """Number of placement variables of the options worth keeping."""
    kept = (presolved or presolve(instance)).kept[instance.option_of]
    places = np.where(instance.free, instance.num_ranks, len(instance.machines))
    return int(places[kept & ~instance.settled].sum())


def _fits(instance: Instance) -> NDArray[np.bool_]:
    """Options whose shards each fit in the largest place; where a block's shards are all equal,
    each must fit in a rank's share of the smallest place if they lie on every rank, and of the
    largest if they lie on whole machines."""
    sizes = np.diff(instance.block_shards)
    alike = np.repeat(sizes == 1, sizes)
    everywhere, whole = (np.repeat(m, sizes) for m in (instance.everywhere, instance.whole))
    ranks_of = np.asarray([len(m) for m in instance.machines])
    over = np.zeros(len(instance.shard_use), dtype=bool)
    for index, resource in enumerate(instance.resources):
        use, each = instance.shard_use[:, index], resource.capacity
        over |= use > each.max()
        if resource.scope == Scope.MACHINE:
            each = each // ranks_of
        over |= alike & everywhere & (use > each.min())
        over |= alike & whole & (use > each.max())
    fits = ~per_option(instance, over, np.logical_or)
    for option, ranks in pinned_ranks(instance).items():
        fits[option] &= ranks is not None
    return np.asarray(fits)


def _alike(instance: Instance, options: IntArray) -> Iterator[IntArray]:
    """Options of one table whose blocks have the same shapes, int64 arrays [groups, options of
    each]: at once all groups of as many options with as many blocks and shard entries."""
    shapes, first = _shapes(instance), instance.option_blocks
    blocks, entries = np.diff(first)[options], np.diff(instance.block_shards[first])[options]
    for count, number in np.unique(np.stack([blocks, entries]), axis=1).T.tolist():
        some = options[(blocks == count) & (entries == number)]
        shape = shapes[first[some][:, None] + np.arange(count)]
        group = _numbers([instance.table_of[some], *shape.T])
        some, size = some[np.argsort(group, kind="stable")], np.bincount(group)
        for each in np.unique(size[size > 1]).tolist():
            yield some[np.repeat(size == each, size)].reshape(-1, each)


def _numbers(columns: Iterable[IntArray]) -> IntArray:
    """A number from 0 on for every different row of these columns."""
    number, *rest = columns
    number = np.unique(number, return_inverse=True)[1]
    for column in rest:
        _, other = np.unique(column, return_inverse=True)
        number = np.unique(number * (other.max(initial=0) + 1) + other, return_inverse=True)[1]
    return np.asarray(number, dtype=np.int64)


def _shapes(instance: Instance) -> IntArray:
    """A number for the kind of place and the run lengths of each block, int64 array [blocks]."""
    first, sizes = instance.block_shards, np.diff(instance.block_shards)
    repeat = instance.shard_repeat
    runs: dict[bytes, int] = {}
    run = np.where(sizes == 1, repeat[np.minimum(first[:-1], len(repeat) - 1)], 0)
    for block in np.flatnonzero(sizes > 1):
        text = repeat[first[block] : first[block + 1]].tobytes()
        run[block] = runs.setdefault(text, len(runs))
    distinct = (instance.block_distinct & (instance.block_count > 1)).astype(np.int64)
    return _numbers(
        [_kinds(instance), instance.block_count, distinct, instance.block_places, sizes, run]
    )


def _kinds(instance: Instance) -> IntArray:
    """Kind of place of each block; a kind that can take every place of another counts as the same.

    Any rank includes any rank of one machine; on a single machine, a whole machine is every rank.
    """
    anywhere = instance.block_places < 0
    everywhere, whole = instance.everywhere, instance.whole
    if instance.machines == (tuple(range(instance.num_ranks)),):
        all_ranks = anywhere & whole & (instance.block_count == 1)
        everywhere, whole = everywhere | all_ranks, whole & ~all_ranks
    bound = instance.free & instance.by_machine & ~anywhere
    marks = (everywhere, whole, instance.free, bound, instance.unplaced)
    return np.asarray(sum(m.astype(np.int64) << i for i, m in enumerate(marks)))


def _bound_to_machines(instance: Instance) -> NDArray[np.bool_]:
    """Blocks whose shards must share one machine of several, bool array [blocks]."""
    together = instance.free & instance.by_machine & (instance.block_count > 1)
    return together & (len(instance.machines) > 1)


def _dominate(instance: Instance, options: IntArray, replacement: IntArray) -> None:
    """Replace every dominated option by one that dominates it (which may be dominated itself)."""
    protected = np.zeros(instance.num_options, dtype=bool)
    if instance.limits_moves:
        protected[[now.option for now in instance.current if now.option >= 0]] = True
    bound = _bound_to_machines(instance)
    for found in _alike(instance, options):
        step = max(1, _PAIRS // found.shape[1] ** 2)
        for first in range(0, len(found), step):
            same = found[first : first + step]
            strict = _strictly_better(instance, same, bound)
            by = np.take_along_axis(same, strict.argmax(axis=1), axis=1)
            worse = strict.any(axis=1) & ~protected[same]
            replacement[same[worse]] = by[worse]


def _strictly_better(
    instance: Instance, options: IntArray, bound: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether option i of a group dominates option j, and is the first of equal ones; bool array
    [groups, i, j]."""
    group, level = instance.option_group[options], instance.option_level[options]
    free = group < 0
    better = (group[:, :, None] == group[:, None]) & (level[:, :, None] == level[:, None])
    better |= free[:, :, None]
    price = _price(instance, options, bound)
    for column in range(price.shape[2]):
        better &= price[:, :, None, column] <= price[:, None, :, column]
    return better & ~(better.swapaxes(1, 2) & (options[:, :, None] >= options[:, None]))


def _price(instance: Instance, options: IntArray, bound: NDArray[np.bool_]) -> IntArray:
    """Uses, costs and (where moves are limited) moving bytes of all shard entries in a row, and
    which blocks are bound to one machine; int64 array [groups, options, columns].

    All options have as many blocks and as many entries. Phases count one by one only where each has
    a peak; elsewhere their sum is what ranks carry.
    """
    first = instance.option_blocks[options][:, :, None]
    block = first + np.arange(np.diff(instance.option_blocks)[options[0, 0]])
    low, high = (
        int(i)
        for i in instance.block_shards[instance.option_blocks[options[0, 0] : options[0, 0] + 2]]
    )
    entry = instance.block_shards[first] + np.arange(high - low)
    cost = instance.shard_cost[entry]
    if not instance.by_phase:
        cost = cost.sum(axis=3)
    parts = [instance.shard_use[entry], cost, bound[block].astype(np.int64)]
    if instance.max_moved_bytes is not None:
        parts.append(instance.shard_move[entry])
    return np.concatenate([part.reshape(*options.shape, -1) for part in parts], axis=2)
