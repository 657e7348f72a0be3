"""A GPU: HBM as the near tier, pinned host memory over PCIe as the far tier.

HOST_ONLY gathers rows on the host into a pinned buffer and copies them over; CACHING copies the
missing rows over, writes them into slots of the cache and then reads all rows there; HYBRID reads
its share in HBM and copies the rest. Rows in HBM are looked up, and steps made, by FBGEMM's TBE
where it loads; lookups in HBM alone are then timed on the device. Where dynamicemb is installed,
its own tables are timed too, built as in NVIDIA/recsys-examples, ``corelib/dynamicemb``.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from milp_planner.errors import BadInput
from milp_planner.features.calibrate.device_clock import DeviceClock
from milp_planner.features.calibrate.machine import ELEMENT, Lap, Load, Probe
from milp_planner.features.calibrate.steps import StepSpec
from milp_planner.features.calibrate.torch_machine import TorchMachine, need_memory, need_torch

NEAR_BYTES, FAR_BYTES = 2**32, 2**32
STARTS = 16
"""Calls of FBGEMM's smallest lookup per timing, which the host queues while the device pauses."""
QUICK_BYTES = 2**30


class CudaMachine(TorchMachine):
    """The current CUDA device and its host."""

    device = "cuda"
    _runtime = find_spec("dynamicemb") is not None
    near = "rows in HBM"
    far = "rows in pinned host memory"

    def __init__(self, near_bytes: int, far_bytes: int, load: Load, seed: int) -> None:
        from milp_planner.features.calibrate.fused_tables import fbgemm_version

        super().__init__(near_bytes, far_bytes, load, seed)
        self._tables: dict[int, Any] = {}
        self._offsets_of: dict[tuple[int, int], Any] = {}
        try:
            self._fbgemm, self.fused = fbgemm_version(self.device), True
        except ImportError as error:
            self._fbgemm = f"not used: {error}"

    def facts(self) -> dict[str, object]:
        """The same as for a CPU, and the GPU's."""
        cuda = self._torch.cuda
        return {
            **super().facts(),
            "gpu": cuda.get_device_name(),
            "cuda": self._torch.version.cuda,
            "device_cache": cuda.get_device_properties().L2_cache_size,
            "fbgemm": self._fbgemm,
        }

    def now(self) -> float:
        """Seconds, after the device has finished all queued work."""
        self._torch.cuda.synchronize()
        return time.perf_counter()

    def lookup(self, mode: str, hit: float, dim: int) -> Probe:
        """One call; which ids are in the near tier is known beforehand, as after a cache lookup."""
        near, far = self._near.view(-1, dim), self._far.view(-1, dim)
        hits = round(self.load.bags * hit)
        rest = self.load.bags - hits
        missing = rest * self.load.pooling
        buffer = self._torch.empty((missing, dim), pin_memory=True)

        def prepare(number: int) -> Any:
            draw = self._generator(number)
            slots = self._torch.randperm(len(near), generator=draw)[:missing].to(self.device)
            return (self._ids(hits, len(near), draw), self._ids(rest, len(far), draw).cpu(), slots)

        def run(drawn: Any, _lap: Lap) -> None:
            inside, outside, slots = drawn
            if not missing:
                self._sum(near, inside)
                return
            self._torch.index_select(far, 0, outside, out=buffer)
            rows = buffer.to(self.device, non_blocking=True)
            if mode == "CACHING":
                near.index_copy_(0, slots, rows)
                self._sum(near, self._torch.cat([inside, slots]))
                return
            self._sum(rows, self._torch.arange(missing, device=self.device))
            if hits:
                self._sum(near, inside)

        alone = DeviceClock(self.device) if self.fused and not missing else None
        return Probe(f"{mode} x={hit:g} dim={dim}", prepare, run, clock=alone)

    def copy(self) -> tuple[Probe, float]:
        """64 MiB from pinned memory to HBM."""
        size = min(2**26, self._far.numel() * ELEMENT)
        source = self._far[: size // ELEMENT]
        return Probe(
            "copy", lambda _: None, lambda _r, _l: source.to(self.device, non_blocking=True)
        ), float(size)

    def step(self, spec: StepSpec) -> Probe:
        """A training step, by FBGEMM where it loads."""
        if not self.fused:
            return super().step(spec)
        from milp_planner.features.calibrate.fused_tables import FusedTables
        from milp_planner.features.calibrate.torch_steps import step_probe

        return step_probe(spec, self._large, self.device, self._seed, FusedTables)

    def launch(self) -> Probe:
        """By FBGEMM where it loads, and then what the device takes to start its kernels."""
        if not self.fused:
            return super().launch()
        return self._launch(STARTS, DeviceClock(self.device))

    def lookup_training(self, dim: int) -> Probe:
        """The same by FBGEMM where it loads, with its fused SGD."""
        if not self.fused:
            return super().lookup_training(dim)
        tbe, offsets = self._tbe(dim), self._ends(self.load.bags, self.load.pooling)
        ones = self._torch.ones(self.load.bags, dim, device=self.device)

        def run(ids: Any, lap: Lap) -> None:
            out = tbe(ids, offsets)
            lap("forward")
            out.backward(ones)
            lap("backward")

        def prepare(number: int) -> Any:
            return self._ids(self.load.bags, len(self._near) // dim, self._generator(number))

        return Probe(f"lookup training dim={dim}", prepare, run, clock=DeviceClock(self.device))

    def _sum(self, table: Any, ids: Any, pooling: int | None = None) -> Any:
        if not self.fused or table.data_ptr() != self._near.data_ptr():
            return super()._sum(table, ids, pooling)
        pooling = pooling or self.load.pooling
        with self._torch.no_grad():
            return self._tbe(table.shape[1])(ids, self._ends(len(ids) // pooling, pooling))

    def _tbe(self, dim: int) -> Any:
        """A TBE whose rows of ``dim`` floats are the near tier."""
        from milp_planner.features.calibrate.fused_tables import fused

        if dim not in self._tables:
            tbe = fused([(len(self._near) // dim, dim)], self.device)
            tbe.weights_dev = self._torch.nn.Parameter(self._near)
            self._tables[dim] = tbe
        return self._tables[dim]

    def _ends(self, bags: int, pooling: int) -> Any:
        """FBGEMM's offsets, which end with the number of ids."""
        key = bags, pooling
        if key not in self._offsets_of:
            self._offsets_of[key] = self._torch.arange(bags + 1, device=self.device) * pooling
        return self._offsets_of[key]

    def runtime(self, mode: str, ratio: float) -> Probe | None:
        """A dynamicemb table in that mode."""
        return runtime_probe(mode, ratio, self._seed) if self._runtime else None

    def _make_far(self, elements: int) -> Any:
        return self._torch.full((elements,), 0.01).pin_memory()


def cuda_machine(quick: bool, seed: int) -> CudaMachine:
    """The current GPU; BadInput when torch sees no CUDA device, or host memory is too small."""
    torch = need_torch()
    if not torch.cuda.is_available():
        raise BadInput("--device cuda: torch sees no CUDA device here; allowed: cpu")
    far = QUICK_BYTES if quick else FAR_BYTES
    need_memory(2 * far + 2**30)
    return CudaMachine(far if quick else NEAR_BYTES, far, Load(65_536, 8), seed)


ROWS, DIM, IDS = 2**20, 128, 2**18
STATES = 3
"""Values per row, including Adam's two moments, as a multiple of the row."""
ALPHA = 1.05
"""Zipf exponent of the ids, as in the published A10 sweep."""
MOVED_BYTES = 3 * IDS * (8 + 2 * DIM * ELEMENT)
"""Bytes of ids, rows read and rows written: once forward, and twice that backward."""


def runtime_probe(mode: str, ratio: float, seed: int, device: str = "cuda") -> Probe:
    """Forward and backward of one table with a ``ratio`` of its value bytes in HBM."""
    import torch

    table = _table(mode, ratio, torch.device(device))
    offsets = torch.arange(IDS + 1, device=device)
    shares = np.arange(1, ROWS + 1, dtype=np.float64) ** -ALPHA
    cumulated = np.cumsum(shares / shares.sum())

    def prepare(number: int) -> Any:
        draws = np.random.default_rng([seed, number]).random(IDS)
        ranks = np.minimum(np.searchsorted(cumulated, draws), ROWS - 1)
        return torch.from_numpy(ranks).to(device)

    def run(ids: Any, _lap: Lap) -> None:
        output = table(ids, offsets)
        output.backward(torch.ones_like(output))

    for start in range(0, ROWS, IDS):  # training inserts missing keys
        run(torch.arange(start, start + IDS, device=device), lambda _: None)
    return Probe(f"dynamicemb {mode} x={ratio:g}", prepare, run)


def _table(mode: str, ratio: float, device: Any) -> Any:
    """One table with sizes for which the runtime chooses ``mode``."""
    import torch
    from dynamicemb import (  # type: ignore[import-not-found]
        DynamicEmbInitializerArgs,
        DynamicEmbInitializerMode,
        DynamicEmbPoolingMode,
        DynamicEmbTableOptions,
        EmbOptimType,
    )
    from dynamicemb.batched_dynamicemb_tables import BatchedDynamicEmbeddingTablesV2  # type: ignore[import-not-found]

    options = DynamicEmbTableOptions(
        index_type=torch.int64,
        embedding_dtype=torch.float32,
        dim=DIM,
        max_capacity=ROWS,
        local_hbm_for_values=int(ROWS * DIM * ELEMENT * STATES * ratio),
        bucket_capacity=128,
        initializer_args=DynamicEmbInitializerArgs(mode=DynamicEmbInitializerMode.NORMAL),
        caching=mode == "CACHING",
    )
    return BatchedDynamicEmbeddingTablesV2(
        table_options=[options],
        table_names=["calibration"],
        pooling_mode=DynamicEmbPoolingMode.NONE,
        output_dtype=torch.float32,
        device=device,
        optimizer=EmbOptimType.ADAM,
        learning_rate=1e-6,
    )
