"""``milp-planner report``: a plan, a batch or a comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from milp_planner.cli import console, options
from milp_planner.cli.explain_asked import ExtraOption
from milp_planner.cli.failures import finish
from milp_planner.cli.options import argument, option
from milp_planner.cli.work import Work
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_atomically

if TYPE_CHECKING:
    from milp_planner.features.batch.info import BatchInfo
    from scenarios.batch.runner import Batch


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
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
            "[ANSWERS]...", "Output of explain --json about the plan, to be drawn on the page."
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
            "Question of explain to answer now, such as why or staircase; may be repeated.",
        ),
    ] = None,
    extra: ExtraOption = "-10GB,-5GB,5GB,10GB,20GB",
    today: options.TodayOption = None,
    formulation: options.FormulationOption = "auto",
    time_limit: options.TimeLimitOption = 60.0,
    seed: options.SeedOption = 0,
    workers: options.WorkersOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write a plan, a batch or a comparison as one HTML page.

    The page is self-contained and fetches nothing. For a plan it shows the verdict, memory, time,
    modes, search, every table, and the explanations given or asked for; for a batch, assertions,
    performance profiles and every scenario; for a comparison, bound and best plan over time, gaps,
    and a verdict on each row. --json prints the same figures as JSON.
    """
    from milp_planner.cli.explain_asked import parse_questions, parse_sizes
    from milp_planner.features.explain.answers import Answers, Asked, answer
    from milp_planner.features.explain.budget import Budget
    from milp_planner.features.explain.call import merged, read_answers
    from milp_planner.features.report.page import render, report_of
    from milp_planner.plans.plan_file import read_plan

    questions = parse_questions(ask or [])
    if today is not None and "moves" not in questions:
        questions.append("moves")
    kind = _kind_of(source, bool(questions or answers))
    target = output or (None if json else Path("report.html"))
    check_writable(target)
    if kind is not None:
        kind(source, target, json)
        return
    settings = options.make_settings(
        time_limit, seed=seed, workers=workers, formulation=formulation
    )
    read = read_plan(source)
    asked = Asked(
        extras=parse_sizes(extra, "--extra"),
        today=None if today is None else options.find_today(today, read.model),
    )
    given = read_answers(answers or [], read)
    work = Work("explaining")
    fresh = Answers()
    if questions:
        fresh = work.run(
            lambda: answer(read, questions, asked, Budget(work.settings(settings), formulation))
        )
    info = report_of(read, merged(given, fresh))
    if target is not None:
        write_atomically(target, render(info))
    console.tell(json, info.to_dict, list, target)
    finish("feasible", work.interrupted)


def _kind_of(source: Path, asked: bool) -> Callable[[Path, Path | None, bool], None] | None:
    """The function that reports a batch or a comparison; None for a plan or an unknown file."""
    from milp_planner.features.compare.facts import is_comparison

    if not (source.is_dir() or is_comparison(source)):
        return None
    if asked:
        raise BadInput(f"{source}: is not a plan; --ask, --today and ANSWERS need a plan.json")
    return report_batch if source.is_dir() else report_comparison


def report_batch(folder: Path, target: Path | None, json: bool) -> None:
    """The page or JSON of a batch's folder."""
    from milp_planner.features.batch.page import render_batch
    from scenarios.batch import read_batch

    _give(info_of(read_batch(folder)), render_batch, target, json)


def report_comparison(path: Path, target: Path | None, json: bool) -> None:
    """The page or JSON of a file that ``compare -o`` wrote."""
    from milp_planner.features.compare.facts import read_comparison
    from milp_planner.features.compare.page import render_comparison

    _give(read_comparison(path), render_comparison, target, json)


def info_of(batch: Batch) -> BatchInfo:
    """The figures of a batch."""
    from milp_planner.features.batch.info import batch_of

    suite = batch.suite
    return batch_of(
        suite.name, suite.description, len(batch.tasks), batch.results, batch.judgements
    )


def _give(info: Any, render: Callable[[Any], str], target: Path | None, json: bool) -> None:
    if target is not None:
        write_atomically(target, render(info))
    console.tell(json, info.to_dict, list, target)
