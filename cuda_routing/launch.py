"""Launches for a batch: the kernel argument, sizes, and the order of the kernels.

This module does not depend on a driver: the GPU and the CPU shim of the tests launch through the
same functions.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Protocol

from cuda_routing.errors import RoutingError

MOST_KEYS = (1 << 31) - 1
MOST_RANKS = 2048
SCAN_THREADS = 1024
SCAN_RANKS = 32
_POINTERS = (
    "keys", "lengths", "offsets", "feature_rows", "table", "edges", "weights", "out_keys",
    "out_lengths", "out_weights", "positions", "permute", "tile_counts", "totals", "chunk_sums",
    "block_sums", "barrier",
)  # fmt: skip
_NUMBERS = ("count", "rows", "features", "tiles", "chunk", "uniform", "bits")
_RANKS = ("ranks", "mask", "magic", "keep")


class Batch(ctypes.Structure):
    """The kernels' only argument: ``struct Batch`` of ``kernels/bucketize.cu``, field by field."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in _POINTERS),
        *((name, ctypes.c_int64) for name in _NUMBERS),
        *((name, ctypes.c_uint64) for name in _RANKS),
    ]


@dataclass(frozen=True)
class Geometry:
    """Threads per block and keys per thread, as compiled into the kernels."""

    block: int = 256
    items: int = 8

    @property
    def tile(self) -> int:
        """Keys that a block takes."""
        return self.block * self.items

    def tiles(self, keys: int) -> int:
        """Blocks for this many keys."""
        return -(-keys // self.tile)

    def shared_bytes(self, ranks: int) -> int:
        """Dynamic shared memory of the scatter (``struct Shared``)."""
        warps = self.block // 32
        return 8 * self.tile + 4 * (2 * ranks + 64) + 2 * warps * ranks + 2 * self.tile


class Launcher(Protocol):
    """Runs kernels by name."""

    def launch(
        self, kernel: str, grid: int, threads: int, shared: int, batch: Batch, cooperative: bool
    ) -> None:
        """Queue one launch."""


def chunk_of(tiles: int) -> int:
    """Tiles that one block of the scan takes: about their square root."""
    return 1 << max(3, (tiles.bit_length() + 1) // 2)


def set_ranks(batch: Batch, ranks: int, *, narrow_hash: bool) -> None:
    """Fill in the constants of the rule for this many ranks."""
    batch.ranks = ranks
    batch.mask = ranks - 1 if ranks & (ranks - 1) == 0 else 0
    batch.magic = ((1 << 64) - 1) // ranks
    batch.keep = 0xFFFFFFFF if narrow_hash else (1 << 64) - 1
    batch.bits = (ranks - 1).bit_length()


def check_sizes(keys: int, ranks: int) -> None:
    """Refuse sizes that exceed the kernels' 32-bit places or 16-bit owners.

    Raises
    ------
    RoutingError
        Too many keys or ranks for one call.
    """
    if keys > MOST_KEYS:
        raise RoutingError(f"the CUDA path takes up to {MOST_KEYS} keys per call, got {keys}")
    if ranks > MOST_RANKS:
        raise RoutingError(f"the CUDA path takes up to {MOST_RANKS} ranks, got {ranks}")


def run_tiled(launcher: Launcher, batch: Batch, geometry: Geometry) -> None:
    """Large batches: count, scan, scatter; ``out_lengths`` and ``chunk_sums`` must be zero."""
    tiles, ranks = int(batch.tiles), int(batch.ranks)
    batch.chunk = chunk_of(tiles)
    blocks = -(-ranks // SCAN_RANKS) * -(-tiles // batch.chunk)
    launcher.launch("count_tiles", tiles, geometry.block, 4 * ranks, batch, False)
    launcher.launch("scan_tiles", blocks, SCAN_THREADS, 4 * SCAN_THREADS, batch, False)
    shared = geometry.shared_bytes(ranks)
    launcher.launch("scatter_tiles", tiles, geometry.block, shared, batch, False)


def run_once(launcher: Launcher, batch: Batch, geometry: Geometry) -> None:
    """Small batches: one cooperative launch does everything; its blocks are resident together."""
    shared = geometry.shared_bytes(int(batch.ranks))
    launcher.launch("bucketize_once", int(batch.tiles), geometry.block, shared, batch, True)
