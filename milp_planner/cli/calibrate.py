"""``milp-planner calibrate``: a hardware profile from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from milp_planner.cli import console
from milp_planner.cli.failures import FALLS_SHORT, say
from milp_planner.cli.options import JsonOption, given, option, positive, whole
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, json_text, write_atomically, write_together

if TYPE_CHECKING:
    from milp_planner.features.calibrate.result import Calibration

PROFILE_FILE = "profile.yaml"


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    context: typer.Context,
    output: Annotated[
        Path | None,
        option(
            "--output -o FILE",
            f"Profile to write (YAML); measurements go next to it as .raw.json. Default: "
            f"{PROFILE_FILE}, or none with --json.",
        ),
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda"],
        option(
            "--device",
            "What to measure. cpu: last-level cache against DRAM; cuda: HBM against pinned host "
            "memory over PCIe.",
        ),
    ] = "cpu",
    quick: Annotated[
        bool,
        option("--quick", "Fewer points and repeats: for a first look, not for a lasting profile."),
    ] = False,
    threads: Annotated[
        int | None,
        option(
            "--threads N",
            "CPU threads per rank; default: torch's own choice (all cores).",
            whole(1, 1024),
        ),
    ] = None,
    raw: Annotated[
        Path | None,
        option(
            "--raw FILE",
            "Fit this sweep (.json, or .csv with the columns mode,x,ms) instead of measuring.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        option(
            "--base NAME",
            "With --raw: profile that supplies what the sweep does not cover; default: the one the "
            "sweep names, or torchrec-default.",
        ),
    ] = None,
    max_spread: Annotated[
        float,
        option(
            "--max-spread SHARE",
            "Measurements whose repeats spread by more than this (half their interquartile range "
            "over the median) are repeated further, and left out if still too uncertain; a sweep "
            "with such a spread (its column spread, or half the range of repeats) is refused.",
            positive,
        ),
    ] = 0.25,
    seed: Annotated[int, option("--seed N", "Random seed.", whole(0, 2**31 - 1))] = 0,
    json: JsonOption = False,
) -> None:
    """Measure this machine's memory tiers and training steps and write a hardware profile.

    Times lookups in every mode, launch overhead and whole training steps, and fits a profile for
    plan --profile. Measurements that are too noisy, or contradict the others, are left out and
    listed. Where a constant of TorchRec's stands for one of them, the profile's description and the
    terminal name it, and the exit code is 1. It is also 1, with nothing written, if none is left.
    """
    measuring = given(context, "device", "quick", "threads", "seed")
    if raw is not None and measuring:
        raise BadInput(f"{', '.join(measuring)}: only for measurements; --raw measures nothing")
    target = output or (None if json else Path(PROFILE_FILE))
    if target is not None:
        _check_name(target)
        check_writable(target, kind="profile")
        check_writable(target.with_suffix(".raw.json"))
    if raw is not None:
        _fit(raw, base, max_spread, target, json)
        return
    if base is not None:
        raise typer.BadParameter("--base needs --raw; a measurement has all its numbers")
    name = "calibrated" if target is None else target.stem
    found = _measure(name, device, quick, threads, max_spread, seed)
    if target is not None:
        _write(found, target)
    from milp_planner.features.calibrate.run import draw

    console.tell(json, found.to_dict, lambda: draw(found), target)
    if found.lost:
        names = ", ".join(found.lost)
        say(f"not measured, but TorchRec's constants: {names}; run it again on a quiet machine")
        raise typer.Exit(FALLS_SHORT)
    _next(target, json)


def _measure(
    name: str, device: str, quick: bool, threads: int | None, max_spread: float, seed: int
) -> Calibration:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from milp_planner.features.calibrate.run import calibrate, find_machine

    err = console.err()
    with Progress(
        TextColumn("calibrating"), BarColumn(), TimeRemainingColumn(),
        TextColumn("{task.description}"), console=err, transient=True, disable=not err.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task("filling tables", total=None)
        machine = find_machine(device, quick=quick, threads=threads, seed=seed)
        return calibrate(
            machine,
            name=name,
            quick=quick,
            max_spread=max_spread,
            seed=seed,
            on_progress=lambda done, total, what: bar.update(
                task, completed=done, total=total, description=what
            ),
        )


def _fit(raw: Path, base: str | None, max_spread: float, target: Path | None, json: bool) -> None:
    """Fit a sweep that was measured elsewhere and write the profile."""
    from milp_planner.features.calibrate.result import profile_text
    from milp_planner.features.calibrate.sweep import fitted_profile, read_sweep
    from milp_planner.pricing.profile import load_profile

    sweep = read_sweep(raw)
    profile = fitted_profile(sweep, load_profile(base or sweep.base), max_spread)
    if target is not None:
        write_atomically(target, profile_text(profile))
    from milp_planner.features.calibrate.run import draw_curves

    origins = [f"{n}: {profile.origin[n]}" for n in ("hbm", "host_link") if n in profile.origin]
    console.tell(json, profile.to_dict, lambda: [draw_curves(profile), *origins], target)
    _next(target, json)


def _write(found: Calibration, target: Path) -> None:
    from milp_planner.features.calibrate.result import profile_text

    raw = target.with_suffix(".raw.json")
    write_together({raw: json_text(found.to_dict()), target: profile_text(found.profile)})


def _next(target: Path | None, json: bool) -> None:
    if target is not None and not json:
        console.out().print(f"next: milp-planner plan MODEL CLUSTER --profile {target}")


def _check_name(target: Path) -> None:
    if target.suffix.lower() not in (".yaml", ".yml"):
        raise BadInput(f"{target}: a profile is a .yaml file")
