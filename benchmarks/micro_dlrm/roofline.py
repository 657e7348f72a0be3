"""Ceilings of this machine, and which of them a measured point sits under.

References
----------
S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009, doi:10.1145/1498765.1498785.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from milp_planner.features.calibrate.machine import Probe, Sample

TRIAD, SQUARE = 2**25, 1024
"""Floats of each of three arrays, rows of two square matrices."""
UNDER = 0.5
"""From this share of a ceiling on, the ceiling limits a point; below it, overheads do."""


@dataclass(frozen=True)
class Ceilings:
    """The most that the machine can do."""

    bandwidth: float
    """Bytes a second of a + s·b into c over arrays that no cache holds."""
    flops: float
    """Operations a second of a product of two square matrices."""

    def roof(self, intensity: float) -> float:
        """Operations a second at so many operations a byte."""
        return min(self.flops, intensity * self.bandwidth)

    def regime(self, flops: float, moved: float, seconds: float) -> tuple[str, float]:
        """Memory, compute or overhead, and the share of the ceiling that was reached."""
        intensity = flops / moved
        reached = flops / seconds / self.roof(intensity)
        if reached < UNDER:
            return "overhead", reached
        return ("memory" if intensity * self.bandwidth < self.flops else "compute"), reached


def ceiling_probes() -> list[Probe]:
    """Bandwidth (named ``triad``) and arithmetic (named ``product``)."""
    a, b, c = (torch.full((TRIAD,), 0.5) for _ in range(3))
    square = torch.full((SQUARE, SQUARE), 0.5)
    out = torch.empty(SQUARE, SQUARE)

    def triad(_: object, _lap: object) -> None:
        torch.add(a, b, alpha=3.0, out=c)

    def product(_: object, _lap: object) -> None:
        torch.mm(square, square, out=out)

    return [
        Probe("triad", lambda _: None, triad),
        Probe("product", lambda _: None, product),
    ]


def ceilings(samples: dict[str, Sample]) -> Ceilings:
    """From the probes' times."""
    return Ceilings(
        3 * TRIAD * 4 / samples["triad"].median, 2 * SQUARE**3 / samples["product"].median
    )
