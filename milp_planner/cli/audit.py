"""``milp-planner audit``: the plan you run today against the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli.options import (
    ClusterArgument,
    FormulationOption,
    JsonOption,
    ModelArgument,
    ObjectiveName,
    ObjectiveOption,
    SeedOption,
    SettingOption,
    TimeLimitOption,
    WorkersOption,
)

PlanArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN",
        help="plan.json, or a CSV with the columns table, mode, ratio, sharding_type, ranks "
        "(and, if wanted, dist_type, column_width).",
        show_default=False,
    ),
]


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    plan: PlanArgument,
    model: ModelArgument,
    cluster: ClusterArgument,
    formulation: FormulationOption = "auto",
    objective: ObjectiveOption = ObjectiveName.STEP_TIME,
    time_limit: TimeLimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    settings: SettingOption = None,
    json: JsonOption = False,
) -> None:
    """Judge the plan you run today.

    Does it fit, how far is it from the proved bound, and which ranks are to blame? Exit code 1
    when it does not fit.
    """
    from milp_planner import api
    from milp_planner.cli import console
    from milp_planner.cli.limits import make_settings
    from milp_planner.cli.sources import find
    from milp_planner.cli.work import Work
    from milp_planner.report.audit import audit_of
    from milp_planner.report.terminal.audit import draw_audit

    limits = make_settings(
        time_limit, seed=seed, workers=workers, options=settings, formulation=formulation
    )
    inputs = find(model, cluster)
    work = Work("pricing", prepares=True)
    result = work.run(
        lambda: api.audit(
            plan,
            *inputs,
            formulation=formulation,
            objective=objective.value,
            settings=work.settings(limits),
            on_start=work.begin,
        )
    )
    info = audit_of(result)
    if json:
        console.emit_json(info.to_dict())
    else:
        console.out().print(draw_audit(info, f"audit of {plan}"))
    if work.interrupted:
        raise typer.Exit(130)
    if not info.fits:
        raise typer.Exit(1)
