"""Measure the machine and fit a profile: the whole of ``milp-planner calibrate``."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import RenderableType

from milp_planner.drawing.grid import Grid
from milp_planner.errors import BadInput
from milp_planner.features.calibrate.machine import MAX_SPREAD, Probe, Sample, measure
from milp_planner.features.calibrate.result import Calibration, calibration, measurement_plan
from milp_planner.features.calibrate.torch_machine import TorchMachine, cpu_machine
from milp_planner.pricing.lookup import tiered_bandwidth
from milp_planner.pricing.profile import EfficiencyCurve, Profile

_WARMUPS = 2

Progress = Callable[[int, int, str], None]
"""Called after every run with the runs done, the runs in all, and the probe's name."""


def calibrate(
    machine: TorchMachine,
    *,
    name: str = "calibrated",
    quick: bool = False,
    max_spread: float = MAX_SPREAD,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Calibration:
    """Measure a machine and fit a hardware profile.

    Parameters
    ----------
    machine : TorchMachine
        From :func:`find_machine`, or anything that offers the same probes.
    name : str
        Name of the profile.
    quick : bool
        Fewer points and rounds.
    max_spread : float
        Probes whose repeats spread more get further rounds; those that remain too uncertain are
        left out (:meth:`~milp_planner.features.calibrate.machine.Sample.steady`).
    seed : int
        Seed of the order of measurements and of the steps drawn.

    Raises
    ------
    TooNoisy
        When nothing can be fitted.
    """
    start = machine.now()
    plan = measurement_plan(machine, quick, seed)
    later, done = len(plan.steps) * (plan.step_rounds + 1), 0

    def step(probe: str, left: int) -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, done + left + later, probe)

    def times(probes: list[Probe], rounds: int, warmups: int) -> dict[str, Sample]:
        return measure(
            probes, rounds, machine.now, limit=max_spread, warmups=warmups, seed=seed, on_step=step
        )

    samples = times(plan.probes, plan.rounds, _WARMUPS)
    later = 0
    samples |= times([*plan.steps.values()], plan.step_rounds, 1)
    return calibration(name, machine, plan, samples, max_spread, machine.now() - start)


def find_machine(device: str, *, quick: bool, threads: int | None, seed: int) -> TorchMachine:
    """This machine's CPU or CUDA device; MissingExtra without torch."""
    if device == "cpu":
        return cpu_machine(quick, threads, seed)
    if device == "cuda":
        from milp_planner.features.calibrate.cuda_machine import cuda_machine

        return cuda_machine(quick, seed)
    raise BadInput(f"device {device!r}; allowed: cpu, cuda")


def draw(found: Calibration) -> list[RenderableType]:
    """A summary of a calibration for the terminal."""
    kernel, step = found.profile.kernel, found.profile.step
    parts: list[RenderableType] = [
        found.profile.description,
        draw_curves(found.profile, found.lost),
        f"launch {1e6 * kernel.launch_seconds:.3g} µs{_constant(found, 'launch_seconds')}; "
        f"backward {kernel.backward_multiple:.3g} × forward"
        f"{_constant(found, 'backward_multiple')}",
    ]
    if step is not None:
        errors = ", ".join(f"{part} {error:.1%}" for part, error in step.error.items())
        parts.append(f"step model over {step.tier}, median error of its fit: {errors}")
        rows = [
            (row.part, row.size, str(row.steps), f"{row.median:.1%}", f"{row.high:.1%}")
            for row in found.held_out
        ]
        head = ("held out", "size", "#steps", "#median error", "#90th percentile")
        parts.append(Grid.plain(head, rows, {"held out": 24}))
    return [*parts, *(f"left out: {each}" for each in found.left_out)]


def _constant(found: Calibration, factor: str) -> str:
    return " (not measured)" if f"kernel.{factor}" in found.lost else ""


def draw_curves(profile: Profile, lost: tuple[str, ...] = ()) -> RenderableType:
    """Bandwidths, and x_eff of the tiered modes, each with its spread or that it was not
    measured."""
    rows = [
        (name, "", "", f"{getattr(profile, name) / 1e9:.4g}", _spread(profile, name))
        for name in ("hbm", "ddr", "host_link")
    ]
    for name in ("caching", "hybrid"):
        curve: EfficiencyCurve = getattr(profile, name)
        rows += [
            (f"{name} over {curve.over}", f"{x:g}", *_reached(profile, x_eff, name))
            for x, x_eff in curve.points
        ]
    rows.append(("host_only", "0", *_reached(profile, profile.host_only, "host_only")))
    rows = [
        (*row[:-1], "not measured") if row[0].partition(" ")[0] in lost else row for row in rows
    ]
    name = profile.name
    return Grid.plain((name, "#x", "#x_eff", "#GB/s", "#±"), rows, {name: 20})


def _reached(profile: Profile, x_eff: float, name: str) -> tuple[str, str, str]:
    import numpy as np

    rate = float(tiered_bandwidth(profile, np.array(x_eff)))
    return f"{x_eff:.4f}", f"{rate / 1e9:.4g}", _spread(profile, name)


def _spread(profile: Profile, name: str) -> str:
    value = {**profile.spread}.get(name)  # type: ignore[call-overload]
    return "" if value is None else f"{value:.1%}"
