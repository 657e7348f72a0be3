"""Options of ``milp-planner explain``, by the question they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli.options import whole

PlanArgument = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan.json.", show_default=False)
]
AskOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ask",
        metavar="QUESTION",
        help="why, staircase, frontier, smallest, replan, diff, robust, sensitivity, why-not; may "
        "be repeated. Default: why and staircase, or why-not where no plan exists.",
        show_default=False,
    ),
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="NAME", help="why: only this table; may be repeated.", show_default=False
    ),
]
AlternativesOption = Annotated[
    int,
    typer.Option(
        "--alternatives", parser=whole(1, 1000), metavar="N", help="why: others for each table."
    ),
]
ExtraOption = Annotated[
    str,
    typer.Option(
        "--extra",
        metavar="SIZES",
        help="staircase: how much more (or less) memory at every place.",
    ),
]
GridOption = Annotated[
    int,
    typer.Option(
        "--grid",
        parser=whole(1, 100),
        metavar="N",
        help="frontier: equal steps of each memory, where not all points can be found.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TIME",
        help="smallest: what to reach, such as 2.5ms; default: any plan.",
        show_default=False,
    ),
]
LimitsOption = Annotated[
    str,
    typer.Option(
        "--limits", metavar="LIST", help="replan: tables that may move, or sizes such as 10GB."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODEL", help="replan: the model as it is now.", show_default=False
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="CLUSTER", help="replan: the cluster as it is now.", show_default=False
    ),
]
AgainstOption = Annotated[
    Path | None,
    typer.Option(
        "--against", metavar="PLAN", help="diff: the plan to change to.", show_default=False
    ),
]
ScenarioOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        metavar="MODEL@CLUSTER",
        help="robust: another scenario of the same tables; either side may be left out.",
        show_default=False,
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="LIST",
        help="robust: whole numbers from 1, the plan's own scenario first; default: 1 each.",
        show_default=False,
    ),
]
WorstOption = Annotated[
    bool, typer.Option("--worst", help="robust: against the worst scenario, not their sum.")
]
SensitivityOption = Annotated[
    bool, typer.Option("--sensitivity", help="The same as --ask sensitivity: wrong prices.")
]
SpreadOption = Annotated[
    float,
    typer.Option(
        "--spread",
        metavar="SHARE",
        help="sensitivity: how wrong a price may be that the profile gives no spread for.",
    ),
]
DrawsOption = Annotated[
    int,
    typer.Option(
        "--draws",
        parser=whole(0, 100_000),
        metavar="N",
        help="sensitivity: random draws of all prices at once.",
    ),
]
CommonOption = Annotated[
    bool, typer.Option("--robust", help="sensitivity: also one plan for all draws.")
]
