"""What a calibration measures, in one place: the list of probes and how often each runs."""

from __future__ import annotations

from dataclasses import dataclass

from milp_planner.features.calibrate.machine import Machine
from milp_planner.features.calibrate.micro_dlrm import SHAPES
from milp_planner.features.calibrate.timing import Probe

DIM = 256
"""Floats of a row (1 KB): wide enough that memory and not dispatch is measured."""
NARROW = (32, 64, 128)
"""Narrower rows, for the penalties."""
HITS = (0.25, 0.5, 0.75, 0.9, 0.97)
"""Shares of the lookups in the near tier at which the tiered modes are measured."""
RATIOS = (0.1, 0.4, 0.7)
"""Cache ratios at which dynamicemb tables are measured."""


@dataclass(frozen=True, eq=False)
class MeasurementPlan:
    """Probes by what they are for.

    Attributes
    ----------
    tiers : dict
        By (mode, share of lookups in the near tier), at :data:`DIM` floats a row.
    widths : dict
        HOST_ONLY on a CPU, HBM_ONLY on a GPU, by narrower row.
    launch, lookup_training, matmul
        One each; ``matmul_flops`` belongs to the last.
    copy
        And its bytes; None where no link lies between the tiers.
    forward, training : dict
        Micro-DLRM steps by shape.
    runtime : dict
        dynamicemb tables by (mode, cache ratio), where the library is there.
    rounds : int
        Timed rounds.
    """

    tiers: dict[tuple[str, float], Probe]
    widths: dict[int, Probe]
    launch: Probe
    lookup_training: Probe
    matmul: Probe
    matmul_flops: float
    copy: tuple[Probe, float] | None
    forward: dict[str, Probe]
    training: dict[str, Probe]
    runtime: dict[tuple[str, float], Probe]
    rounds: int

    @property
    def probes(self) -> list[Probe]:
        """All of them."""
        single = [self.launch, self.lookup_training, self.matmul]
        copies = [self.copy[0]] if self.copy else []
        lookups = [*self.tiers.values(), *self.widths.values()]
        steps = [*self.forward.values(), *self.training.values()]
        return [*lookups, *single, *copies, *steps, *self.runtime.values()]


def measurement_plan(machine: Machine, quick: bool) -> MeasurementPlan:
    """Every probe of a calibration.

    Parameters
    ----------
    machine : Machine
    quick : bool
        Fewer points and rounds: for a first look, not for a profile to keep.
    """
    hits = HITS[1:2] if quick else HITS
    tiers = {("HBM_ONLY", 1.0): machine.lookup("HBM_ONLY", 1.0, DIM),
             ("HOST_ONLY", 0.0): machine.lookup("HOST_ONLY", 0.0, DIM)}  # fmt: skip
    for mode in ("CACHING", "HYBRID"):
        tiers |= {(mode, hit): machine.lookup(mode, hit, DIM) for hit in hits}
    whole = ("HOST_ONLY", 0.0) if machine.device == "cpu" else ("HBM_ONLY", 1.0)
    matmul, flops = machine.matmul()
    return MeasurementPlan(
        tiers=tiers,
        widths={dim: machine.lookup(*whole, dim) for dim in NARROW},
        launch=machine.launch(),
        lookup_training=machine.lookup_training(DIM),
        matmul=matmul,
        matmul_flops=flops,
        copy=machine.copy(),
        forward={name: machine.step(name, False) for name in SHAPES},
        training={name: machine.step(name, True) for name in SHAPES},
        runtime=_runtime(machine, RATIOS[:1] if quick else RATIOS),
        rounds=5 if quick else 31,
    )


def _runtime(machine: Machine, ratios: tuple[float, ...]) -> dict[tuple[str, float], Probe]:
    keys = [("HBM_ONLY", 1.0), ("HOST_ONLY", 0.0)]
    keys += [(mode, ratio) for mode in ("CACHING", "HYBRID") for ratio in ratios]
    probes = {key: machine.runtime(*key) for key in keys}
    return {key: probe for key, probe in probes.items() if probe is not None}
