"""Options that no optimal plan needs: not allowed, too large for any place, or dominated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.assigning import pinned_ranks
from formulations.instance.facts import members, per_option, total_use
from formulations.instance.lowering import crowded


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
    shapes, bound = _shapes(instance), _bound_to_machines(instance)
    protected = {c.option for c in instance.current} if instance.limits_moves else set()
    for table in range(instance.num_tables):
        options = [o for o in instance.options_of(table) if kept[o]]
        for same in _alike(instance, options, shapes):
            _dominate(instance, same, protected, bound, replacement)
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


def _alike(instance: Instance, options: list[int], shapes: IntArray) -> list[list[int]]:
    """Options of one table grouped by the shapes of their blocks; groups of two or more."""
    groups: dict[bytes, list[int]] = {}
    first = instance.option_blocks
    for option in options:
        groups.setdefault(shapes[first[option] : first[option + 1]].tobytes(), []).append(option)
    return [g for g in groups.values() if len(g) > 1]


def _shapes(instance: Instance) -> IntArray:
    """A number for the kind of place and the run lengths of each block, int64 array [blocks]."""
    first, sizes = instance.block_shards, np.diff(instance.block_shards)
    repeat = instance.shard_repeat
    runs: dict[bytes, int] = {}
    run = np.where(sizes == 1, repeat[np.minimum(first[:-1], len(repeat) - 1)], 0)
    for block in np.flatnonzero(sizes > 1):
        text = repeat[first[block] : first[block + 1]].tobytes()
        run[block] = runs.setdefault(text, len(runs))
    distinct = instance.block_distinct & (instance.block_count > 1)
    columns = (
        _kinds(instance), instance.block_count, distinct, instance.block_places, sizes, run,
    )  # fmt: skip
    rows = np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


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


def _dominate(
    instance: Instance,
    options: list[int],
    protected: set[int],
    bound: NDArray[np.bool_],
    replacement: IntArray,
) -> None:
    """Replace every dominated option of the list by one that dominates it and is itself kept."""
    ids = np.asarray(options)
    price = _price(instance, ids, bound)
    group, level = instance.option_group[ids], instance.option_level[ids]
    free = group < 0
    same = (group[:, None] == group) & (level[:, None] == level)
    better = (price[:, None, :] <= price[None, :, :]).all(axis=2) & (free[:, None] | same)
    strict = better & ~(better.T & (ids[:, None] >= ids))
    first = strict.argmax(axis=0)
    for column in np.flatnonzero(strict.any(axis=0)):
        if options[column] not in protected:
            replacement[options[column]] = options[int(first[column])]
    for option in options:
        while replacement[replacement[option]] != replacement[option]:
            replacement[option] = replacement[replacement[option]]


def _price(instance: Instance, options: IntArray, bound: NDArray[np.bool_]) -> IntArray:
    """Uses, costs and (where moves are limited) moving bytes of all shard entries in a row, and
    which blocks are bound to one machine, of options of one shape.

    Phases count one by one only under ``step_time``; elsewhere their sum is what ranks carry.
    """
    block = members(instance.option_blocks, options)[0].reshape(len(options), -1)
    entry = members(instance.block_shards, block.ravel())[0].reshape(len(options), -1)
    cost = instance.shard_cost[entry]
    if instance.objective != Objective.STEP_TIME:
        cost = cost.sum(axis=2)
    parts = [instance.shard_use[entry], cost, bound[block].astype(np.int64)]
    if instance.max_moved_bytes is not None:
        parts.append(instance.shard_move[entry])
    return np.concatenate([p.reshape(len(options), -1) for p in parts], axis=1)
