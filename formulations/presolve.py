"""Options that no best plan needs: not allowed, too large for any place, or dominated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.instance import BlockView, Instance, IntArray, Objective, Scope, Where
from formulations.instance.seating import pinned_ranks


@dataclass(frozen=True, eq=False)
class Presolved:
    """What is left of the options.

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


def presolve(instance: Instance) -> Presolved:
    """Find the options worth keeping.

    An option fits nowhere when one of its shards exceeds every capacity it may count against, or
    when what it must put at one place exceeds that place. One option dominates another of its
    table when it may be placed wherever the other may, every shard of it costs and uses at most
    as much, and its fusion is the same or none.

    Parameters
    ----------
    instance : Instance

    Returns
    -------
    Presolved
    """
    kept = instance.allowed & _fits(instance)
    replacement = np.where(kept, np.arange(instance.num_options), -1)
    kinds, bound = _kinds(instance), _bound_to_machines(instance)
    protected = {c.option for c in instance.current} if _limits_moves(instance) else set()
    for table in range(instance.num_tables):
        options = [o for o in instance.options_of(table) if kept[o]]
        for same in _alike(instance, options, kinds):
            _dominate(instance, same, protected, bound, replacement)
    kept = kept & (replacement == np.arange(instance.num_options))
    return Presolved(kept, replacement)


def placement_variables(instance: Instance, presolved: Presolved | None = None) -> int:
    """How many variables say where shards go, over the options worth keeping."""
    places = {
        Where.ANY_RANK: instance.num_ranks,
        Where.ANY_RANK_OF_ONE_MACHINE: instance.num_ranks,
        Where.ONE_MACHINE: len(instance.machines),
    }
    kept = (presolved or presolve(instance)).kept[instance.option_of]
    return sum(
        int(np.count_nonzero(kept & (instance.block_where == where))) * number
        for where, number in places.items()
    )


def _limits_moves(instance: Instance) -> bool:
    return instance.max_moved_tables is not None or instance.max_moved_bytes is not None


def _fits(instance: Instance) -> NDArray[np.bool_]:
    """Options whose every block, alone, can be placed, where pins say, bool array [options]."""
    fits = np.ones(instance.num_options, dtype=bool)
    simple = _shared_every_rank(instance)
    room = _room_of_all(instance)
    entry = instance.block_shards[:-1][simple]
    over = (instance.shard_use[entry] > room).any(axis=1)
    fits[instance.option_of[simple][over]] = False
    for index in np.flatnonzero(~simple):
        option = int(instance.option_of[index])
        if fits[option] and not _block_fits(instance, instance.block(int(index))):
            fits[option] = False
    for option, ranks in pinned_ranks(instance).items():
        fits[option] &= ranks is not None
    return fits


def _shared_every_rank(instance: Instance) -> NDArray[np.bool_]:
    """Blocks that put one and the same shard on every rank, bool array [blocks]."""
    return (instance.block_where == Where.EVERY_RANK) & (np.diff(instance.block_shards) == 1)


