"""Load one rank's rows; refuse checkpoints that this run would misinterpret."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuda_routing.checkpoints.layout import read_meta, world_size_of
from cuda_routing.checkpoints.save import DTYPES
from cuda_routing.checkpoints.shards import Shard, ShardFiles, open_all, open_shard
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule


@dataclass(frozen=True)
class CheckpointInfo:
    """One table of a checkpoint.

    Attributes
    ----------
    table : str
    world_size : int
    rule : Rule
    rows : int or None
        Size of the table, where the metadata says.
    counts : list of int [world_size]
        Rows saved by each rank.
    row_bytes : dict of kind to int or None
    checked : bool
        Whether every rank has a manifest: the sizes agree with it, and :func:`load_shard` compares
        what it reads with its checksums.
    """

    table: str
    world_size: int
    rule: Rule
    rows: int | None
    counts: list[int]
    row_bytes: dict[str, int | None]
    checked: bool


def inspect(folder: str | Path, table: str) -> CheckpointInfo:
    """Describe a checkpoint without reading its rows.

    Raises
    ------
    CheckpointError
        It is not complete.
    """
    folder = Path(folder)
    world, meta = world_size_of(folder, table), read_meta(folder, table)
    shards = open_all(folder, table, world, meta)
    widths: dict[str, int | None] = {
        kind: max((s.row_bytes[kind] or 0 for s in shards), default=0) or None
        for kind in shards[0].paths
    }
    return CheckpointInfo(
        table, world, meta.rule, meta.rows, [shard.count for shard in shards], widths,
        all(shard.checksums is not None for shard in shards),
    )  # fmt: skip


def load_shard(
    folder: str | Path, table: str, *, rank: int, world_size: int, rule: Rule | int | str
) -> Shard:
    """Read one rank's rows.

    Parameters
    ----------
    folder : path
    table : str
    rank, world_size : int
        Rank and number of ranks of this run.
    rule : Rule, int or str
        The dist_type with which this run routes.

    Raises
    ------
    CheckpointError
        The checkpoint was saved with another number of ranks or another rule (the message names the
        fix), is missing or cut short, or its contents fail their checksum.
    """
    folder, rule = Path(folder), Rule.parse(rule)
    saved, meta = world_size_of(folder, table), read_meta(folder, table)
    if saved != world_size or meta.rule is not rule:
        raise CheckpointError(
            f"{folder}: table {table} was saved by {saved} ranks with dist_type "
            f"{meta.rule.dist_type}, this run has {world_size} with {rule.dist_type}; re-shard it "
            f"first: cuda_routing.checkpoints.reshard(source, target, "
            f"world_size={world_size}, rule={rule.dist_type!r})"
        )
    if not 0 <= rank < world_size:
        raise CheckpointError(f"rank must lie in 0 … {world_size - 1}, got {rank}")
    files = open_shard(folder, table, rank, world_size, meta)
    arrays = {kind: _read(files, kind) for kind in files.paths}
    arrays["keys"] = arrays["keys"].reshape(-1)
    if "scores" in arrays and arrays["scores"].shape[1] == 1:
        arrays["scores"] = arrays["scores"].reshape(-1)
    return Shard(**arrays)


def _read(files: ShardFiles, kind: str) -> Any:
    """One file as [rows, …], checked against its checksum."""
    data = files.read(kind, 0, files.count)
    if files.checksums is not None and zlib.crc32(data.reshape(-1).data) != (files.checksums[kind]):
        raise CheckpointError(f"{files.paths[kind]} does not match its checksum: it is damaged")
    width = (files.row_bytes[kind] or 0) // np.dtype(DTYPES[kind]).itemsize
    return data.reshape(-1).view(DTYPES[kind]).reshape(files.count, width)
