"""Save one rank's rows in such a way that an interrupted save can be recognised."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.checkpoints.layout import (
    KINDS,
    Meta,
    data_path,
    manifest_path,
    meta_path,
    settle,
    write_json,
)
from cuda_routing.checkpoints.shards import Shard
from cuda_routing.errors import CheckpointError, RoutingError
from cuda_routing.rules import Rule, as_index_type, check_ranks

DTYPES = {"keys": "<i8", "values": "<f4", "scores": "<u8", "opt_values": "<f4"}


def save_shard(  # noqa: PLR0913 - where, what, and the facts the files must carry
    folder: str | Path,
    table: str,
    shard: Shard,
    *,
    rank: int,
    world_size: int,
    rule: Rule | int | str,
    rows: int | None = None,
    evict_strategy: str | None = None,
    tag: str | None = None,
    index_type: str = "int64",
    durable: bool = True,
) -> None:
    """Write one rank's files; rank 0 writes the metadata too.

    Parameters
    ----------
    folder : path
        Created if it does not exist. Use a new one for each save, or a new ``tag``.
    rule : Rule, int or str
        The dist_type with which the keys were routed.
    rows : int, optional
        Size of the table; required for continuous.
    evict_strategy : str, optional
    tag : str, optional
        Names this save (a step, for instance): ranks with different tags are not mixed on load.
    index_type : str
        ``int32`` if batches of int32 keys were routed, which dynamicemb hashes differently.
    durable : bool
        Wait until the data is on the disk.

    Raises
    ------
    CheckpointError
        Arrays of different lengths, continuous without rows, an unknown index_type, or a key that
        does not fit it.

    Notes
    -----
    Each file is written under a temporary name and renamed. The manifest comes last, so a save
    without it was interrupted.
    """
    folder, rule = Path(folder), Rule.parse(rule)
    if not 0 <= rank < check_ranks(world_size):
        raise CheckpointError(f"rank must lie in 0 … {world_size - 1}, got {rank}")
    if rule is Rule.CONTINUOUS and rows is None:
        raise CheckpointError("a continuous table must be saved with its number of rows: rows=")
    arrays = _checked(shard)
    try:
        as_index_type(arrays["keys"], index_type)
    except RoutingError as error:
        raise CheckpointError(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    manifest_path(folder, table, rank, world_size).unlink(missing_ok=True)
    if rank == 0:
        other = {"manifests": True, "world_size": world_size}
        named = {} if evict_strategy is None else {"evict_strategy": evict_strategy}
        meta = Meta(rule, rows, tag, other | named, index_type)
        write_json(meta_path(folder, table), meta.as_json(), durable=durable)
    for kind in set(KINDS) - set(arrays):
        data_path(folder, table, kind, rank, world_size).unlink(missing_ok=True)
    checksums = {}
    for kind, array in arrays.items():
        path = data_path(folder, table, kind, rank, world_size)
        checksums[kind] = _write(path, array, durable)
    manifest = {
        "tag": tag,
        "bytes": {kind: array.nbytes for kind, array in arrays.items()},
        "row_bytes": {
            kind: array.dtype.itemsize * math.prod(array.shape[1:])
            for kind, array in arrays.items()
        },
        "crc32": checksums,
    }
    write_json(manifest_path(folder, table, rank, world_size), manifest, durable=durable)


def _checked(shard: Shard) -> dict[str, NDArray[Any]]:
    """Arrays in the file's types, refused where their lengths differ."""
    arrays = {
        kind: np.ascontiguousarray(array, dtype=DTYPES[kind])
        for kind, array in shard.arrays().items()
    }
    count = arrays["keys"].shape[0]
    for kind, array in arrays.items():
        if array.shape[0] != count:
            raise CheckpointError(f"{array.shape[0]} {kind} do not go with {count} keys")
    return arrays


def _write(path: Path, array: NDArray[Any], durable: bool) -> int:
    """Write one file under a temporary name, rename it, return its CRC-32."""
    temporary = path.with_name(f"{path.name}.tmp")
    data = array.reshape(-1).view(np.uint8)
    with temporary.open("wb") as file:
        file.write(data.data)
        settle(file, durable)
    temporary.replace(path)
    return zlib.crc32(data.data)
