"""A GPU: HBM as the near tier, pinned host memory over PCIe as the far tier.

HOST_ONLY gathers rows on the host into a pinned buffer and copies them over; CACHING copies the
missing rows over, writes them into slots of the cache and reads all rows there; HYBRID reads its
share in HBM and copies the rest.
"""

from __future__ import annotations

import time
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.features.calibrate.machine import Lap, Load, Probe
from milp_planner.features.calibrate.torch_machine import TorchMachine, need_memory, need_torch

NEAR_BYTES, FAR_BYTES = 2**32, 2**32
QUICK_BYTES = 2**30


class CudaMachine(TorchMachine):
    """The current CUDA device and its host."""

    device = "cuda"
    near = "rows in HBM"
    far = "rows in pinned host memory"

    def facts(self) -> dict[str, object]:
        """As on a CPU, and the GPU's name."""
        cuda = self._torch.cuda
        return {**super().facts(), "gpu": cuda.get_device_name(), "cuda": self._torch.version.cuda}

    def now(self) -> float:
        """Seconds once the device has nothing left to do."""
        self._torch.cuda.synchronize()
        return time.perf_counter()

    def lookup(self, mode: str, hit: float, dim: int) -> Probe:
        """One call; which ids are near is known beforehand, as after a cache's lookup."""
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

        return Probe(f"{mode} x={hit:g} dim={dim}", prepare, run)

    def _make_far(self, elements: int) -> Any:
        return self._torch.full((elements,), 0.01).pin_memory()


def cuda_machine(quick: bool, seed: int) -> CudaMachine:
    """The GPU at hand.

    Raises
    ------
    BadInput
        When torch sees no CUDA device, or host memory does not suffice.
    """
    torch = need_torch()
    if not torch.cuda.is_available():
        raise BadInput("--device cuda: torch sees no CUDA device here; allowed: cpu")
    far = QUICK_BYTES if quick else FAR_BYTES
    need_memory(2 * far + 2**30)
    return CudaMachine(far if quick else NEAR_BYTES, far, Load(65_536, 8), seed)
