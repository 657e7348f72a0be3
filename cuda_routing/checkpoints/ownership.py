"""From a stored key to its identity, and from there to its new owner."""

from __future__ import annotations

import numpy as np

from cuda_routing.checkpoints.layout import Meta
from cuda_routing.errors import CheckpointError, RoutingError
from cuda_routing.rules import Int64Array, as_index_type, local_keys, owners


def global_keys(
    stored: Int64Array, rank: int, world_size: int, meta: Meta, where: str
) -> Int64Array:
    """Identity of the keys that one rank stored, after checking that they belong to it.

    Parameters
    ----------
    stored : array of int64 [n]
    rank, world_size : int
        Rank that saved them, and number of ranks.
    meta : Meta
        Metadata with the rule they were saved under.
    where : str
        File that errors name.

    Raises
    ------
    CheckpointError
        A key belongs to another rank, because the dist_type is missing or wrong.
    """
    block = meta.block_size(world_size)
    if block is not None:
        wrong = (stored < 0) | (stored >= block)
        if wrong.any():
            raise CheckpointError(
                f"{where}: local key {int(stored[wrong][0])} lies beyond the block of {block} rows "
                "a rank has: rows or dist_type is wrong, or the key was out of range when it was "
                "routed and its identity is lost"
            )
        return stored + rank * block
    owner = _owners(stored, world_size, meta, None, where)
    wrong = owner != rank
    if wrong.any():
        raise CheckpointError(
            f"{where}: key {int(stored[wrong][0])} belongs to rank {int(owner[wrong][0])} of "
            f"{world_size} under {meta.rule.dist_type} of {meta.index_type} keys; if the table was "
            "routed by another dist_type, pass source_rule=; by keys of another type, index_type="
        )
    return stored


def new_places(
    keys: Int64Array, world_size: int, meta: Meta, where: str
) -> tuple[Int64Array, Int64Array]:
    """Owner and stored key under the new layout.

    Raises
    ------
    CheckpointError
        A key lies beyond the table, and continuous would merge it with another.
    """
    block = meta.block_size(world_size)
    if block is not None:
        assert meta.rows is not None
        wrong = (keys < 0) | (keys >= block * world_size)
        if wrong.any():
            raise CheckpointError(
                f"{where}: key {int(keys[wrong][0])} lies outside the table's {meta.rows} rows; "
                "under dist_type continuous it would be merged with another key: choose another "
                "rule, or pass a larger rows="
            )
    owner = _owners(keys, world_size, meta, block, where)
    local = local_keys(keys, world_size, meta.rule, block_size=block)
    return owner, np.asarray(local, dtype=np.int64)


def _owners(
    keys: Int64Array, world_size: int, meta: Meta, block: int | None, where: str
) -> Int64Array:
    """Rank to which the runtime sends keys of the table's index type.

    Raises
    ------
    CheckpointError
        A key needs more bits than that type has.
    """
    try:
        typed = as_index_type(keys, meta.index_type)
    except RoutingError as error:
        raise CheckpointError(f"{where}: {error}: pass index_type='int64'") from None
    return owners(typed, world_size, meta.rule, block_size=block, dynamicemb_int32=True)
