"""Arguments and options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from milp_planner.inputs import Cluster, Model
    from milp_planner.today.rows import TodaySource


class ObjectiveName(StrEnum):
    """What is minimised."""

    TOTAL = "total"
    BUSIEST_RANK = "busiest_rank"
    STEP_TIME = "step_time"


def option(spec: str, help: str, parser: Callable[[Any], Any] | None = None) -> Any:
    """An option as ``--help`` shows it: names and value, such as ``--output -o FILE``, and help."""
    *names, last = spec.split()
    taken = None if last.startswith("-") else last
    return typer.Option(
        *(names if taken else [*names, last]), metavar=taken, help=help, parser=parser
    )


def argument(metavar: str, help: str) -> Any:
    """An argument by its place."""
    return typer.Argument(metavar=metavar, help=help)


def positive(found: str | float) -> float:
    """Parse a positive finite number; the sentence says what was found and what is allowed."""
    try:
        value = float(found)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"found {found}; allowed: a positive number")
    return value


def whole(least: int, most: int) -> Callable[[str | int], int]:
    """A parser of whole numbers between two limits."""

    def parse(found: str | int) -> int:
        text = str(found).strip()
        digits = text.removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 12 else None
        if value is None or not least <= value <= most:
            raise typer.BadParameter(f"found {found}; allowed: a whole number, {least} to {most}")
        return value

    return parse


def given(context: typer.Context, *parameters: str) -> list[str]:
    """Those of some options that were typed, as typed: what stands in their place may be theirs."""
    sources = ((name, context.get_parameter_source(name)) for name in parameters)
    return [
        f"--{name.replace('_', '-')}"
        for name, source in sources
        if source is not None and source.name == "COMMANDLINE"
    ]


ModelArgument = Annotated[
    str, argument("MODEL", "Model YAML, or the name of a shipped one (milp-planner list models).")
]
ClusterArgument = Annotated[
    str,
    argument("CLUSTER", "Cluster YAML, or the name of a shipped one (milp-planner list clusters)."),
]
FormulationOption = Annotated[
    str, option("--formulation -f NAME", "How to solve (milp-planner list formulations).")
]
ObjectiveOption = Annotated[
    ObjectiveName,
    option(
        "--objective",
        "step_time: the embedding part of a step, barriers between phases, no overlap; "
        "busiest_rank: the largest sum on one rank; total: the sum over everything.",
    ),
]
ProfileOption = Annotated[
    str | None,
    option(
        "--profile NAME",
        "Hardware profile that prices the plan: a shipped one (milp-planner list profiles) or a"
        " .yaml file, such as calibrate writes; default: the cluster's.",
    ),
]
TimeLimitOption = Annotated[float, option("--time-limit SECONDS", "Wall clock to solve.", positive)]
OtherTimeLimitOption = Annotated[
    float | None,
    option(
        "--time-limit SECONDS",
        "Wall clock to solve; default: 60, or none with --work-limit.",
        positive,
    ),
]
WorkLimitOption = Annotated[
    float | None,
    option(
        "--work-limit UNITS",
        "Deterministic work; with --workers 1 a run repeats exactly.",
        positive,
    ),
]
SeedOption = Annotated[int, option("--seed N", "Random seed.", whole(0, 2**31 - 1))]
WorkersOption = Annotated[
    int | None, option("--workers N", "Solver threads; default: all cores.", whole(1, 1024))
]
SettingOption = Annotated[
    list[str] | None,
    option("--set KEY=VALUE", "A setting of the formulation, such as solver=cbc; may be repeated."),
]
JsonOption = Annotated[bool, option("--json", "Machine output on stdout, nothing else there.")]
OutputOption = Annotated[
    Path | None, option("--output -o FILE", "Where to write; appears whole or not at all.")
]
AllRowsOption = Annotated[
    bool, option("--all", "Print every table and rank instead of folding long lists.")
]


def find(model: str, cluster: str, profile: str | None = None) -> tuple[Model, Cluster]:
    """Both inputs, read and checked; the cluster priced by another profile where one is given.

    Raises
    ------
    BadInput
        One sentence about the first mistake, with the nearest valid name.
    """
    from scenarios import catalog

    found = catalog.find_model(model), catalog.find_cluster(cluster)
    if profile is None:
        return found
    priced = {**found[1].to_dict(), "profile": profile}
    return found[0], type(found[1]).from_dict(priced, "--profile")


def find_today(path: Path, model: Model) -> TodaySource:
    """The plan of today, by its path; what ``export --to torchrec`` wrote is read here.

    Everything else is left to :func:`milp_planner.today.rows.read_today`.

    Raises
    ------
    BadInput, InstanceError
        When a JSON file cannot be read.
    """
    from milp_planner.integrations.exports import read, torchrec
    from milp_planner.plans.plan_file import read_document

    if path.suffix.lower() != ".json" or read_document(path).get("format") != torchrec.FORMAT:
        return path
    return read(path.read_text(encoding="utf-8"), "torchrec", model)
