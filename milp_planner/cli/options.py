"""Arguments and options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ObjectiveName(StrEnum):
    """What is minimised."""

    TOTAL = "total"
    BUSIEST_RANK = "busiest_rank"
    STEP_TIME = "step_time"


ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Model YAML, or the name of a shipped one (milp-planner list models).",
        show_default=False,
    ),
]
ClusterArgument = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER",
        help="Cluster YAML, or the name of a shipped one (milp-planner list clusters).",
        show_default=False,
    ),
]
FormulationOption = Annotated[
    str,
    typer.Option(
        "--formulation",
        "-f",
        metavar="NAME",
        help="How to solve (milp-planner list formulations).",
    ),
]
ObjectiveOption = Annotated[
    ObjectiveName,
    typer.Option(
        "--objective",
        help="step_time: the embedding part of a step, barriers between phases, no overlap; "
        "busiest_rank: the largest sum on one rank; total: the sum over everything.",
    ),
]
TimeLimitOption = Annotated[
    float, typer.Option("--time-limit", min=0.0, metavar="SECONDS", help="Wall clock to solve.")
]
WorkLimitOption = Annotated[
    float | None,
    typer.Option(
        "--work-limit",
        min=0.0,
        metavar="UNITS",
        help="Deterministic work; with --workers 1 a run repeats exactly.",
        show_default=False,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Random seed.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=1024, help="Solver threads; default: all cores.", show_default=False
    ),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the formulation, such as solver=cbc; may be repeated.",
        show_default=False,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Machine output on stdout, nothing else there.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write; appears whole or not at all.",
        show_default=False,
    ),
]
AllRowsOption = Annotated[
    bool, typer.Option("--all", help="Print every table and rank instead of folding long lists.")
]
