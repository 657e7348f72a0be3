"""A machine whose times all follow from stated constants, on a clock of its own."""

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import numpy as np

from milp_planner.features.calibrate.cuda_machine import MOVED_BYTES
from milp_planner.features.calibrate.machine import ELEMENT, ON_DEVICE, Lap, Load, Probe
from milp_planner.features.calibrate.step_fit import access_of
from milp_planner.features.calibrate.steps import StepSpec
from milp_planner.pricing.popularity import popularity
from milp_planner.pricing.step import Stream, cache_hits
from milp_planner.pricing.step_model import BatchTerms, StepModel, TableTerms
from milp_planner.pricing.storage import STATE_NUMBERS

TRUTH = StepModel(
    tier="ddr",
    lookup=TableTerms(
        seconds=2e-5, step_seconds=4e-5, id_seconds=5e-9, byte_seconds=2e-11,
        output_byte_seconds=5e-11,
        missed=((2.0**22, 6e-11), (2.0**26, 4e-11)), row_bytes=64,
    ),
    update={
        "sgd": TableTerms(
            seconds=5e-5, id_seconds=2e-8, byte_seconds=1e-10, missed=((2.0**24, 2e-10),),
            row_bytes=64,
        ),
        "rowwise_adagrad": TableTerms(
            seconds=1e-4, id_seconds=6e-8, byte_seconds=2e-10, missed=((2.0**22, 2e-10),),
            row_bytes=64, distinct_seconds=2e-7,
        ),
        "adam": TableTerms(
            seconds=2e-4, step_seconds=1e-4, id_seconds=6e-8, byte_seconds=2e-10,
            missed=((2.0**22, 6e-10),), row_bytes=64, distinct_seconds=2e-7,
            distinct_byte_seconds=1e-9,
        ),
    },
    batch=BatchTerms(
        seconds=4e-4, table_seconds=1e-5, sample_seconds=2e-7, column_seconds=4e-9,
        spilled=(2.0**22, 5e-11),
    ),
    error={},
    origin="made up",
)  # fmt: skip

WITH_ADAGRAD = TRUTH.model_copy(update={"update": {"adagrad": TRUTH.update["sgd"]}})
"""The same machine with an optimizer that only a GPU measures."""

GPU = StepModel(
    tier="hbm",
    lookup=TableTerms(
        seconds=2.5e-5, hidden_dispatch=True, step_seconds=5e-5, byte_seconds=3.5e-13,
        output_byte_seconds=3e-12,
    ),
    update={
        "sgd": TableTerms(
            seconds=8e-5, hidden_dispatch=True, step_seconds=3e-4, byte_seconds=2e-12,
            distinct_seconds=2e-9, hottest_seconds=1e-8,
        ),
        "rowwise_adagrad": TableTerms(
            seconds=3e-4, hidden_dispatch=True, id_seconds=4e-9, byte_seconds=2e-11,
            hottest_seconds=1e-7,
        ),
        "adam": TableTerms(
            seconds=6e-4, hidden_dispatch=True, step_seconds=4e-4, id_seconds=2e-9,
            byte_seconds=3e-12, hottest_seconds=2e-7,
        ),
    },
    batch=TRUTH.batch,
    error={},
    origin="made up",
)  # fmt: skip
"""A device that works while the host dispatches."""


def table_seconds(model: StepModel, spec: StepSpec, once: bool = True) -> tuple[float, float]:
    """Lookup and update of a step, table by table, by the formulas of :class:`TableTerms`.

    Includes what is paid once per step, or (``once`` false) leaves it out, as a plan's prices do.
    """
    passes = (model.lookup, model.update[spec.optimizer])  # type: ignore[index]
    rows, streams, hits = _hits(spec, tuple(size for terms in passes for size, _ in terms.missed))
    bytes_ = [t.dim * ELEMENT for t in spec.tables]
    sums = [0.0, 0.0]
    for which, terms in enumerate(passes):
        sums[which] += terms.step_seconds if once else 0.0
        for index, (p, b, stream) in enumerate(zip(rows, bytes_, streams, strict=True)):
            ids = stream.lookups
            distinct = p.distinct(ids)
            work = ids * (terms.id_seconds + b * terms.byte_seconds)
            work += spec.batch * (b * terms.output_byte_seconds + terms.output_seconds)
            work += distinct * (terms.distinct_seconds + b * terms.distinct_byte_seconds)
            work += ids * float(p.shares.max()) * terms.hottest_seconds
            for size, cost in terms.missed:
                work += ids * (1 - hits[size][index]) * (b + terms.row_bytes) * cost
            dispatch = terms.seconds
            sums[which] += max(dispatch, work) if terms.hidden_dispatch else dispatch + work
    return sums[0], sums[1]


