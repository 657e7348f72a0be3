"""What a calibration measures, and its measurements turned into a hardware profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import yaml

from milp_planner.features.calibrate.cuda_machine import MOVED_BYTES
from milp_planner.features.calibrate.machine import Machine, Probe, Sample, TooNoisy, quiet
from milp_planner.features.calibrate.sweep import Mode, Sweep, SweepPoint, fit_sweep, fitted_profile
from milp_planner.pricing.profile import Profile, Spreadable, load_profile

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
    """Probes by what they are for."""

    tiers: dict[tuple[str, float], Probe]
    """By (mode, share of lookups in the near tier), at :data:`DIM` floats per row."""
    widths: dict[int, Probe]
    """HOST_ONLY on a CPU, HBM_ONLY on a GPU, by narrower row."""
    launch: Probe
    lookup_training: Probe
    copy: tuple[Probe, float] | None
    """And its bytes; None where no link lies between the tiers."""
    runtime: dict[tuple[str, float], Probe]
    """dynamicemb tables by (mode, cache ratio), where the library is there."""
    rounds: int
    """Timed rounds."""

    @property
    def probes(self) -> list[Probe]:
        """All of them."""
        single = [self.launch, self.lookup_training]
        copies = [self.copy[0]] if self.copy else []
        lookups = [*self.tiers.values(), *self.widths.values()]
        return [*lookups, *single, *copies, *self.runtime.values()]


def measurement_plan(machine: Machine, quick: bool) -> MeasurementPlan:
    """Every probe of a calibration; ``quick``: fewer points and rounds, for a first look."""
    hits = HITS[1:2] if quick else HITS
    tiers = {("HBM_ONLY", 1.0): machine.lookup("HBM_ONLY", 1.0, DIM),
             ("HOST_ONLY", 0.0): machine.lookup("HOST_ONLY", 0.0, DIM)}  # fmt: skip
    for mode in ("CACHING", "HYBRID"):
        tiers |= {(mode, hit): machine.lookup(mode, hit, DIM) for hit in hits}
    whole = ("HOST_ONLY", 0.0) if machine.device == "cpu" else ("HBM_ONLY", 1.0)
    return MeasurementPlan(
        tiers=tiers,
        widths={dim: machine.lookup(*whole, dim) for dim in NARROW},
        launch=machine.launch(),
        lookup_training=machine.lookup_training(DIM),
        copy=machine.copy(),
        runtime=_runtime(machine, RATIOS[:1] if quick else RATIOS),
        rounds=5 if quick else 31,
    )


def _runtime(machine: Machine, ratios: tuple[float, ...]) -> dict[tuple[str, float], Probe]:
    keys = [("HBM_ONLY", 1.0), ("HOST_ONLY", 0.0)]
    keys += [(mode, ratio) for mode in ("CACHING", "HYBRID") for ratio in ratios]
    probes = {key: machine.runtime(*key) for key in keys}
    return {key: probe for key, probe in probes.items() if probe is not None}


APART = 1.2
"""The near tier must be faster than the far one by this factor, or nothing separates them."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A profile and what it was fitted to."""

    profile: Profile
    sweep: Sweep
    """Times of the tiers, in the form that ``calibrate --raw`` reads."""
    samples: dict[str, Sample]
    """Every measured :class:`~milp_planner.features.calibrate.machine.Sample`."""
    facts: dict[str, object]
    """The machine."""
    seconds: float
    """Wall time of the measurement, what was prepared between its runs included."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values: everything measured and everything made of it."""
        samples = [
            {"name": s.name, "median_s": s.median, "spread": s.spread, "seconds": s.seconds,
             "parts": {part: list(values) for part, values in s.parts.items()}}
            for s in self.samples.values()
        ]  # fmt: skip
        return {
            "machine": self.facts,
            "seconds": self.seconds,
            "profile": self.profile.to_dict(),
            "sweep": self.sweep.to_dict(),
            "samples": samples,
        }


