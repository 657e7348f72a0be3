"""Compile the CUDA source with g++ and run batches on it."""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuda_routing
from cuda_routing.features import Features
from cuda_routing.launch import Batch, Geometry, chunk_of, run_once, run_tiled, set_ranks
from cuda_routing.oracle import index_dtype
from cuda_routing.result import Bucketized
from cuda_routing.tables import rule_table

HERE = Path(__file__).parent
KERNELS = Path(cuda_routing.__file__).parent / "kernels"
MAIN = "fake_driver.cpp"
SMALL = Geometry(block=64, items=2)
REAL = Geometry()
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")


def compile_kernels(
    key_bits: int,
    length_bits: int,
    geometry: Geometry = SMALL,
    *,
    source: str | None = None,
    flags: tuple[str, ...] = ("-O1",),
) -> Path:
    """Build the shared library for one choice of types, with a stand-in for CUDA's driver; without
    g++ the test is skipped."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    text = source if source is not None else (KERNELS / "bucketize.cu").read_text()
    files = [(KERNELS / "rule.h"), *(HERE / name for name in ("harness.cpp", "cuda_shim.h", MAIN))]
    texts = [text, *(file.read_text() for file in files)]
    parts = (texts, key_bits, length_bits, geometry, flags)
    name = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    folder = _build_folder()
    library, kernel_file = folder / f"{name}.so", folder / f"{name}.cu"
    if library.exists():
        return library
    kernel_file.write_text(text)
    command = [
        compiler, "-std=c++17", "-shared", "-fPIC", "-pthread", *flags,
        "-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-function",
        f"-DKEY_BITS={key_bits}", f"-DLENGTH_BITS={length_bits}",
        f"-DBLOCK={geometry.block}", f"-DITEMS={geometry.items}",
        f'-DKERNEL_FILE="{kernel_file}"', f"-I{KERNELS}", f"-I{HERE}",
        "-include", str(HERE / "cuda_shim.h"), str(HERE / MAIN), "-o", str(library),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.exit(f"the CUDA source does not compile on the shim:\n{done.stderr}", 1)
    return library


@functools.cache
def _build_folder() -> Path:
    """One folder per process, removed when it ends."""
    keeper = tempfile.TemporaryDirectory(prefix="shim-")
    _KEEPERS.append(keeper)
    return Path(keeper.name)


_KEEPERS: list[tempfile.TemporaryDirectory[str]] = []


class HostLauncher:
    """Runs kernels on fibers, threads and blocks forward or in reverse."""

    def __init__(self, library: Path, *, reverse: bool = False) -> None:
        self.library = ctypes.CDLL(str(library))
        self.reverse = reverse
        self.launched: list[str] = []

    def launch(
        self, kernel: str, grid: int, threads: int, shared: int, batch: Batch, cooperative: bool
    ) -> None:
        """Run one launch to its end."""
        status = self.library.shim_launch(
            kernel.encode(), ctypes.byref(batch), grid, threads, shared, cooperative, self.reverse
        )
        assert status == 0, f"{kernel}: status {status}"
        self.launched.append(kernel)


def bucketize_host(  # noqa: PLR0913 - mirrors the CUDA path
    launcher: HostLauncher,
    geometry: Geometry,
    lengths: np.ndarray,
    keys: np.ndarray,
    features: Features,
    *,
    weights: np.ndarray | None = None,
    positions: bool = False,
    permute: bool = True,
    once: bool = False,
) -> Bucketized:
    """Bucketize a non-empty batch with the kernels on the shim."""
    index = index_dtype(keys.dtype)
    n, p = keys.size, features.ranks
    table, edges = rule_table(features)
    tiles = geometry.tiles(n)
    buffers: dict[str, Any] = {
        "keys": keys.copy(), "lengths": lengths.copy(),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "feature_rows": features.row_starts, "table": table, "edges": edges,
        "weights": weights, "out_keys": np.empty_like(keys),
        "out_lengths": np.zeros(p * lengths.size, lengths.dtype),
        "out_weights": None if weights is None else np.empty_like(weights),
        "positions": np.empty(n, index) if positions else None,
        "permute": np.empty(n, index) if permute else None,
        "tile_counts": np.full(tiles * p, 77, np.uint32), "totals": np.full(p, 78, np.uint32),
        "chunk_sums": np.zeros(-(-tiles // chunk_of(tiles)) * p, np.uint32),
        "block_sums": np.full(tiles, 79, np.uint64), "barrier": np.zeros(2, np.uint32),
    }  # fmt: skip
    if once:  # the kernel computes offsets and clears lengths itself
        buffers["offsets"][:] = -1
        buffers["out_lengths"][:] = 55
    batch = Batch(count=n, rows=lengths.size, features=features.count, tiles=tiles)
    for name, array in buffers.items():
        setattr(batch, name, 0 if array is None else array.ctypes.data)
    set_ranks(batch, p, narrow_hash=features.dynamicemb_int32 and keys.dtype.itemsize == 4)
    (run_once if once else run_tiled)(launcher, batch, geometry)
    assert not buffers["barrier"].any(), "the barrier must be left clear for the next launch"
    return Bucketized(
        buffers["out_lengths"], buffers["out_keys"], buffers["out_weights"],
        buffers["positions"], buffers["permute"], p,
    )  # fmt: skip
