"""Bandwidths, curves and kernel factors from the times of lookups in two tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from milp_planner.features.calibrate.cuda_machine import MOVED_BYTES
from milp_planner.features.calibrate.machine import Probe, Sample, TooNoisy
from milp_planner.features.calibrate.sweep import CURVES, Mode, Sweep, SweepPoint, fit_sweep
from milp_planner.features.calibrate.torch_machine import TorchMachine
from milp_planner.pricing.profile import Kernel, Profile, Spreadable

DIM = 256
"""Floats per row (1 KB): wide enough to measure memory rather than dispatch."""
NARROW = (32, 64, 128)
"""Narrower rows, for measuring the narrow-row penalties."""
APART = 1.2
"""The near tier must be faster than the far one by at least this factor."""
ENDS = {"HBM_ONLY": ("HBM_ONLY", 1.0), "HOST_ONLY": ("HOST_ONLY", 0.0)}


@dataclass(frozen=True, eq=False)
class TierProbes:
    """Lookups in the tiers, by purpose."""

    lookups: dict[tuple[str, float], Probe]
    """By (mode, share of lookups in the near tier), at :data:`DIM` floats per row."""
    widths: dict[int, Probe]
    """Lookups of narrower rows by their floats: HOST_ONLY on a CPU, HBM_ONLY on a GPU."""
    launch: Probe
    copy: tuple[Probe, float] | None
    """The probe and its bytes; None if there is no link between the tiers."""
    runtime: dict[tuple[str, float], Probe]
    """dynamicemb tables by (mode, cache ratio), if the library is installed."""

    @property
    def probes(self) -> list[Probe]:
        """All probes."""
        copies = [self.copy[0]] if self.copy else []
        lookups = [*self.lookups.values(), *self.widths.values()]
        return [*lookups, self.launch, *copies, *self.runtime.values()]


@dataclass(frozen=True, eq=False)
class Tiers:
    """Fields of a profile fitted to the tiers."""

    fields: dict[str, Any]
    """By the profile's field names; always includes ``kernel``."""
    origin: dict[str, str]
    sweep: Sweep | None
    left_out: tuple[str, ...]


def fit_tiers(
    name: str, machine: TorchMachine, probes: TierProbes, steady: dict[str, Sample], base: Profile
) -> Tiers:
    """Fit the tiers to the steady times; ``base`` supplies what they do not determine."""
    kernel, origin = _kernel(machine, probes, steady, base), _origin(machine, probes, steady)
    try:
        sweep = _sweep(name, machine, probes, steady)
    except TooNoisy as error:
        left_out = (f"the memory tiers: {error}",)
        return Tiers({"kernel": base.kernel}, {"kernel": origin["kernel"]}, None, left_out)
    launch = steady[probes.launch.name]
    near, far = (steady[probes.lookups[end].name] for end in ENDS.values())
    fields, left = _curves(sweep, base)
    fields |= {
        "hbm": sweep.hbm, "host_link": sweep.host_link,
        "ddr": round(_bandwidth(machine, far, launch)), "kernel": kernel,
    }  # fmt: skip
    spread: dict[Spreadable, float] = {
        "hbm": near.spread, "host_link": far.spread, "ddr": far.spread,
        "launch_seconds": launch.spread, **fields.pop("spread"),
    }  # fmt: skip
    if "caching" in spread:
        spread["uvm_caching"] = spread["caching"]
    if probes.runtime:
        left += _runtime(sweep, probes, steady, base, fields, spread)
    fields["spread"] = {key: round(min(value, 0.99), 4) for key, value in spread.items()}
    return Tiers(fields, origin, sweep, tuple(left))


def _curves(sweep: Sweep, base: Profile) -> tuple[dict[str, Any], list[str]]:
    """x_eff of each mode, fitted separately so that a contradiction affects one mode only."""
    fields: dict[str, Any] = {"spread": {}}
    left: list[str] = []
    for mode, name in CURVES.items():
        points = tuple(p for p in sweep.points if p.mode in (mode, *ENDS))
        try:
            fit = fit_sweep(sweep.model_copy(update={"points": points}), base, max_spread=1.0)
        except TooNoisy as error:
            left.append(f"{name}: {error}")
            continue
        fields[name] = fit.curves[mode]
        if mode == "CACHING":
            fields["uvm_caching"] = fit.curves[mode]
        fields["host_only"] = fit.host_only
        fields["spread"] |= fit.spread
    return fields, left


