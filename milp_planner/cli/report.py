"""``milp-planner report``: a plan, a batch or a comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from milp_planner.cli import console, options, readers
from milp_planner.cli.console import Work
from milp_planner.cli.failures import finish
from milp_planner.cli.options import argument, asking, option
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_atomically
from milp_planner.request import Limits

if TYPE_CHECKING:
    from milp_planner.features.report.diff import Diff
    from scenarios.batch.info import BatchInfo
    from scenarios.batch.runner import Batch


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
            "plan.json or folder, to be compared with the first.",
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
    today: options.TodayOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write a plan, a batch or a comparison as one HTML page.

    The page is self-contained and fetches nothing. For a plan it shows the verdict, memory, time,
    modes, search, every table, and the explanations given or asked for; for a batch, assertions,
    performance profiles and every scenario; for a comparison, bound and best plan over time, gaps,
    and a verdict on each row. Of two plans, or two batches, it shows what differs, on the terminal
    as well. --json prints the same figures as JSON.
    """
    from formulations.capacity.budget import Budget
    from milp_planner.cli.explain_asked import parse_questions
    from milp_planner.features.explain.answers import Answers, Asked, answer
    from milp_planner.features.explain.call import merged, read_answers
    from milp_planner.features.report.page import render, report_of
    from milp_planner.plans.plan_file import read_plan

    questions = parse_questions(ask or [])
    if today is not None and "moves" not in questions:
        questions.append("moves")
    other = _second(source, answers or [], bool(questions))
    kind = None if other is not None else _kind_of(source, bool(questions or answers))
    target = output or (None if json else Path("report.html"))
    check_writable(target, kind="page")
    if other is not None:
        report_two(source, other, target, json)
        return
    if kind is not None:
        kind(source, target, json)
        return
    read = read_plan(source)
    asked = Asked(
        today=None if today is None else readers.find_today(today, read.model, read.cluster)
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


def _second(source: Path, others: list[Path], asked: bool) -> Path | None:
    """The second of two plans or batches; None if the further files are answers, or none.

    BadInput for a batch beside anything else, or with questions.
    """
    folders = [path for path in (source, *others) if path.is_dir()]
    plans = [path for path in others if not path.is_dir() and is_plan_file(path)]
    if not plans and (not folders or not others):
        return None
    pair = len(others) == 1 and not asked
    if pair and (len(folders) == 2 or (plans and not folders)):
        return others[0]
    raise BadInput(
        f"{source} with {', '.join(map(str, others))}: allowed: two plans or two folders of batch, "
        "without questions; or a plan and its answers"
    )


def is_plan_file(path: Path) -> bool:
    """Whether a file begins as a plan.json."""
    from formulations.runtime.regular_file import first_bytes
    from milp_planner.plans.plan_file import FORMAT

    try:
        return f'"{FORMAT}"'.encode() in first_bytes(path, 200)
    except OSError:
        return False


def report_two(first: Path, second: Path, target: Path | None, json: bool) -> None:
    """The page, drawing or JSON of what differs between two plans, or two batches."""
    from milp_planner.features.report.plan_diff import diff_of_plans
    from milp_planner.plans.plan_file import read_plan
    from scenarios.batch import read_batch
    from scenarios.batch.diff import diff_of_batches

    names = str(first), str(second)
    found: Diff
    if first.is_dir():
        found = diff_of_batches((info_of(read_batch(first)), info_of(read_batch(second))), names)
    else:
        found = diff_of_plans((read_plan(first), read_plan(second)), names)
    if target is not None:
        write_atomically(target, found.page())
    console.tell(json, found.to_dict, lambda: [found.drawing()], target)


def _kind_of(source: Path, asked: bool) -> Callable[[Path, Path | None, bool], None] | None:
    """The function that reports a batch or a comparison; None for a plan or an unknown file."""
    from scenarios.compare.facts import is_comparison

    if not (source.is_dir() or is_comparison(source)):
        return None
    if asked:
        raise BadInput(f"{source}: is not a plan; --ask, --today and ANSWERS need a plan.json")
    return report_batch if source.is_dir() else report_comparison


def report_batch(folder: Path, target: Path | None, json: bool) -> None:
    """The page or JSON of a batch's folder."""
    from scenarios.batch import read_batch
    from scenarios.batch.page import render_batch

    _give(info_of(read_batch(folder)), render_batch, target, json)


def report_comparison(path: Path, target: Path | None, json: bool) -> None:
    """The page or JSON of a file that ``compare -o`` wrote."""
    from scenarios.compare.facts import read_comparison
    from scenarios.compare.page import render_comparison

    _give(read_comparison(path), render_comparison, target, json)


def info_of(batch: Batch) -> BatchInfo:
    """The figures of a batch."""
    from scenarios.batch.info import batch_of

    suite = batch.suite
    return batch_of(
        suite.name, suite.description, len(batch.tasks), batch.results, batch.judgements
    )


def _give(info: Any, render: Callable[[Any], str], target: Path | None, json: bool) -> None:
    if target is not None:
        write_atomically(target, render(info))
    console.tell(json, info.to_dict, list, target)
