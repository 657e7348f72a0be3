"""``milp-planner report``: a plan, a batch or a comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from milp_planner.cli import console, options, readers
from milp_planner.cli.console import Work
from milp_planner.cli.failures import finish
from milp_planner.cli.options import argument, asking, option
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, kind_of, write_atomically
from milp_planner.request import Limits


@asking(Limits, "formulation", "time_limit", "seed", "workers")
def run(
    request: Limits,
    *,
    source: Annotated[
        Path,
        argument(
            "PLAN|DIR|COMPARISON",
            "plan.json, a folder that batch wrote, or a file that compare -o wrote.",
        ),
    ],
    answers: Annotated[
        list[Path] | None,
        argument(
            "[ANSWERS]...",
            "Output of explain --json about the plan, to be drawn on the page; or a second "
            "plan.json, to be compared with the first.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option("--output -o FILE", "Output file; default: report.html, or none with --json."),
    ] = None,
    ask: Annotated[
        list[str] | None,
        option(
            "--ask QUESTION",
            "Question of explain to answer now, such as why or frontier; may be repeated.",
        ),
    ] = None,
    start: options.StartOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write a plan, a batch or a comparison as one HTML page.

    The page is self-contained and fetches nothing. For a plan it shows the verdict, memory, time,
    modes, search, every table, and the explanations given or asked for; for a batch, assertions,
    performance profiles and every scenario; for a comparison, bound and best plan over time, gaps,
    and a verdict on each row. Of two plans it shows what differs, on the terminal as well. --json
    prints the same figures as JSON.
    """
    from formulations.capacity.budget import Budget
    from milp_planner.cli.explain_asked import parse_questions
    from milp_planner.features.explain.answers import Answers, answer
    from milp_planner.features.explain.call import merged, read_answers
    from milp_planner.features.report.page import render, report_of
    from milp_planner.plans.plan_file import read_plan
    from milp_planner.request.questions import Asked

    questions = parse_questions(ask or [])
    if start is not None and "moves" not in questions:
        questions.append("moves")
    target = output or (None if json else Path("report.html"))
    found = _read(source, answers or [], bool(questions))
    check_writable(target, kind="page")
    if found is not None:
        info, page, drawing = found
        if target is not None:
            write_atomically(target, page())
        console.tell(json, info.to_dict, drawing, target)
        return
    read = read_plan(source)
    asked = Asked(
        start=None if start is None else readers.find_start(start, read.model, read.cluster)
    )
    given = read_answers(answers or [], read)
    work = Work("explaining")
    fresh = Answers()
    if questions:
        budget = Budget(work.settings(request.settings()), request.formulation)
        fresh = work.run(lambda: answer(read, questions, asked, budget))
    info = report_of(read, merged(given, fresh))
    if target is not None:
        write_atomically(target, render(info))
    console.tell(json, info.to_dict, list, target)
    finish("feasible", work.interrupted)


def _read(
    source: Path, others: list[Path], asked: bool
) -> tuple[Any, Callable[[], str], Callable[[], list[Any]]] | None:
    """What is reported without a plan to explain: facts, their page and their drawing.

    None for a single plan, or an unknown file. BadInput for two of different kinds, and for
    questions or answers about something else than a plan.
    """
    from milp_planner.features.report.diff import diff_of_plans
    from milp_planner.plans.plan_file import read_plan
    from scenarios.batch import read_batch
    from scenarios.batch.page import render_batch
    from scenarios.compare.facts import read_comparison
    from scenarios.compare.page import render_comparison

    kinds = [_kind(path) for path in (source, *others)]
    if others and ("batch" in kinds or "plan" in kinds[1:]):
        if asked or kinds != ["plan", "plan"]:
            instead = "; of a batch, batch --query" if kinds == ["batch", "batch"] else ""
            raise BadInput(
                f"{source} with {', '.join(map(str, others))}: allowed: two plans without "
                f"questions, or a plan and its answers{instead}"
            )
        names = str(source), str(others[0])
        diff = diff_of_plans((read_plan(source), read_plan(others[0])), names)
        return diff, diff.page, lambda: [diff.drawing()]
    if kinds[0] not in ("batch", "comparison"):
        return None
    if asked or others:
        raise BadInput(f"{source}: is not a plan; --ask, --start and ANSWERS need a plan.json")
    if kinds[0] == "batch":
        batch = read_batch(source).info
        return batch, lambda: render_batch(batch), list
    comparison = read_comparison(source)
    return comparison, lambda: render_comparison(comparison), list


def _kind(path: Path) -> str:
    """``batch`` for a folder, else what its beginning says it is."""
    from formulations.runtime.regular_file import first_bytes

    try:
        return "batch" if path.is_dir() else kind_of(first_bytes(path, 500))
    except OSError:
        return ""