def calibration(
    name: str,
    machine: Machine,
    plan: MeasurementPlan,
    samples: dict[str, Sample],
    max_spread: float,
    seconds: float,
) -> Calibration:
    """Fit a profile; TooNoisy when repeats spread too far, tiers look alike, times contradict."""
    quiet([samples[probe.name] for probe in plan.probes], max_spread)
    sweep = _sweep(name, machine, plan, samples)
    profile = _profile(name, machine, plan, samples, sweep, max_spread)
    runtime = _runtime_sweep(sweep, plan, samples)
    if runtime is not None:
        measured = {"name": name, "description": profile.description}
        profile = fitted_profile(runtime, profile, max_spread).model_copy(update=measured)
    return Calibration(profile, sweep, samples, machine.facts(), seconds)


def _profile(
    name: str,
    machine: Machine,
    plan: MeasurementPlan,
    samples: dict[str, Sample],
    sweep: Sweep,
    max_spread: float,
) -> Profile:
    base, launch = load_profile("torchrec-default"), samples[plan.launch.name]
    fit = fit_sweep(sweep, base, max_spread)
    ends = (("HBM_ONLY", 1.0), ("HOST_ONLY", 0.0))
    near, far = (samples[plan.tiers[end].name] for end in ends)
    spread: dict[Spreadable, float] = {
        "hbm": near.spread, "host_link": far.spread, "ddr": far.spread,
        "launch_seconds": launch.spread, **fit.spread,
    }  # fmt: skip
    if "caching" in spread:
        spread["uvm_caching"] = spread["caching"]
    made = base.model_copy(
        update={
            "name": name,
            "description": _description(machine),
            "hbm": sweep.hbm,
            "ddr": round(_bandwidth(machine, far, launch)),
            "host_link": sweep.host_link,
            "kernel": _kernel(machine, plan, samples, base),
            "caching": fit.curves["CACHING"],
            "hybrid": fit.curves["HYBRID"],
            "host_only": fit.host_only,
            "uvm_caching": fit.curves["CACHING"],
            "spread": {key: round(min(value, 0.99), 4) for key, value in spread.items()},
            "origin": _origin(machine, plan, samples),
        }
    )
    return Profile.from_dict(made.to_dict())


def _points(
    probes: dict[tuple[str, float], Probe], samples: dict[str, Sample], launch: float
) -> list[SweepPoint]:
    """Times by mode and x, launch overhead apart."""
    points = []
    for (mode, x), probe in probes.items():
        taken = samples[probe.name]
        ms, spread = 1e3 * (taken.median - launch), min(taken.spread, 1.0)
        points.append(SweepPoint(mode=cast(Mode, mode), x=x, ms=ms, spread=spread))
    return points


def _runtime_sweep(tiers: Sweep, plan: MeasurementPlan, samples: dict[str, Sample]) -> Sweep | None:
    """dynamicemb's own times over the cache ratio, against the measured bandwidths."""
    if not plan.runtime:
        return None
    points = [point.to_dict() for point in _points(plan.runtime, samples, 0.0)]
    fields = {**tiers.to_dict(), "over": {}, "moved_bytes": MOVED_BYTES, "points": points}
    return Sweep.from_dict({**fields, "source": f"{tiers.source}; dynamicemb tables"})


