"""Sizes and order of launches, and the layout shared with the C source.

The CUDA source under AddressSanitizer and UndefinedBehaviorSanitizer.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_routing.errors import RoutingError
from cuda_routing.launch import Batch, Geometry, check_sizes, run_once, run_tiled, set_ranks
from tests.corpus import mistakes
from tests.cuda_routing.shim.host import KERNELS, SANITIZE, compile_kernels


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
    library = ctypes.CDLL(str(compile_kernels(64, 64)))
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


ROOT = Path(__file__).resolve().parents[2]


def replay_sanitized(library: Path) -> subprocess.CompletedProcess[str]:
    """Replay the fixed batches with the sanitizer's run-time library loaded first."""
    runtimes = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True,
                       check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]  # fmt: skip
    if not all(Path(runtime).is_absolute() for runtime in runtimes):
        pytest.skip("g++ has no sanitizer run-time here")
    environment = os.environ | {
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.cuda_routing.shim.replay", str(library)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_no_finding_in_the_shipped_source() -> None:
    """The shipped source reads and writes nothing out of bounds and has no undefined behaviour."""
    done = replay_sanitized(compile_kernels(64, 64, flags=SANITIZE))
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(("before", "after"), mistakes(__file__, "an overrun is named"))
def test_an_overrun_is_named(before: str, after: str) -> None:
    """One element too far in global or shared memory is reported with its line of the kernel."""
    source = (KERNELS / "bucketize.cu").read_text()
    assert source.count(before) == 1
    done = replay_sanitized(compile_kernels(64, 64, source=source.replace(before, after),
                                            flags=SANITIZE))  # fmt: skip
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
    assert ".cu:" in done.stderr