def _room_of_all(instance: Instance) -> IntArray:
    """Most a shard on every rank may use of each resource, int64 array [resources]."""
    sizes = np.asarray([len(m) for m in instance.machines])
    room = []
    for resource in instance.resources:
        if resource.scope == Scope.RANK:
            room.append(int(resource.capacity.min()))
        elif resource.scope == Scope.MACHINE:
            room.append(int((resource.capacity // sizes).min()))
        else:
            room.append(int(resource.capacity[0]) // instance.num_ranks)
    return np.asarray(room, dtype=np.int64)


def _block_fits(instance: Instance, block: BlockView) -> bool:
    use = instance.shard_use[block.entries]
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.CLUSTER:
            times = instance.positions(block) if block.shared else 1
            if block.where == Where.ONE_MACHINE:
                times = 1
            if int(use[:, index].sum()) * times > int(resource.capacity[0]):
                return False
            continue
        capacity = resource.capacity
        if resource.scope == Scope.MACHINE:
            capacity = capacity[instance.machine_of]
        if not _shards_fit(instance, block, use[:, index], capacity):
            return False
    return True


def _shards_fit(instance: Instance, block: BlockView, use: IntArray, room: IntArray) -> bool:
    """Whether each single shard fits at a rank it may take (``room``: int64 array [ranks])."""
    if block.where in (Where.EVERY_RANK, Where.LIST):
        places = np.arange(instance.num_ranks) if block.places is None else list(block.places)
        return bool((use <= room[places]).all())
    if block.where == Where.ANY_RANK:
        allowed = room if block.places is None else room[list(block.places)]
        return int(use.max()) <= int(allowed.max())
    machines = range(len(instance.machines)) if block.places is None else block.places
    ranks = [list(instance.machines[m]) for m in machines]
    if block.where == Where.ONE_MACHINE:
        return any(bool((use <= room[r]).all()) for r in ranks)
    return any(int(use.max()) <= int(room[r].max()) for r in ranks)


def _alike(instance: Instance, options: list[int], kinds: NDArray[np.int8]) -> list[list[int]]:
    """Options of one table grouped by kinds of place and shape; groups of two or more."""
    groups: dict[tuple[object, ...], list[int]] = {}
    distinct = instance.block_distinct & (instance.block_count > 1)
    for option in options:
        lo, hi = int(instance.option_blocks[option]), int(instance.option_blocks[option + 1])
        runs = instance.shard_repeat[instance.block_shards[lo] : instance.block_shards[hi]]
        key = (
            kinds[lo:hi].tobytes(), instance.block_count[lo:hi].tobytes(),
            distinct[lo:hi].tobytes(), instance.block_places[lo:hi].tobytes(),
            np.diff(instance.block_shards[lo : hi + 1]).tobytes(), runs.tobytes(),
        )  # fmt: skip
        groups.setdefault(key, []).append(option)
    return [g for g in groups.values() if len(g) > 1]


def _kinds(instance: Instance) -> NDArray[np.int8]:
    """Kind of place of each block, where one kind takes any place that another takes as well.

    Any rank takes what any rank of one machine does; on a single machine, every rank is where a
    whole machine is.
    """
    kinds = instance.block_where.copy()
    anywhere = instance.block_places < 0
    kinds[anywhere & (kinds == Where.ANY_RANK_OF_ONE_MACHINE)] = Where.ANY_RANK
    if instance.machines == (tuple(range(instance.num_ranks)),):
        single = anywhere & (instance.block_count == 1)
        kinds[single & (kinds == Where.ONE_MACHINE)] = Where.EVERY_RANK
    return kinds


def _bound_to_machines(instance: Instance) -> NDArray[np.bool_]:
    """Blocks whose shards must share one machine of several, bool array [blocks]."""
    together = (instance.block_where == Where.ANY_RANK_OF_ONE_MACHINE) & (instance.block_count > 1)
    return together & (len(instance.machines) > 1)


def _dominate(
    instance: Instance,
    options: list[int],
    protected: set[int],
    bound: NDArray[np.bool_],
    replacement: IntArray,
) -> None:
    """Point every dominated option of the list to one that dominates it and is itself kept."""
    price = np.stack([_price(instance, o, bound) for o in options])
    ids = np.asarray(options)
    group, level = instance.option_group[ids], instance.option_level[ids]
    free = group < 0
    same = (group[:, None] == group) & (level[:, None] == level)
    better = (price[:, None, :] <= price[None, :, :]).all(axis=2) & (free[:, None] | same)
    strict = better & ~(better.T & (ids[:, None] >= ids))
    for column, option in enumerate(options):
        by = np.flatnonzero(strict[:, column])
        if len(by) and option not in protected:
            replacement[option] = options[int(by[0])]
    for option in options:
        while replacement[replacement[option]] != replacement[option]:
            replacement[option] = replacement[replacement[option]]


def _price(instance: Instance, option: int, bound: NDArray[np.bool_]) -> IntArray:
    """Uses, costs and (where moves are limited) moving bytes of all shard entries in a row, and
    which blocks are bound to one machine.

    Phases count one by one only under ``step_time``; elsewhere their sum is what ranks carry.
    """
    first, last = int(instance.option_blocks[option]), int(instance.option_blocks[option + 1])
    lo, hi = int(instance.block_shards[first]), int(instance.block_shards[last])
    cost = instance.shard_cost[lo:hi]
    if instance.objective != Objective.STEP_TIME:
        cost = cost.sum(axis=1)
    parts = [instance.shard_use[lo:hi].ravel(), cost.ravel(), bound[first:last].astype(np.int64)]
    if instance.max_moved_bytes is not None:
        parts.append(instance.shard_move[lo:hi])
    return np.concatenate(parts)
