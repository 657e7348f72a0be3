"""``milp-planner plan``: tables and a cluster in, a proved plan out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milp_planner.cli.options import (
    AllRowsOption,
    ClusterArgument,
    FormulationOption,
    JsonOption,
    ModelArgument,
    ObjectiveName,
    ObjectiveOption,
    ProfileOption,
    SeedOption,
    SettingOption,
    TimeLimitOption,
    WorkersOption,
    WorkLimitOption,
)

if TYPE_CHECKING:
    from milp_planner.placement import Plan

PLAN_FILE = "plan.json"
PlanOutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=f"Where the plan goes; default: {PLAN_FILE}, or nowhere with --json.",
        show_default=False,
    ),
]


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    model: ModelArgument,
    cluster: ClusterArgument,
    formulation: FormulationOption = "auto",
    objective: ObjectiveOption = ObjectiveName.STEP_TIME,
    profile: ProfileOption = None,
    time_limit: TimeLimitOption = 60.0,
    work_limit: WorkLimitOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    settings: SettingOption = None,
    output: PlanOutputOption = None,
    everything: AllRowsOption = False,
    json: JsonOption = False,
) -> None:
    """Find the best placement of every table, and prove it.

    Prints the verdict, every table and every rank, and writes plan.json, which verify, explain,
    export and report read. Where no plan exists, says why and what would help (exit code 1).
    """
    from milp_planner import api
    from milp_planner.api.plan_files import write_plan
    from milp_planner.cli import console
    from milp_planner.cli.exits import finish
    from milp_planner.cli.limits import make_settings
    from milp_planner.cli.sources import find
    from milp_planner.cli.work import Work
    from milp_planner.files import check_writable
    from milp_planner.plan_file import plan_to_dict

    limits = make_settings(
        time_limit, work_limit=work_limit, seed=seed, workers=workers, options=settings,
        formulation=formulation,
    )  # fmt: skip
    target = output or (None if json else Path(PLAN_FILE))
    if target is not None:
        check_writable(target)
    inputs = find(model, cluster, profile)
    work = Work("pricing", prepares=True)
    plan = work.run(
        lambda: api.plan(
            *inputs,
            formulation=formulation,
            objective=objective.value,
            settings=work.settings(limits),
            on_start=work.begin,
        )
    )
    if target is not None:
        write_plan(plan, target)
    if json:
        console.emit_json(plan_to_dict(plan))
    else:
        show(plan, everything)
        console.out().print(f"written: {target}")
    finish(plan.outcome.status.value, work.interrupted)


def show(plan: Plan, everything: bool = False) -> None:
    """Print the verdict, then tables and ranks, or why there are none."""
    from milp_planner.cli import console, solve
    from milp_planner.hit_sources import hit_warnings

    solve.show(plan.instance, plan.outcome, everything)
    for warning in hit_warnings(plan):
        console.out().print(warning, markup=False)
