"""The CUDA source under AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import mistakes
from tests.cuda_routing.shim.host import KERNELS, SANITIZE, compile_kernels

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