def _sweep(name: str, machine: Machine, plan: MeasurementPlan, samples: dict[str, Sample]) -> Sweep:
    """The tiers' times without launch overhead, and the bandwidths they stand for."""
    points = _points(plan.tiers, samples, samples[plan.launch.name].median)
    points += [  # with every lookup in the near tier, both modes are that same call
        point.model_copy(update={"mode": mode})
        for point in points
        if point.mode == "HBM_ONLY"
        for mode in ("CACHING", "HYBRID")
    ]
    times = {(point.mode, point.x): point.ms for point in points}
    near, far = times["HBM_ONLY", 1.0], times["HOST_ONLY", 0.0]
    if far < APART * near:
        raise TooNoisy(
            f"{machine.near} take {near:.3g} ms and {machine.far} {far:.3g} ms: the tiers cannot "
            "be told apart (is something else using the cache or the memory?)"
        )
    hbm = machine.load.priced_bytes(DIM) / near * 1e3
    link = machine.load.priced_bytes(DIM) / far * 1e3
    if machine.device != "cpu":  # rows cross the link once; ids and outputs stay on the device
        link = machine.load.rows_bytes(DIM) / far * 1e3
    return Sweep.from_dict(
        {
            "name": name,
            "source": f"milp-planner calibrate on {machine.facts()['processor']}, torch "
            f"{machine.facts()['torch']}: {machine.near} against {machine.far}",
            "hbm": f"{hbm:.0f}B/s",
            "host_link": f"{link:.0f}B/s",
            "over": {"CACHING": "hit_ratio", "HYBRID": "hit_ratio"},
            "points": [point.to_dict() for point in points],
        }
    )


def _bandwidth(machine: Machine, sample: Sample, launch: Sample, dim: int = DIM) -> float:
    """Bytes per second in the planner's account, launch overhead apart."""
    return machine.load.priced_bytes(dim) / (sample.median - launch.median)


def _kernel(
    machine: Machine, plan: MeasurementPlan, samples: dict[str, Sample], base: Profile
) -> Any:
    launch, training = samples[plan.launch.name], samples[plan.lookup_training.name]
    key = ("HOST_ONLY", 0.0) if machine.device == "cpu" else ("HBM_ONLY", 1.0)
    wide = _bandwidth(machine, samples[plan.tiers[key].name], launch)
    penalties = [
        wide / _bandwidth(machine, samples[probe.name], launch, dim)
        for dim, probe in plan.widths.items()
    ]
    limits = [*list(plan.widths)[1:], DIM]
    return base.kernel.model_copy(
        update={
            "host_divisor": 1.0,
            "dynamicemb_divisor": 1.0,
            "backward_multiple": round(training.part("backward") / training.part("forward"), 4),
            "narrow_penalties": tuple(
                (limit, round(p, 4)) for limit, p in zip(limits, penalties, strict=True)
            ),
            "launch_seconds": launch.median,
        }
    )


def _description(machine: Machine) -> str:
    return (
        f"Measured by milp-planner calibrate on {machine.facts()['processor']}. hbm stands for "
        f"{machine.near}, host_link for {machine.far}; lookups by torch's embedding_bag, fp32, "
        f"{machine.load.bags} bags of {machine.load.pooling} ids"
    )


def _origin(machine: Machine, plan: MeasurementPlan, samples: dict[str, Sample]) -> dict[str, str]:
    here = "milp-planner calibrate: "
    wide = f"lookups of {DIM * 4}-byte rows, all bytes the planner charges over the time, {{}}"
    link = "the same as ddr: no link lies between a CPU's tiers"
    if plan.copy is not None:
        copied = plan.copy[1] / samples[plan.copy[0].name].median
        link = f"{here}rows gathered and sent over the time of both; "
        link += f"a plain copy over the link alone reaches {copied / 1e9:.3g} GB/s"
    return {
        "hbm": here + wide.format(machine.near),
        "ddr": here + wide.format("rows in host memory"),
        "host_link": link,
        "host_only": here + "rows in host memory alone",
        "kernel": here + "launch_seconds, narrow_penalties, backward_multiple (sparse gradient "
        "and SGD update over forward); divisors are 1, as measured bandwidths need none; the "
        "others are TorchRec's constants, not measured",
    }


_HEAD = "# Hardware profile; see docs/pricing.md for what each number prices.\n"


def profile_text(profile: Profile) -> str:
    """YAML that reads back as an equal profile."""
    data = profile.to_dict()
    return _HEAD + yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
