"""The questions of ``explain`` and ``report``: their options and the parsers of these."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milp_planner.cli.options import given, option, whole
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milp_planner.plans.placement import Plan

#: The question that each option belongs to.
_FOR = {
    "table": "why", "alternatives": "why", "over": "frontier",
    "budgets": "frontier", "within": "frontier", "csv": "frontier", "target": "smallest",
    "limits": "replan", "model": "replan", "cluster": "replan", "start": "moves",
    "steps": "moves", "step": "moves", "spread": "sensitivity",
    "draws": "sensitivity",
}  # fmt: skip


#: What replaced the question staircase and its option.
INSTEAD = "--ask frontier answers it, with --over hbm,ddr and --budgets N, or a list of sizes"
#: Most budgets of one frontier, and most bytes of a budget.
MOST_BUDGETS, MOST_MEMORY = 200, 2**50


def refuse_strays(context: typer.Context, questions: list[str]) -> None:
    """Refuse options of questions that are not asked, as they would have no effect."""
    asked = questions or ["why", "frontier"]
    for question in dict.fromkeys(_FOR.values()):
        names = [n for n, theirs in _FOR.items() if theirs == question and question not in asked]
        strays = given(context, *names)
        if strays:
            raise BadInput(f"{', '.join(strays)}: for --ask {question}, which is not asked")


def parse_questions(given: list[str]) -> list[str]:
    """Parse names of questions, separated by commas or given separately."""
    from milp_planner.features.explain.answers import QUESTIONS
    from milp_planner.inputs.problems import choice

    names = [part.strip() for text in given for part in text.split(",") if part.strip()]
    for name in names:
        if name == "staircase":
            raise BadInput(f"--ask staircase is gone: {INSTEAD}")
        if name not in QUESTIONS:
            raise BadInput(f"--ask {name!r}: {choice(name, QUESTIONS)}")
    return names


def parse_sizes(text: str, option: str) -> tuple[int, ...]:
    """Parse signed sizes such as ``-10GB,5GiB``, or plain whole numbers."""
    from milp_planner.inputs.quantities import parse_bytes

    found = []
    for part in (p.strip() for p in text.split(",")):
        sign, size = (-1, part[1:]) if part.startswith("-") else (1, part.removeprefix("+"))
        try:
            found.append(sign * parse_bytes(int(size) if size.isdigit() else size))
        except ValueError as error:
            raise BadInput(f"{option} {part!r}: {error}") from None
    return tuple(found)


def parse_over(text: str) -> tuple[str, ...]:
    """Parse kinds of budgets, separated by commas: memories, machines, or paths of fields."""
    from milp_planner.features.explain.axes import MACHINES, STASH
    from milp_planner.inputs.problems import choice

    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names or [text]:
        if "." not in name and name not in (known := ("hbm", "ddr", "ssd", MACHINES, STASH)):
            raise BadInput(f"--over {name!r}: {choice(name, known)}, or the path of a field")
    return tuple(dict.fromkeys(names))


def parse_budgets(text: str, over: Sequence[str]) -> tuple[int | str, ...] | int:
    """Parse budgets: how many (``12``), sizes (``80GB,96GB``), numbers of machines (``1,2``), or
    values of a field (``512,×2``)."""
    parts = [part.strip() for part in text.split(",")]
    if len(over) == 1 and "." in over[0] and text:
        return tuple(parts)
    numbers = all(part.isascii() and part.isdigit() for part in parts)
    if numbers and len(parts) == 1:
        if not 1 <= int(text) <= MOST_BUDGETS:
            raise BadInput(f"--budgets {text!r}: allowed: 1 to {MOST_BUDGETS}, or a list")
        return int(text)
    if len(over) > 1:
        raise BadInput(f"--budgets {text!r}: a list goes with one kind of budget, not with {over}")
    if over[0] == "machines":
        if not numbers or "0" in parts:
            raise BadInput(f"--budgets {text!r}: needs numbers of machines such as 1,2,4")
        return tuple(int(part) for part in parts)
    sizes = parse_sizes(text, "--budgets")
    if min(sizes) < 0 or max(sizes) > MOST_MEMORY:
        raise BadInput(f"--budgets {text!r}: needs sizes such as 64GiB,80GiB, up to 1 PiB each")
    return sizes


def parse_share(text: str, option: str) -> float:
    """Parse a percentage such as ``0.5%``."""
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not (text.strip().endswith("%") and 0 <= share <= 1):
        raise BadInput(f"{option} {text!r}: needs a percentage from 0% to 100%, such as 0.5%")
    return share


def parse_limits(text: str) -> tuple[tuple[int, ...], str]:
    """Parse limits on moves; returns them and their unit, ``tables`` or ``bytes``."""
    parts = [part.strip() for part in text.split(",")]
    if all(part.isascii() and part.isdigit() for part in parts):
        return tuple(int(part) for part in parts), "tables"
    sizes = parse_sizes(text, "--limits")
    if min(sizes) < 0:
        raise BadInput(f"--limits {text!r}: needs whole numbers from 0, or sizes")
    return sizes, "bytes"


def write_steps(plans: Sequence[Plan], folder: Path, which: str | None) -> None:
    """Write the plans after some moves to a folder: those in the table, those named, or all."""
    from milp_planner.features.moves.way import FIRST_MOVES
    from milp_planner.plans.plan_file import write_plan

    count = len(plans)
    if which == "all":
        numbers = set(range(1, count + 1))
    elif which is None:
        numbers = {n for n in (*FIRST_MOVES, count) if 0 < n <= count}
    else:
        numbers = _numbers(which, count)
    folder.mkdir(parents=True, exist_ok=True)
    for number in sorted(numbers):
        write_plan(plans[number - 1], folder / f"{number:04}.json")


def _numbers(text: str, count: int) -> set[int]:
    try:
        found = {int(part) for part in text.split(",")}
    except ValueError:
        found = {0}
    if not found <= set(range(1, count + 1)):
        raise BadInput(
            f"--step {text!r}: allowed: all, or numbers from 1 to {count} such as 1,5,20"
        )
    return found


AskOption = Annotated[
    list[str] | None,
    option(
        "--ask QUESTION",
        "why, frontier, smallest, replan, moves, sensitivity or why-not; may be repeated. Default: "
        "why and frontier, or why-not if no plan exists.",
    ),
]
TableOption = Annotated[
    list[str] | None, option("--table NAME", "why: only this table; may be repeated.")
]
AlternativesOption = Annotated[
    int, option("--alternatives N", "why: alternatives to show for each table.", whole(1, 1000))
]
CsvOption = Annotated[Path | None, option("--csv FILE", "frontier: also write its points as CSV.")]
TargetOption = Annotated[
    str | None,
    option("--target TIME", "smallest: objective to reach, such as 2.5ms; default: any plan."),
]
LimitsOption = Annotated[
    str, option("--limits LIST", "replan: how many tables may move, or sizes such as 10GB.")
]
ModelOption = Annotated[
    str | None, option("--model MODEL", "replan: the model, if it has changed.")
]
ClusterOption = Annotated[
    str | None, option("--cluster CLUSTER", "replan: the cluster, if it has changed.")
]
SensitivityOption = Annotated[
    bool,
    option("--sensitivity", "Short for --ask sensitivity: what would change if prices were wrong."),
]
SpreadOption = Annotated[
    float,
    option(
        "--spread SHARE",
        "sensitivity: assumed error of a price for which the profile states no spread.",
    ),
]
DrawsOption = Annotated[
    int,
    option(
        "--draws N",
        "sensitivity: number of random draws of all prices at once.",
        whole(0, 100_000),
    ),
]
OverOption = Annotated[
    str,
    option(
        "--over KINDS",
        "frontier: hbm (of every rank), ddr, ssd (of every machine), machines, stash (of every "
        "rank), or the path of a field such as workload.batch_per_rank; several with commas.",
    ),
]
BudgetsOption = Annotated[
    str,
    option(
        "--budgets LIST|N",
        "frontier: number of budgets, or a list: sizes such as 64GiB,80GiB (reservations included),"
        " numbers of machines, or values of the field such as 512,×2.",
    ),
]
WithinOption = Annotated[
    str, option("--within PERCENT", "frontier: certified gap at which a point is settled.")
]
StepsOption = Annotated[
    Path | None,
    option(
        "--steps FOLDER",
        "Write the plans after some moves from today's plan (0001.json: after the first move): "
        "those in the table of moves, or those that --step names.",
    ),
]
StepOption = Annotated[
    str | None,
    option(
        "--step NUMBERS",
        "Plans that --steps writes: all, or those after these numbers of moves, such as 1,5,20.",
    ),
]
