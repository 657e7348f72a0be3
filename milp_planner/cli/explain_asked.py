"""The questions of ``explain`` and ``report``: their options and the parsers of these."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli.options import option
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milp_planner.plans.placement import Plan
    from milp_planner.request.questions import Asked

#: The question that each option belongs to.
_FOR = {
    "tables": "why", "alternatives": "why", "over": "frontier",
    "budgets": "frontier", "enough": "frontier", "csv": "frontier", "target": "smallest",
    "clusters": "smallest", "limits": "replan", "model": "replan",
    "cluster": "replan", "start": "moves",
    "steps": "moves", "step": "moves", "spread": "sensitivity",
    "draws": "sensitivity",
}  # fmt: skip


#: What replaced the question staircase and its option.
INSTEAD = "--ask frontier answers it, with --over hbm,ddr and --budgets N, or a list of sizes"


def refuse_strays(request: Asked, own: dict[str, object], questions: list[str]) -> None:
    """Refuse options of questions that are not asked, as they would have no effect."""
    asked = questions or ["why", "frontier"]
    given = [*request.given, *(name for name, value in own.items() if value is not None)]
    for question in dict.fromkeys(_FOR.values()):
        names = [n for n in given if _FOR.get(n) == question and question not in asked]
        if names:
            strays = ", ".join(f"--{n}" if n in own else request.spelled(n) for n in names)
            raise BadInput(f"{strays}: for --ask {question}, which is not asked")


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
CsvOption = Annotated[Path | None, option("--csv FILE", "frontier: also write its points as CSV.")]
SensitivityOption = Annotated[
    bool,
    option("--sensitivity", "Short for --ask sensitivity: what would change if prices were wrong."),
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
