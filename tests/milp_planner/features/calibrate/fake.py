"""A machine whose every time follows from stated constants, on a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from milp_planner.features.calibrate.cuda_machine import MOVED_BYTES
from milp_planner.features.calibrate.machine import Lap, Load, Probe


@dataclass
class FakeMachine:
    """Lookups take launch + near bytes / hbm + far bytes / link, times (1 ± noise)."""

    hbm: float = 20e9
    link: float = 5e9
    launch_seconds: float = 1e-5
    backward: float = 3.0
    noise: float = 0.0
    narrow: float = 1.5
    cached_penalty: float = 1.0
    device: str = "cpu"
    near: str = "rows near"
    far: str = "rows far"
    load: Load = field(default_factory=lambda: Load(1024, 8))
    runtime_x_eff: float | None = None
    clock: float = 0.0
    random: Random = field(default_factory=lambda: Random(1))
    runs: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, object]:
        return {"processor": "made up", "torch": "0", "device": self.device}

    def now(self) -> float:
        return self.clock

    def lookup(self, mode: str, hit: float, dim: int) -> Probe:
        near, far = self.hbm, self.link
        seconds = self.load.priced_bytes(dim) * (hit / near + (1 - hit) / far)
        if mode == "CACHING":
            seconds *= self.cached_penalty
        if dim < 256:
            seconds *= self.narrow
        return self._probe(f"{mode} {hit} {dim}", self.launch_seconds + seconds)

    def launch(self) -> Probe:
        return self._probe("launch", self.launch_seconds)

    def lookup_training(self, dim: int) -> Probe:
        return self._probe("lookup training", forward=1e-2, backward=self.backward * 1e-2)

    def copy(self) -> tuple[Probe, float] | None:
        """At four times the rate of rows that are gathered first."""
        size = 2.0**26
        return None if self.device == "cpu" else (self._probe("copy", size / (4 * self.link)), size)

    def runtime(self, mode: str, ratio: float) -> Probe | None:
        """A table library of which every tenth of the bandwidth is reached."""
        if self.runtime_x_eff is None:
            return None
        x_eff = {"HBM_ONLY": 1.0, "HOST_ONLY": 0.0}.get(mode, self.runtime_x_eff * ratio)
        rate = x_eff * self.hbm + (1 - x_eff) * self.host_link
        return self._probe(f"dynamicemb {mode} {ratio}", 10 * MOVED_BYTES / rate)

    @property
    def host_link(self) -> float:
        """The link's bandwidth in the planner's account (rows alone where a link lies between)."""
        share = (
            1.0 if self.device == "cpu" else self.load.rows_bytes(256) / self.load.priced_bytes(256)
        )
        return self.link * share

    def _probe(self, name: str, seconds: float = 0.0, **parts: float) -> Probe:
        def run(_prepared: object, lap: Lap) -> None:
            self.runs.append(name)
            for part, value in parts.items():
                self._pass(value)
                lap(part)
            self._pass(seconds)

        return Probe(name, lambda _number: None, run)

    def _pass(self, seconds: float) -> None:
        self.clock += seconds * (1 + self.noise * self.random.uniform(-1, 1))
