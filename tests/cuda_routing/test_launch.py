"""Sizes and order of launches, and the layout shared with the C source."""

import ctypes

import pytest

from cuda_routing.errors import RoutingError
from cuda_routing.launch import Batch, Geometry, check_sizes, run_once, run_tiled, set_ranks
from tests.cuda_routing.shim.host import compile_kernels


class Recorder:
    """Records launches instead of running them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int, int, bool]] = []

    def launch(
        self, kernel: str, grid: int, threads: int, shared: int, batch: Batch, cooperative: bool
    ) -> None:
        """Record one launch."""
        self.calls.append((kernel, grid, threads, shared, cooperative))


def test_batch_has_the_size_of_the_c_struct() -> None:
    """The ctypes structure and ``struct Batch`` take the same bytes."""
    library = ctypes.CDLL(str(compile_kernels(64, 64, main="fake_driver.cpp")))
    library.fake_batch_size.restype = ctypes.c_uint64
    assert ctypes.sizeof(Batch) == library.fake_batch_size()


def test_rank_constants() -> None:
    """Eight ranks have a mask and three bits, seven a multiplier, one rank neither."""
    batch = Batch()
    set_ranks(batch, 8, narrow_hash=False)
    assert (batch.mask, batch.bits, batch.keep) == (7, 3, 2**64 - 1)
    set_ranks(batch, 7, narrow_hash=True)
    assert (batch.mask, batch.bits, batch.keep) == (0, 3, 0xFFFFFFFF)
    assert batch.magic == (2**64 - 1) // 7
    set_ranks(batch, 1, narrow_hash=False)
    assert (batch.mask, batch.bits) == (0, 0)


def test_order_of_launches() -> None:
    """Three launches for large batches (64 ranks: two groups, of five chunks), one for small."""
    geometry, recorder = Geometry(), Recorder()
    batch = Batch(tiles=geometry.tiles(80_000))
    set_ranks(batch, 64, narrow_hash=False)
    run_tiled(recorder, batch, geometry)
    run_once(recorder, batch, geometry)
    assert [call[:2] for call in recorder.calls] == [
        ("count_tiles", 40), ("scan_tiles", 10), ("scatter_tiles", 40), ("bucketize_once", 40)
    ]  # fmt: skip
    assert [call[4] for call in recorder.calls] == [False, False, False, True]


def test_shared_memory_fits_a_multiprocessor() -> None:
    """Even 2,048 ranks stay within the 163 KB of an sm_80 block."""
    assert Geometry().shared_bytes(64) < 48 * 1024
    assert Geometry().shared_bytes(2048) < 163 * 1024


def test_limits_are_sentences() -> None:
    """Too many keys or ranks are refused in a sentence."""
    with pytest.raises(RoutingError, match="keys"):
        check_sizes(1 << 31, 8)
    with pytest.raises(RoutingError, match="ranks"):
        check_sizes(5, 2049)
