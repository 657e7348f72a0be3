"""One rank's part of a table: check its sizes, read its rows piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.checkpoints.layout import (
    KEY_BYTES,
    KINDS,
    SCORE_BYTES,
    SCORE_WORDS,
    Meta,
    data_path,
    manifest_path,
    read_json,
)
from cuda_routing.errors import CheckpointError

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Shard:
    """Rows of one rank.

    Attributes
    ----------
    keys : array of int64 [n]
        As the rank stores them (local keys under continuous).
    values : array of float32 [n, dim]
    scores : array of uint64 [n] or None
        [n, 2] under a compound score strategy.
    opt_values : array of float32 [n, state] or None
        Optimizer state.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float32]
    scores: NDArray[np.uint64] | None = None
    opt_values: NDArray[np.float32] | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by kind, absent ones left out."""
        found = {kind: getattr(self, kind) for kind in KINDS}
        return {kind: array for kind, array in found.items() if array is not None}


@dataclass(frozen=True)
class ShardFiles:
    """Files of one rank, whose sizes agree.

    Attributes
    ----------
    rank : int
    count : int
        Number of rows.
    paths : dict of kind to path
    row_bytes : dict of kind to int
        Bytes of one row; None where the rank has no rows.
    checksums : dict of kind to int, or None
        CRC-32 of each file, where there is a manifest.
    """

    rank: int
    count: int
    paths: dict[str, Path]
    row_bytes: dict[str, int | None]
    checksums: dict[str, int] | None

    def read(self, kind: str, start: int, stop: int) -> Bytes:
        """Rows start … stop of one file as bytes, [stop − start, row bytes].

        Raises
        ------
        CheckpointError
            The file has become shorter.
        """
        width = self.row_bytes[kind] or 0
        size = (stop - start) * width
        data = np.fromfile(self.paths[kind], np.uint8, count=size, offset=start * width)
        if data.size != size:
            raise CheckpointError(f"{self.paths[kind]} was cut short while it was read")
        return data.reshape(stop - start, width)


def open_shard(folder: Path, table: str, rank: int, world_size: int, meta: Meta) -> ShardFiles:
    """Check one rank's files against each other and their manifest.

    Raises
    ------
    CheckpointError
        A file is missing, cut short or from another save; the message names it.
    """
    paths = {kind: data_path(folder, table, kind, rank, world_size) for kind in KINDS}
    if not paths["keys"].is_file():
        raise CheckpointError(
            f"{paths['keys']} is missing: rank {rank} of {world_size} did not finish its save"
        )
    sizes = {kind: path.stat().st_size for kind, path in paths.items() if path.is_file()}
    manifest = _check_manifest(folder, table, rank, world_size, sizes, meta)
    count, rest = divmod(sizes["keys"], KEY_BYTES)
    if rest:
        raise CheckpointError(
            f"{paths['keys']} has {sizes['keys']} bytes, not a multiple of {KEY_BYTES}: "
            "it was cut short"
        )
    if count == 0 and any(sizes.values()):
        raise CheckpointError(f"{paths['keys']} is empty, but its rank has other rows")
    if "values" not in sizes:
        raise CheckpointError(f"{paths['values']} is missing: rank {rank} did not finish its save")
    said = manifest.get("row_bytes", {})
    widths = {
        kind: said.get(kind) if count == 0 else _row_bytes(paths[kind], kind, size, count)
        for kind, size in sizes.items()
    }
    present = {kind: paths[kind] for kind in sizes}
    return ShardFiles(rank, count, present, widths, manifest.get("crc32"))


def open_all(folder: Path, table: str, world_size: int, meta: Meta) -> list[ShardFiles]:
    """Every rank's files, with equal row sizes and the same kinds.

    Raises
    ------
    CheckpointError
        A rank is missing, or ranks disagree.
    """
    shards = [open_shard(folder, table, rank, world_size, meta) for rank in range(world_size)]
    for shard in shards:
        if shard.paths.keys() != shards[0].paths.keys():
            odd = sorted(shard.paths.keys() ^ shards[0].paths.keys())
            raise CheckpointError(
                f"{folder}: table {table} has {', '.join(odd)} on some ranks only "
                f"(ranks 0 and {shard.rank} differ): a save was interrupted"
            )
    for kind in shards[0].paths:
        widths = {shard.row_bytes[kind] for shard in shards} - {None}
        if len(widths) > 1:
            raise CheckpointError(
                f"{folder}: rows of {table}'s {kind} have {sorted(map(int, filter(None, widths)))} "
                "bytes on different ranks: a file was cut short"
            )
    return shards


def _row_bytes(path: Path, kind: str, size: int, count: int) -> int:
    """Bytes per row of a file that has rows; only optimizer state may be empty.

    Raises
    ------
    CheckpointError
        The file does not hold a whole number of rows.
    """
    width, rest = divmod(size, count)
    scores = [SCORE_BYTES * words for words in SCORE_WORDS]
    fits = {"keys": width == KEY_BYTES, "scores": width in scores, "values": width > 0}
    if rest or not fits.get(kind, True):
        raise CheckpointError(
            f"{path} has {size} bytes, which is not a whole row for each of {count} keys: "
            "it was cut short"
        )
    return width


def _check_manifest(
    folder: Path, table: str, rank: int, world_size: int, sizes: dict[str, int], meta: Meta
) -> dict[str, Any]:
    """Return a rank's manifest, empty if there is none (in a checkpoint that dynamicemb wrote).

    Raises
    ------
    CheckpointError
        A size differs, or the manifest is from another save.
    """
    path = manifest_path(folder, table, rank, world_size)
    if not path.is_file():
        if meta.other.get("manifests"):
            raise CheckpointError(f"{path} is missing: rank {rank} did not finish its save")
        return {}
    manifest = read_json(path)
    if manifest.get("tag") != meta.tag:
        raise CheckpointError(
            f"{path} belongs to save {manifest.get('tag')!r}, the metadata to {meta.tag!r}: "
            "a later save was interrupted"
        )
    if manifest["bytes"] != sizes:
        for kind, size in manifest["bytes"].items():
            if sizes.get(kind) != size:
                raise CheckpointError(
                    f"{data_path(folder, table, kind, rank, world_size)} has "
                    f"{sizes.get(kind, 0)} bytes, its manifest says {size}: it was cut short or "
                    "overwritten"
                )
    return manifest