def _runtime(
    tiers: Sweep, probes: TierProbes, steady: dict[str, Sample], base: Profile,
    fields: dict[str, Any], spread: dict[Spreadable, float],
) -> list[str]:  # fmt: skip
    """Replace torch's curves by dynamicemb's own over the cache ratio; returns what is left out."""
    points = [point.to_dict() for point in _points(probes.runtime, steady, 0.0)]
    data = {**tiers.to_dict(), "over": {}, "moved_bytes": MOVED_BYTES, "points": points}
    try:
        sweep = Sweep.from_dict({**data, "source": f"{tiers.source}; dynamicemb tables"})
        if not any(point.mode == "HBM_ONLY" for point in sweep.points):
            raise TooNoisy("the HBM_ONLY table was not steady")
        fit = fit_sweep(sweep, base, max_spread=1.0)
    except TooNoisy as error:
        return [f"dynamicemb's tables: {error}"]
    fields |= {CURVES[cast(Mode, mode)]: curve for mode, curve in fit.curves.items()}
    fields["host_only"] = base.host_only if fit.host_only is None else fit.host_only
    fields["kernel"] = fields["kernel"].model_copy(update={"dynamicemb_divisor": fit.divisor})
    spread |= fit.spread
    return []


def _points(
    probes: dict[tuple[str, float], Probe], steady: dict[str, Sample], launch: float
) -> list[SweepPoint]:
    """Sweep points of the steady times, with the launch overhead subtracted."""
    points = []
    for (mode, x), probe in probes.items():
        taken = steady.get(probe.name)
        if taken is not None:
            ms, spread = 1e3 * (taken.median - launch), min(taken.spread, 1.0)
            points.append(SweepPoint(mode=cast(Mode, mode), x=x, ms=ms, spread=spread))
    return points


def _sweep(
    name: str, machine: TorchMachine, probes: TierProbes, steady: dict[str, Sample]
) -> Sweep:
    """The tiers' times without launch overhead, and the bandwidths that they imply.

    Raises TooNoisy if the launch, HBM_ONLY or HOST_ONLY is not steady, or if the tiers cannot be
    told apart.
    """
    needed = [probes.launch, *(probes.lookups[end] for end in ENDS.values())]
    missing = [probe.name for probe in needed if probe.name not in steady]
    if missing:
        raise TooNoisy(f"the other times are useless without {', '.join(missing)}")
    points = _points(probes.lookups, steady, steady[probes.launch.name].median)
    points += [  # with every lookup in the near tier, both modes make the same call
        point.model_copy(update={"mode": mode})
        for point in points
        if point.mode == "HBM_ONLY"
        for mode in CURVES
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


def _bandwidth(machine: TorchMachine, sample: Sample, launch: Sample, dim: int = DIM) -> float:
    """Bytes per second as the planner counts them, without launch overhead."""
    return machine.load.priced_bytes(dim) / (sample.median - launch.median)


def _kernel(
    machine: TorchMachine, probes: TierProbes, steady: dict[str, Sample], base: Profile
) -> Kernel:
    """Launch overhead, and the penalties of the widths with steady times."""
    launch = steady.get(probes.launch.name)
    key = ENDS["HOST_ONLY" if machine.device == "cpu" else "HBM_ONLY"]
    whole = steady.get(probes.lookups[key].name)
    if launch is None or whole is None:
        return base.kernel
    wide = _bandwidth(machine, whole, launch)
    limits = [*list(probes.widths)[1:], DIM]
    penalties = [
        (limit, round(wide / _bandwidth(machine, steady[probe.name], launch, dim), 4))
        for limit, (dim, probe) in zip(limits, probes.widths.items(), strict=True)
        if probe.name in steady
    ]
    return base.kernel.model_copy(
        update={
            "host_divisor": 1.0,
            "dynamicemb_divisor": 1.0,
            "narrow_penalties": tuple(penalties),
            "launch_seconds": launch.median,
        }
    )


def _origin(machine: TorchMachine, probes: TierProbes, steady: dict[str, Sample]) -> dict[str, str]:
    here = "milp-planner calibrate: "
    wide = f"lookups of {DIM * 4}-byte rows, all bytes the planner charges over the time, {{}}"
    link = "the same as ddr: there is no link between a CPU's tiers"
    if probes.copy is not None:
        link = f"{here}bytes of rows over the time to gather and send them"
        if probes.copy[0].name in steady:
            rate = probes.copy[1] / steady[probes.copy[0].name].median / 1e9
            link += f"; a plain copy over the link alone reaches {rate:.3g} GB/s"
    return {
        "hbm": here + wide.format(machine.near),
        "ddr": here + wide.format("rows in host memory"),
        "host_link": link,
        "host_only": here + "rows in host memory alone",
        "kernel": here + "launch_seconds, narrow_penalties, backward_multiple (sparse gradient "
        "and SGD update over forward), dense_update_multiple (gradient of a whole table and SGD); "
        "divisors are 1, as measured bandwidths need none; the others are TorchRec's constants, "
        "not measured",
    }
