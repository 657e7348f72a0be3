"""``milp-planner explain``: why this plan, what more memory would buy, what a change takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console, options, readers
from milp_planner.cli.console import Work
from milp_planner.cli.explain_asked import (
    AskOption,
    CsvOption,
    SensitivityOption,
    StepOption,
    StepsOption,
    parse_questions,
    refuse_strays,
    write_steps,
)
from milp_planner.cli.failures import finish, say
from milp_planner.cli.options import argument, asking
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_atomically
from milp_planner.request import SECONDS
from milp_planner.request.questions import Asked

if TYPE_CHECKING:
    from formulations.capacity.budget import Budget
    from milp_planner.features.explain.answers import Answers
    from milp_planner.plans.placement import Plan


@asking(
    Asked, "tables", "alternatives", "over", "budgets", "enough", "target", "clusters", "limits",
    "model", "cluster", "start", "spread", "draws", "formulation", "time_limit", "seed", "workers",
)  # fmt: skip
def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    request: Asked,
    *,
    plan: Annotated[Path, argument("PLAN", "plan.json, as plan writes it.")],
    ask: AskOption = None,
    csv: CsvOption = None,
    steps: StepsOption = None,
    step: StepOption = None,
    sensitivity: SensitivityOption = False,
    output: options.OutputOption = None,
    everything: options.AllRowsOption = False,
    json: options.JsonOption = False,
) -> None:
    """Explain a plan.

    Answers why each table is where it is and what the alternatives cost, what more memory would
    buy, which smallest cluster suffices, what it takes to change the plan, and by how much prices
    may be wrong. Every figure comes from a solve or is marked as a bound. --start shows what the
    first moves from the plan you run would gain. -o writes the plan found by replan (at its largest
    limit). If a better plan than PLAN turns up, it is written next to PLAN.
    """
    from formulations.capacity.budget import Budget
    from milp_planner.plans.plan_file import read_plan, write_plan

    questions = _questions(request, ask, sensitivity)
    refuse_strays(request, {"csv": csv, "steps": steps, "step": step}, questions)
    if output is not None and "replan" not in questions:
        raise BadInput("-o: only --ask replan finds a plan to write (answers themselves: --json)")
    check_writable(output, kind="plan")
    check_writable(csv, kind="CSV")
    read = read_plan(plan)
    asked = _found(request, read)
    work = Work("explaining")
    settings = work.settings(request.settings())
    if request.time_limit is None:
        _announce(read, questions)
    answers = _answers(work, read, questions, asked, Budget(settings, request.formulation))
    _write(answers, output, csv)
    if steps is not None:
        write_steps(answers.steps or (), steps, step)
    _show(read, answers, everything, json)
    if answers.better is not None:
        target = plan.with_name(f"{plan.name.removesuffix('.json')}.better.json")
        write_plan(answers.better, target)
        say(f"a better plan turned up; written: {target}")
    unfit = answers.replan is not None and answers.replanned is None
    none = unfit or read.outcome.status.value == "infeasible"
    finish("infeasible" if none else "feasible", work.interrupted)


def _announce(read: Plan, questions: list[str]) -> None:
    """Say first that answers are searched for, and for how long, where nobody chose it."""
    names = questions or (["why", "frontier"] if read.outcome.placement is not None else [])
    searched = [name for name in names if name not in ("moves", "why-not")]
    if searched:
        say(
            f"searching for up to {SECONDS:g} s ({', '.join(dict.fromkeys(searched))}); "
            "--time-limit sets another limit, Ctrl-C keeps the answers so far"
        )


def _questions(request: Asked, ask: list[str] | None, sensitivity: bool) -> list[str]:
    """The questions to answer."""
    questions = parse_questions(ask or [])
    if sensitivity:
        questions.append("sensitivity")
    if request.start is not None and "moves" not in questions:
        questions.append("moves")
    return questions


def _found(request: Asked, read: Plan) -> Asked:
    """The request with what its names stand for."""
    from scenarios import catalog

    found = {
        "model": catalog.find_model, "cluster": catalog.find_cluster,
        "start": lambda path: readers.find_start(path, read.model, read.cluster),
    }  # fmt: skip
    named = {n: find(v) for n, find in found.items() if (v := getattr(request, n)) is not None}
    offers = tuple((catalog.find_cluster(name), price) for name, price in request.clusters)
    return request.model_copy(update={**named, "clusters": offers})


def _answers(work: Work, read: Plan, questions: list[str], asked: Asked, budget: Budget) -> Answers:
    """Answer the questions; after a second interruption, those answered so far."""
    from milp_planner.features.explain.answers import answer

    so_far: list[Answers] = []
    try:
        return work.run(lambda: answer(read, questions, asked, budget, so_far.append))
    except KeyboardInterrupt:
        if not so_far:
            raise
        return so_far[-1]


def _write(answers: Answers, output: Path | None, csv: Path | None) -> None:
    """Write the plan that replan found, and the points of the frontier."""
    if output is not None and answers.replanned is not None:
        from milp_planner.plans.plan_file import write_plan

        write_plan(answers.replanned, output)
    if csv is not None and answers.frontier is not None:
        from milp_planner.features.explain.frontier_draw import to_csv

        write_atomically(csv, to_csv(answers.frontier))


def _show(read: Plan, answers: Answers, everything: bool, json: bool) -> None:
    from formulations.instance.restrictions import restrictions
    from milp_planner.features.explain.answers import draw_answers
    from milp_planner.features.explain.call import answers_to_dict
    from milp_planner.features.plan.verdict import restricted
    from milp_planner.plans.warnings import hit_warnings, hot_warnings

    console.tell(
        json, lambda: answers_to_dict(read, answers),
        lambda: (
            *restricted(restrictions(read.instance)), draw_answers(answers, everything),
            *hot_warnings(read), *hit_warnings(read),
        ),
    )  # fmt: skip
