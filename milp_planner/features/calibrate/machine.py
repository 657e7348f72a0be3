"""What calibration needs of a machine: two memory tiers, a clock, and probes on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from milp_planner.features.calibrate.timing import Probe

ELEMENT = 4
"""Bytes of a table element (fp32)."""


@dataclass(frozen=True)
class Load:
    """One lookup call: bags of equally many ids, every bag summed to one output row.

    Attributes
    ----------
    bags : int
        Output rows.
    pooling : int
        Ids a bag.
    """

    bags: int
    pooling: int

    @property
    def ids(self) -> int:
        """Ids of the call."""
        return self.bags * self.pooling

    def rows_bytes(self, dim: int) -> int:
        """Bytes of the rows it reads."""
        return self.ids * dim * ELEMENT

    def priced_bytes(self, dim: int) -> int:
        """Bytes the planner charges: ids (8 each), rows read, rows written.

        References
        ----------
        :func:`milp_planner.pricing.lookup.forward_seconds`, so that bytes / time is the bandwidth
        that gives this time back.
        """
        return self.ids * 8 + self.rows_bytes(dim) + self.bags * dim * ELEMENT


class Machine(Protocol):
    """Two tiers of memory with lookups on them.

    The near tier is HBM, or on a CPU what the last-level cache holds; the far tier is host memory.
    """

    device: str
    near: str
    far: str
    load: Load

    def facts(self) -> dict[str, object]:
        """Processor, versions, sizes: what a reader needs to judge the numbers."""

    def now(self) -> float:
        """Seconds, after all queued work is done."""

    def lookup(self, mode: str, hit: float, dim: int) -> Probe:
        """One lookup call of a table in ``mode``, a share ``hit`` of its ids in the near tier."""

    def launch(self) -> Probe:
        """The smallest lookup call there is."""

    def lookup_training(self, dim: int) -> Probe:
        """A lookup in the large table, parts ``forward`` and ``backward`` (gradient, update)."""

    def matmul(self) -> tuple[Probe, float]:
        """A square matrix product and its floating-point operations."""

    def copy(self) -> tuple[Probe, float] | None:
        """A plain copy from far to near and its bytes; None where no link lies between."""

    def runtime(self, mode: str, ratio: float) -> Probe | None:
        """Forward and backward of a real dynamicemb table; None where the library is absent."""

    def step(self, shape: str, training: bool) -> Probe:
        """A forward or training step of a micro-DLRM, by part.

        See :mod:`milp_planner.features.calibrate.micro_dlrm`.
        """


def last_level_cache() -> int | None:
    """Bytes of the largest processor cache, None where the system does not tell (Linux does)."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    sizes = [entry.read_text().strip() for entry in folder.glob("index*/size")]
    units = {"K": 1024, "M": 1024**2}
    found = [int(size[:-1]) * units[size[-1]] for size in sizes if size[-1:] in units]
    return max(found, default=None)


def available_memory() -> int | None:
    """Bytes of memory a new process may take, None where the system does not tell."""
    source = Path("/proc/meminfo")
    if not source.exists():
        return None
    lines = dict(line.split(":", 1) for line in source.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else None


def processor() -> str:
    """Name of the processor as the system gives it."""
    import platform

    source = Path("/proc/cpuinfo")
    if source.exists():
        for line in source.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
