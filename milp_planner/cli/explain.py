"""``milp-planner explain``: why this plan, what more memory would buy, what a change takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milp_planner.cli import console, options
from milp_planner.cli.explain_asked import (
    BudgetsOption,
    ExtraOption,
    OverOption,
    StepOption,
    StepsOption,
    WithinOption,
)
from milp_planner.cli.failures import finish, say
from milp_planner.cli.options import argument, option, whole
from milp_planner.cli.work import Work
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_atomically

if TYPE_CHECKING:
    from milp_planner.features.explain.answers import Answers
    from milp_planner.plans.placement import Plan


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    context: typer.Context,
    plan: Annotated[Path, argument("PLAN", "plan.json, as plan writes it.")],
    ask: Annotated[
        list[str] | None,
        option(
            "--ask QUESTION",
            "why, staircase, frontier, smallest, replan, moves, sensitivity or why-not; may be "
            "repeated. Default: why and staircase, or why-not if no plan exists.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None, option("--table NAME", "why: only this table; may be repeated.")
    ] = None,
    alternatives: Annotated[
        int, option("--alternatives N", "why: alternatives to show for each table.", whole(1, 1000))
    ] = 3,
    extra: ExtraOption = "-10GB,-5GB,5GB,10GB,20GB",
    over: OverOption = "hbm",
    budgets: BudgetsOption = "12",
    within: WithinOption = "0.5%",
    csv: Annotated[
        Path | None, option("--csv FILE", "frontier: also write its points as CSV.")
    ] = None,
    target: Annotated[
        str | None,
        option("--target TIME", "smallest: objective to reach, such as 2.5ms; default: any plan."),
    ] = None,
    limits: Annotated[
        str, option("--limits LIST", "replan: how many tables may move, or sizes such as 10GB.")
    ] = "0,1,2,4,8",
    model: Annotated[
        str | None, option("--model MODEL", "replan: the model, if it has changed.")
    ] = None,
    cluster: Annotated[
        str | None, option("--cluster CLUSTER", "replan: the cluster, if it has changed.")
    ] = None,
    today: options.TodayOption = None,
    steps: StepsOption = None,
    step: StepOption = None,
    sensitivity: Annotated[
        bool,
        option(
            "--sensitivity", "Short for --ask sensitivity: what would change if prices were wrong."
        ),
    ] = False,
    spread: Annotated[
        float,
        option(
            "--spread SHARE",
            "sensitivity: assumed error of a price for which the profile states no spread.",
        ),
    ] = 0.2,
    draws: Annotated[
        int,
        option(
            "--draws N",
            "sensitivity: number of random draws of all prices at once.",
            whole(0, 100_000),
        ),
    ] = 20,
    formulation: options.FormulationOption = "auto",
    time_limit: options.TimeLimitOption = 60.0,
    seed: options.SeedOption = 0,
    workers: options.WorkersOption = None,
    output: options.OutputOption = None,
    everything: options.AllRowsOption = False,
    json: options.JsonOption = False,
) -> None:
    """Explain a plan.

    Answers why each table is where it is and what the alternatives cost, what more memory would
    buy, which smallest cluster suffices, what it takes to change the plan, and by how much prices
    may be wrong. Every figure comes from a solve or is marked as a bound. --today shows what the
    first moves from the plan you run would gain. -o writes the plan found by replan (at its largest
    limit). If why finds a better plan than PLAN, it is written next to PLAN.
    """
    from milp_planner.cli import explain_asked
    from milp_planner.features.explain.answers import Answers, Asked, answer
    from milp_planner.features.explain.budget import Budget
    from milp_planner.plans.plan_file import read_plan, write_plan
    from scenarios import catalog

    questions = explain_asked.parse_questions(ask or [])
    if sensitivity:
        questions.append("sensitivity")
    if today is not None and "moves" not in questions:
        questions.append("moves")
    explain_asked.refuse_strays(context, questions)
    _check_output(questions, output)
    check_writable(csv)
    settings = options.make_settings(
        time_limit, seed=seed, workers=workers, formulation=formulation
    )
    read = read_plan(plan)
    counted, by = explain_asked.parse_limits(limits)
    kinds = explain_asked.parse_over(over)
    asked = Asked(
        over=kinds,
        budgets=explain_asked.parse_budgets(budgets, kinds),
        enough=explain_asked.parse_share(within, "--within"),
        tables=tuple(table or ()),
        alternatives=alternatives,
        extras=explain_asked.parse_sizes(extra, "--extra"),
        target=None if target is None else explain_asked.parse_time(target),
        limits=counted,
        by=by,
        model=None if model is None else catalog.find_model(model),
        cluster=None if cluster is None else catalog.find_cluster(cluster),
        today=None if today is None else options.find_today(today, read.model),
        spread=spread,
        draws=draws,
    )
    work, so_far = Work("explaining"), list[Answers]()
    budget = Budget(work.settings(settings), formulation)
    try:
        answers = work.run(lambda: answer(read, questions, asked, budget, so_far.append))
    except KeyboardInterrupt:  # the second one: what is answered is not lost
        if not so_far:
            raise
        answers = so_far[-1]
    if output is not None and answers.replanned is not None:
        write_plan(answers.replanned, output)
    if csv is not None and answers.frontier is not None:
        from milp_planner.features.explain.frontier_draw import to_csv

        write_atomically(csv, to_csv(answers.frontier))
    if steps is not None:
        explain_asked.write_steps(answers.steps or (), steps, step)
    _show(read, answers, everything, json)
    if answers.better is not None:
        _keep(answers.better, plan.with_name(f"{plan.name.split('.')[0]}.better.json"))
    unfit = answers.replan is not None and answers.replanned is None
    none = unfit or read.outcome.status.value == "infeasible"
    finish("infeasible" if none else "feasible", work.interrupted)


def _keep(better: Plan, target: Path) -> None:
    """Write the better plan that explain found on the way, if there is one."""
    from milp_planner.plans.plan_file import write_plan

    write_plan(better, target)
    say(f"a better plan turned up; written: {target}")


def _show(read: Plan, answers: Answers, everything: bool, json: bool) -> None:
    from formulations.instance.restrictions import restrictions
    from milp_planner.features.explain.call import answers_to_dict
    from milp_planner.features.explain.draw import draw_answers
    from milp_planner.features.plan.verdict import restricted
    from milp_planner.plans.display import hit_warnings
    from milp_planner.plans.hot_ranks import hot_warnings

    console.tell(
        json, lambda: answers_to_dict(read, answers),
        lambda: (
            *restricted(restrictions(read.instance)), draw_answers(answers, everything),
            *hot_warnings(read), *hit_warnings(read),
        ),
    )  # fmt: skip


def _check_output(questions: list[str], output: Path | None) -> None:
    """Refuse -o if no question finds a plan to write."""
    if output is None:
        return
    if "replan" not in questions:
        raise BadInput("-o: only --ask replan finds a plan to write (answers themselves: --json)")
    check_writable(output)
