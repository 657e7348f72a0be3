"""Probes in torch: the part shared by CPU and CUDA, and the CPU itself.

On a CPU the near tier is a table that fits in the last-level cache, the far tier one many times
larger. CACHING is left to the processor: a set share of a call's ids falls on a small region that
was just touched, the others anywhere in the large table. HYBRID is two calls, one on a separate
small table and one on the large table. Every round draws fresh ids, as a batch read twice would be
found in the cache.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time
from datetime import date
from typing import Any

from milp_planner.errors import BadInput, MissingExtra
from milp_planner.features.calibrate.device_clock import DeviceClock
from milp_planner.features.calibrate.machine import (
    ELEMENT,
    Lap,
    Load,
    Probe,
    available_memory,
    last_level_cache,
    processor,
)
from milp_planner.features.calibrate.steps import StepSpec

LAUNCHES = 200
"""Calls of the smallest lookup per timing."""
WIDEST = 256
"""Floats in the widest row."""
DENSE_ROWS = 2**17
"""Rows of the replicated table, at the widest row: 128 MiB."""
FAR_BYTES = 2_000_000 * WIDEST * ELEMENT
NEAR_BYTES = 8 * 2**20
"""The near table at most: a guest's own part of its host's cache may be far below what it sees."""


class TorchMachine:
    """Two tiers of torch tensors, a clock, and probes.

    ``load`` describes one call, ``seed`` is that of the ids.

    The near tier is HBM or, on a CPU, the last-level cache; the far tier is host memory.
    """

    device = "cpu"
    near = "rows in the last-level cache"
    far = "rows in DRAM"
    fused = False
    """Whether a step looks up and updates all tables by one call each (FBGEMM's TBE)."""

    def __init__(self, near_bytes: int, far_bytes: int, load: Load, seed: int) -> None:
        import torch

        self._torch, self._seed, self.load = torch, seed, load
        self._near = torch.full((near_bytes // ELEMENT,), 0.01, device=self.device)
        self._far = self._make_far(far_bytes // ELEMENT)
        self._large = self._far if self.device == "cpu" else self._near

    def facts(self) -> dict[str, object]:
        """Processor, versions and sizes."""
        torch = self._torch
        return {
            "date": date.today().isoformat(),
            "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "device": self.device,
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            "threads": torch.get_num_threads(),
            "last_level_cache": last_level_cache(),
            "near_bytes": self._near.numel() * ELEMENT,
            "far_bytes": self._far.numel() * ELEMENT,
            "bags": self.load.bags,
            "pooling": self.load.pooling,
            "python": platform.python_version(),
            "torch": torch.__version__,
        }

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.perf_counter()

    def lookup(self, mode: str, hit: float, dim: int) -> Probe:
        """One call, with ids drawn uniformly within each tier."""
        name = f"{mode} x={hit:g} dim={dim}"
        near, far = self._near.view(-1, dim), self._far.view(-1, dim)
        hits = round(self.load.bags * hit)  # bags in the near tier
        if mode == "CACHING":
            return Probe(
                name,
                lambda number: self._mixed_ids(number, hit, dim),
                lambda ids, _lap: self._sum(far, ids),
            )

        def prepare(number: int) -> Any:
            draw = self._generator(number)
            ids = [self._ids(part, len(table), draw) for part, table in ((hits, near), (rest, far))]
            self._warm(near)
            return ids

        rest = self.load.bags - hits

        def run(ids: Any, _lap: Lap) -> None:
            for part, table in zip(ids, (near, far), strict=True):
                if len(part):
                    self._sum(table, part)

        return Probe(name, prepare, run)

    def launch(self) -> Probe:
        """Calls on one bag of one id."""
        return self._launch(LAUNCHES)

    def _launch(self, calls: int, clock: DeviceClock | None = None) -> Probe:
        table = self._near[: 16 * 32].view(-1, 32)
        ids = self._torch.zeros(1, dtype=self._torch.int64, device=self.device)

        def run(_ready: Any, _lap: Lap) -> None:
            for _ in range(calls):
                self._sum(table, ids, 1)

        return Probe("launch", lambda _: None, run, calls, clock=clock)

    def lookup_training(self, dim: int) -> Probe:
        """Lookup, sparse gradient and SGD update of the large table."""
        torch, functional = self._torch, self._torch.nn.functional
        table = self._large.view(-1, dim).detach().requires_grad_()
        offsets = self._offsets(self.load.bags, self.load.pooling)
        ones = torch.ones(self.load.bags, dim, device=self.device)

        def run(ids: Any, lap: Lap) -> None:
            out = functional.embedding_bag(ids, table, offsets, mode="sum", sparse=True)
            lap("forward")
            out.backward(ones)
            with torch.no_grad():
                table.add_(table.grad, alpha=-1e-9)
            table.grad = None
            lap("backward")

        def prepare(number: int) -> Any:
            return self._ids(self.load.bags, len(table), self._generator(number))

        return Probe(f"lookup training dim={dim}", prepare, run)

    def dense_update(self) -> tuple[Probe, float]:
        """The update of a replicated table: clear, scatter and apply a gradient of all rows."""
        torch, rows = self._torch, min(self.room // WIDEST, DENSE_ROWS)
        table = self._large[: rows * WIDEST].view(rows, WIDEST).detach().requires_grad_()
        offsets = self._offsets(self.load.bags, 1)
        optimizer = torch.optim.SGD([table], lr=1e-9)

        def prepare(number: int) -> Any:
            ids = torch.randint(rows, (self.load.bags,), generator=self._generator(number))
            out = torch.nn.functional.embedding_bag(ids.to(self.device), table, offsets, mode="sum")
            return out, torch.ones_like(out)

        def run(drawn: Any, _lap: Lap) -> None:
            drawn[0].backward(drawn[1])
            optimizer.step()
            table.grad = None

        return Probe("dense update", prepare, run), float(rows * WIDEST * ELEMENT)

    def step(self, spec: StepSpec) -> Probe:
        """A training step on slices of the large table."""
        from milp_planner.features.calibrate.torch_steps import step_probe

        return step_probe(spec, self._large, self.device, self._seed)

    @property
    def room(self) -> int:
        """A quarter of the large table: a step's optimizer state takes up to two thirds."""
        return int(self._large.numel()) // 4

    def copy(self) -> tuple[Probe, float] | None:
        """None: on a CPU both tiers are the same memory."""
        return None

    def runtime(self, mode: str, ratio: float) -> Probe | None:
        """None: dynamicemb needs a GPU."""
        return None

    def _make_far(self, elements: int) -> Any:
        return self._torch.full((elements,), 0.01)

    def _generator(self, number: int) -> Any:
        return self._torch.Generator().manual_seed(self._seed * 1_000_003 + number)

    def _ids(self, bags: int, rows: int, draw: Any) -> Any:
        drawn = self._torch.randint(rows, (bags * self.load.pooling,), generator=draw)
        return drawn.to(self.device)

    def _mixed_ids(self, number: int, hit: float, dim: int) -> Any:
        """Ids of the far table, each with probability ``hit`` in its first rows, just touched."""
        torch, draw, far = self._torch, self._generator(number), self._far.view(-1, dim)
        hot = self._near.numel() // dim
        inside = torch.rand(self.load.ids, generator=draw) < hit
        ids = torch.where(
            inside, self._ids(self.load.bags, hot, draw), self._ids(self.load.bags, len(far), draw)
        )
        self._warm(far[:hot])
        return ids

    def _warm(self, table: Any) -> None:
        """Read a region once, so that it is in the cache when the clock starts."""
        table.sum()

    def _offsets(self, bags: int, pooling: int) -> Any:
        return self._torch.arange(bags, device=self.device) * pooling

    def _sum(self, table: Any, ids: Any, pooling: int | None = None) -> Any:
        pooling = pooling or self.load.pooling
        offsets = self._offsets(len(ids) // pooling, pooling)
        return self._torch.nn.functional.embedding_bag(ids, table, offsets, mode="sum")


def cpu_machine(quick: bool, threads: int | None, seed: int) -> TorchMachine:
    """This machine's CPU: rows in the last-level cache against 2 GB (quick: 0.5 GB) or more.

    MissingExtra without torch; BadInput when memory is too small.
    """
    torch = need_torch()
    near, far = sizes(last_level_cache() or 4 * NEAR_BYTES, available_memory() or 2**35, quick)
    need_memory(far + 2**30)
    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    return TorchMachine(near, far, Load(2048 if quick else 8192, 8), seed)


def sizes(cache: int, free: int, quick: bool) -> tuple[int, int]:
    """Bytes of the near and the far table, by those of the last-level cache and of free memory."""
    row = WIDEST * ELEMENT
    near = min(cache // 4, NEAR_BYTES) // row * row
    far = min(16 * cache, free // 4) // row * row
    return near, max(FAR_BYTES // 4 if quick else FAR_BYTES, far)


def keep_freed_memory() -> bool:
    """Make glibc keep freed blocks, as a trainer's allocator (jemalloc, tcmalloc) does.

    By default it returns large blocks to the system, so a step spends much of its time on page
    faults of its own outputs. Returns False if the C library has no such setting.
    """
    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX of mallopt(3)
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(trim_threshold, 2**31 - 1) and mallopt(mmap_max, 0))


def need_torch() -> Any:
    """The torch module; MissingExtra says what to install."""
    try:
        import torch
    except ImportError:
        raise MissingExtra(
            "calibrate measures with torch, which is not installed: "
            "pip install 'milp-planner[routing]'"
        ) from None
    return torch


def need_memory(wanted: int) -> None:
    """Raise BadInput if the measurement's tables would not fit."""
    free = available_memory()
    if free is not None and free < wanted:
        raise BadInput(
            f"calibrate needs {wanted / 1e9:.1f} GB of free memory, {free / 1e9:.1f} GB are free "
            "(--quick needs less)"
        )
