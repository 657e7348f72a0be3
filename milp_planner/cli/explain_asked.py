"""What ``explain`` and ``report`` are asked: their options, and the questions read from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milp_planner.cli.options import argument, given, option, whole
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from milp_planner.features.explain.answers import Asked

#: The question that each option is for.
_FOR = {
    "table": "why", "alternatives": "why", "extra": "staircase", "grid": "frontier",
    "target": "smallest", "limits": "replan", "model": "replan", "cluster": "replan",
    "against": "diff", "scenario": "robust", "weights": "robust", "worst": "robust",
    "spread": "sensitivity", "draws": "sensitivity",
}  # fmt: skip


def refuse_strays(context: typer.Context, questions: list[str], common: bool) -> None:
    """Refuse options for a question that is not asked, which would change nothing.

    Parameters
    ----------
    context : typer.Context
    questions : list of str
        As asked; empty: those that are asked of any plan by default.
    common : bool
        Whether sensitivity makes a robust plan, too.

    Raises
    ------
    BadInput
        Naming the options and their question.
    """

    asked = questions or ["why", "staircase"]
    for question in dict.fromkeys(_FOR.values()):
        names = [n for n, theirs in _FOR.items() if theirs == question and question not in asked]
        strays = given(context, *(n for n in names if not (common and n == "worst")))
        if strays:
            raise BadInput(f"{', '.join(strays)}: for --ask {question}, which is not asked")


def parse_questions(given: list[str]) -> list[str]:
    """Names of questions, commas allowed.

    Raises
    ------
    BadInput
        For an unknown one, with the nearest.
    """
    from milp_planner.features.explain.answers import QUESTIONS
    from milp_planner.inputs.problems import choice

    names = [part.strip() for text in given for part in text.split(",") if part.strip()]
    for name in names:
        if name not in QUESTIONS:
            raise BadInput(f"--ask {name!r}: {choice(name, QUESTIONS)}")
    return names


def parse_sizes(text: str, option: str) -> tuple[int, ...]:
    """Signed sizes such as ``-10GB,5GiB``, or plain whole numbers.

    Raises
    ------
    BadInput
        When one is no size.
    """
    from milp_planner.inputs.quantities import parse_bytes

    found = []
    for part in (p.strip() for p in text.split(",")):
        sign, size = (-1, part[1:]) if part.startswith("-") else (1, part.removeprefix("+"))
        try:
            found.append(sign * parse_bytes(int(size) if size.isdigit() else size))
        except ValueError as error:
            raise BadInput(f"{option} {part!r}: {error}") from None
    return tuple(found)


def parse_time(text: str) -> int:
    """A time such as ``2.5ms`` in picoseconds.

    Raises
    ------
    BadInput
        When it is none.
    """
    from decimal import Decimal, InvalidOperation

    units = {"ms": 10**9, "us": 10**6, "µs": 10**6, "ns": 10**3, "ps": 1, "s": 10**12}
    for unit, size in units.items():
        if text.strip().endswith(unit):
            try:
                value = Decimal(text.strip().removesuffix(unit).strip())
            except InvalidOperation:
                break
            if value.is_finite() and value > 0:
                return int(value * size)
            break
    raise BadInput(f"--target {text!r}: needs a time such as 2.5ms (s, ms, us, ns, ps)")


def basic(
    table: list[str] | None, alternatives: int, extra: str, target: str | None, limits: str
) -> Asked:
    """What needs no file: tables, sizes, target and limits."""
    from milp_planner.features.explain.answers import Asked

    parts = [part.strip() for part in limits.split(",")]
    plain = [part.isascii() and part.isdigit() for part in parts]
    by = "tables" if all(plain) else "bytes"
    counted = tuple(int(p) for p in parts) if by == "tables" else parse_sizes(limits, "--limits")
    if min(counted) < 0:
        raise BadInput(f"--limits {limits!r}: needs whole numbers from 0, or sizes")
    return Asked(
        tables=tuple(table or ()),
        alternatives=alternatives,
        extras=parse_sizes(extra, "--extra"),
        target=None if target is None else parse_time(target),
        limits=counted,
        by=by,
    )


def with_sources(
    asked: Asked, model: str | None, cluster: str | None, against: Path | None
) -> Asked:
    """The model, the cluster and the plan that a question compares with."""
    from dataclasses import replace

    from milp_planner.plans.plan_file import read_plan
    from scenarios import catalog

    return replace(
        asked,
        model=None if model is None else catalog.find_model(model),
        cluster=None if cluster is None else catalog.find_cluster(cluster),
        against=None if against is None else read_plan(against),
    )


def _weights(text: str | None) -> tuple[int, ...]:

    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(p.isascii() and p.isdigit() and 0 < int(p) < 10**6 for p in parts):
        raise BadInput(f"--weights {text!r}: needs whole numbers from 1 to 999999, such as 3,1")
    return tuple(int(p) for p in parts)


def with_scenarios(asked: Asked, given: list[str], weights: str | None, worst: bool) -> Asked:
    """The scenarios of *robust*, with their weights."""
    from dataclasses import replace

    from scenarios import catalog

    found = []
    for text in given:
        model, at, cluster = text.rpartition("@")
        if not at or not (model or cluster):
            raise BadInput(f"--scenario {text!r}: needs MODEL@CLUSTER, MODEL@ or @CLUSTER")
        found.append(
            (
                catalog.find_model(model) if model else None,
                catalog.find_cluster(cluster) if cluster else None,
            )
        )
    return replace(asked, scenarios=tuple(found), weights=_weights(weights), worst=worst)


PlanArgument = Annotated[Path, argument("PLAN", "A plan.json.")]
AskOption = Annotated[
    list[str] | None,
    option(
        "--ask QUESTION",
        "why, staircase, frontier, smallest, replan, diff, robust, sensitivity, why-not; may be"
        " repeated. Default: why and staircase, or why-not where no plan exists.",
    ),
]
TableOption = Annotated[
    list[str] | None, option("--table NAME", "why: only this table; may be repeated.")
]
AlternativesOption = Annotated[
    int, option("--alternatives N", "why: alternatives shown for each table.", whole(1, 1000))
]
ExtraOption = Annotated[
    str, option("--extra SIZES", "staircase: how much more (or less) memory at every place.")
]
GridOption = Annotated[
    int,
    option(
        "--grid N",
        "frontier: number of equal steps of each memory.",
        whole(1, 100),
    ),
]
TargetOption = Annotated[
    str | None,
    option("--target TIME", "smallest: the objective to reach, such as 2.5ms; default: any plan."),
]
LimitsOption = Annotated[
    str, option("--limits LIST", "replan: tables that may move, or sizes such as 10GB.")
]
ModelOption = Annotated[str | None, option("--model MODEL", "replan: the model as it is now.")]
ClusterOption = Annotated[
    str | None, option("--cluster CLUSTER", "replan: the cluster as it is now.")
]
AgainstOption = Annotated[Path | None, option("--against PLAN", "diff: the plan to change to.")]
ScenarioOption = Annotated[
    list[str] | None,
    option(
        "--scenario MODEL@CLUSTER",
        "robust: another scenario of the same tables; either side may be left out.",
    ),
]
WeightsOption = Annotated[
    str | None,
    option(
        "--weights LIST",
        "robust: whole numbers from 1, the plan's own scenario first; default: 1 each.",
    ),
]
WorstOption = Annotated[
    bool, option("--worst", "robust: minimise the worst scenario, not the weighted sum.")
]
SensitivityOption = Annotated[
    bool, option("--sensitivity", "Short for --ask sensitivity: what wrong prices would change.")
]
SpreadOption = Annotated[
    float,
    option(
        "--spread SHARE",
        "sensitivity: how wrong a price may be where the profile states no spread.",
    ),
]
DrawsOption = Annotated[
    int, option("--draws N", "sensitivity: random draws of all prices at once.", whole(0, 100_000))
]
CommonOption = Annotated[bool, option("--robust", "sensitivity: also find one plan for all draws.")]
