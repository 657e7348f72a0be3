"""What every block of an Instance must satisfy: looked at all at once, refused one by one."""

from __future__ import annotations

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import BlockView, Instance, IntArray, Scope, Where


def check_blocks(instance: Instance) -> None:
    """Refuse the first block that is wrong.

    Raises
    ------
    InstanceError
        Naming the table, option and block, what was found and what is allowed.
    """
    for index in np.flatnonzero(_suspects(instance)).tolist():
        _block(instance, instance.block(index))


def _suspects(instance: Instance) -> np.ndarray:
    """Blocks that :func:`_block` may refuse, bool array [blocks]: all at once, no sentences."""
    where, count = instance.block_where, instance.block_count
    lo, hi = instance.block_shards[:-1], instance.block_shards[1:]
    suspect = (hi <= lo) | (np.isin(where, [Where.EVERY_RANK, Where.LIST]) & (count != 1))
    suspect |= (where == Where.LIST) & (instance.block_places < 0)
    for place in Where:
        suspect |= (where == place) & _doubtful_places(instance, place)[instance.block_places]
    total = np.append(0, np.cumsum(instance.shard_repeat))
    given = total[hi] - total[lo]
    least, most = _wanted_range(instance)
    suspect |= (given != 1) & ((given != least) | (given != most))
    placed = [i for i, r in enumerate(instance.resources) if r.scope != Scope.CLUSTER]
    used = np.append(0, np.cumsum(instance.shard_use[:, placed].any(axis=1)))
    suspect |= (where == Where.CLUSTER) & (used[hi] > used[lo])
    return np.asarray(suspect)


def _doubtful_places(instance: Instance, where: Where) -> np.ndarray:
    """Place sets that :func:`_places` would refuse for such a block, [sets + 1]; the last: none."""
    limit, _ = _places_of(instance, where)
    meaningless = where in (Where.EVERY_RANK, Where.CLUSTER)
    bad = [
        meaningless or not s or len(set(s)) != len(s) or min(s) < 0 or max(s) >= limit
        for s in instance.place_sets
    ]
    return np.asarray([*bad, False])


def _wanted_range(instance: Instance) -> tuple[IntArray, IntArray]:
    """Fewest and most entries a block may list one by one, int64 arrays [blocks]."""
    sizes = [len(m) for m in instance.machines]
    at = [[sizes[m] for m in s if 0 <= m < len(sizes)] or [0] for s in instance.place_sets]
    where, least = instance.block_where, instance.block_count.copy()
    least[where == Where.EVERY_RANK] = instance.num_ranks
    lists = where == Where.LIST
    lengths = np.asarray([*map(len, instance.place_sets), 0])
    least[lists] = lengths[instance.block_places[lists]]
    most, machine = least.copy(), where == Where.ONE_MACHINE
    places = instance.block_places[machine]
    least[machine] = np.asarray([*map(min, at), min(sizes)])[places]
    most[machine] = np.asarray([*map(max, at), max(sizes)])[places]
    return least, most


def _block(instance: Instance, block: BlockView) -> None:
    where = at_block(instance, block.index)
    if len(block.entries) == 0:
        raise InstanceError(f"{where}: at least one shard is needed")
    if block.where in (Where.EVERY_RANK, Where.LIST) and block.count != 1:
        raise InstanceError(f"{where}: count must be 1 for {block.where.name.lower()}")
    if block.places is not None:
        _places(instance, block, where)
    elif block.where == Where.LIST:
        raise InstanceError(f"{where}: a list of ranks is needed")
    wants = _wanted_entries(instance, block)
    given = _given_entries(instance, block)
    if given != 1 and any(given != w for w in wants):
        raise InstanceError(
            f"{where}: {given} shards for {'/'.join(map(str, sorted(wants)))} "
            "positions (give one that all share, or one a position)"
        )
    if block.where == Where.CLUSTER:
        placed = [i for i, r in enumerate(instance.resources) if r.scope != Scope.CLUSTER]
        if instance.shard_use[block.entries][:, placed].any():
            raise InstanceError(f"{where}: a cluster block may use cluster resources only")


def _given_entries(instance: Instance, block: BlockView) -> int:
    repeat = int(instance.shard_repeat[block.entries[0]])
    return repeat if block.shared else len(block.entries)


def _wanted_entries(instance: Instance, block: BlockView) -> set[int]:
    if block.where == Where.ONE_MACHINE:
        allowed = range(len(instance.machines)) if block.places is None else block.places
        return {len(instance.machines[m]) for m in allowed}
    return {instance.positions(block)}


def _places(instance: Instance, block: BlockView, where: str) -> None:
    assert block.places is not None
    if block.where in (Where.EVERY_RANK, Where.CLUSTER):
        raise InstanceError(f"{where}: 'among' has no meaning for {block.where.name.lower()}")
    limit, kind = _places_of(instance, block.where)
    if not block.places or len(set(block.places)) != len(block.places):
        raise InstanceError(f"{where}: its {kind} must be a non-empty list without repeats")
    if min(block.places) < 0 or max(block.places) >= limit:
        raise InstanceError(f"{where}: its {kind} must be in 0…{limit - 1}")


def _places_of(instance: Instance, where: Where) -> tuple[int, str]:
    """How many places ``among`` may name for such a block, and what they are."""
    if where in (Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE):
        return len(instance.machines), "machines"
    return instance.num_ranks, "ranks"


def at_option(instance: Instance, option: int) -> str:
    """An option as it stands in sentences."""
    table = int(np.searchsorted(instance.table_options, option, side="right")) - 1
    return f"table {instance.table_names[table]!r}, option {instance.option_names[option]!r}"


def at_block(instance: Instance, block: int) -> str:
    """A block as it stands in sentences."""
    option = int(np.searchsorted(instance.option_blocks, block, side="right")) - 1
    return f"{at_option(instance, option)}, block {block - int(instance.option_blocks[option])}"