@cache
def _hits(spec: StepSpec, sizes: tuple[float, ...]) -> Any:
    """Popularities and streams of a step's tables, and their hits in caches of these sizes."""
    rows = [popularity(access_of(t), t.rows) for t in spec.tables]
    state = STATE_NUMBERS[spec.optimizer]
    streams = [
        Stream(p, spec.batch * t.pooling, t.dim * ELEMENT * float(1 + state.copies(t.dim)))
        for p, t in zip(rows, spec.tables, strict=True)
    ]
    hits = cache_hits(streams, np.array(sizes)) if sizes else np.empty((len(rows), 0))
    return rows, streams, dict(zip(sizes, hits.T, strict=True))


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
    fused: bool = False
    near: str = "rows near"
    far: str = "rows far"
    load: Load = field(default_factory=lambda: Load(1024, 8))
    runtime_x_eff: float | None = None
    clock: float = 0.0
    random: Random = field(default_factory=lambda: Random(1))
    runs: list[str] = field(default_factory=list)
    wild: tuple[str, ...] = ()
    """Prefixes of the names of probes that take another time in every run."""
    room: int = 2**27

    def facts(self) -> dict[str, object]:
        return {"processor": "made up", "torch": "0", "device": self.device, "fbgemm": "1.0"}

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

    def dense_update(self) -> tuple[Probe, float]:
        """Six passes over a table, in the memory that holds its tables."""
        rate = self.link if self.device == "cpu" else self.hbm
        return self._probe("dense update", 6 * 2.0**20 / rate), 2.0**20

    def step(self, spec: StepSpec) -> Probe:
        """A step whose tables and batch take the times of :data:`TRUTH`."""
        truth = TRUTH if spec.optimizer in TRUTH.update else WITH_ADAGRAD
        lookup, update = table_seconds(truth, spec)
        dense = TRUTH.batch.of(spec.batch, len(spec.tables), spec.columns) if TRUTH.batch else 0
        parts = {"lookup": lookup, "dense": dense, "update": update}
        if self.fused:  # as if dispatch were all that the host adds
            alone = table_seconds(truth, spec, once=False)
            parts |= {ON_DEVICE + "lookup": alone[0], ON_DEVICE + "update": alone[1]}
        return self._probe(spec.name, **parts)

    def copy(self) -> tuple[Probe, float] | None:
        """A copy at four times the rate of gathering rows."""
        size = 2.0**26
        return None if self.device == "cpu" else (self._probe("copy", size / (4 * self.link)), size)

    def runtime(self, mode: str, ratio: float) -> Probe | None:
        """A table library that reaches a tenth of the bandwidth."""
        if self.runtime_x_eff is None:
            return None
        x_eff = {"HBM_ONLY": 1.0, "HOST_ONLY": 0.0}.get(mode, self.runtime_x_eff * ratio)
        rate = x_eff * self.hbm + (1 - x_eff) * self.host_link
        return self._probe(f"dynamicemb {mode} {ratio}", 10 * MOVED_BYTES / rate)

    @property
    def host_link(self) -> float:
        """The link's bandwidth as the planner counts it (over a real link, for the rows alone)."""
        share = (
            1.0 if self.device == "cpu" else self.load.rows_bytes(256) / self.load.priced_bytes(256)
        )
        return self.link * share

    def _probe(self, name: str, seconds: float = 0.0, **parts: float) -> Probe:
        wild = name.startswith(self.wild) if self.wild else False

        def run(_prepared: object, lap: Lap) -> None:
            self.runs.append(name)
            times = 10 ** self.random.uniform(-4, 4) if wild else 1.0
            for part, value in parts.items():
                self._pass(times * value)
                lap(part)
            self._pass(times * seconds)

        return Probe(name, lambda _number: None, run)

    def _pass(self, seconds: float) -> None:
        self.clock += seconds * (1 + self.noise * self.random.uniform(-1, 1))
