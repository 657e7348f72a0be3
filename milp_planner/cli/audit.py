"""``milp-planner audit``: the plan you run today against the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from milp_planner.cli import console, options
from milp_planner.cli.explain_asked import StepOption, StepsOption, write_steps
from milp_planner.cli.failures import finish
from milp_planner.cli.options import argument, option
from milp_planner.cli.work import Work
from milp_planner.files import check_writable


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    plan: Annotated[
        Path,
        argument(
            "PLAN",
            "plan.json; a CSV with the columns table, mode, ratio, sharding_type, ranks (and "
            "optionally dist_type, column_width); TorchRec's ShardingPlan as export writes it; or "
            "the statistics that TorchRec prints.",
        ),
    ],
    model: options.ModelArgument,
    cluster: options.ClusterArgument,
    formulation: options.FormulationOption = "auto",
    objective: options.ObjectiveOption = options.ObjectiveName.STEP_TIME,
    time_limit: options.TimeLimitOption = 60.0,
    seed: options.SeedOption = 0,
    workers: options.WorkersOption = None,
    settings: options.SettingOption = None,
    profile: options.ProfileOption = None,
    reserve: options.ReserveOption = None,
    goals: options.GoalsOption = None,
    output: options.OutputOption = None,
    page: Annotated[
        Path | None, option("--page FILE", "Also write the report of the best plan found.")
    ] = None,
    steps: StepsOption = None,
    step: StepOption = None,
    json: options.JsonOption = False,
) -> None:
    """Judge the plan you run today.

    Does it fit, how far from the best can it be at most, and which ranks are to blame? -o writes
    the best plan found. Exit code 1 if today's plan does not fit.
    """
    import milp_planner
    from milp_planner.features.audit.facts import audit_of, draw_audit
    from milp_planner.features.explain.answers import Answers
    from milp_planner.features.report.page import report
    from milp_planner.plans.plan_file import write_plan

    check_writable(output, page)
    limits = options.make_settings(
        time_limit, seed=seed, workers=workers, options=settings, formulation=formulation,
        goals=goals, objective=objective.value,
    )  # fmt: skip
    inputs = options.find(model, cluster, profile, reserve)
    today = options.find_today(plan, inputs[0])
    work = Work("pricing", prepares=True)
    result = work.run(
        lambda: milp_planner.audit(
            today,
            *inputs,
            formulation=formulation,
            objective=objective.value,
            settings=work.settings(limits),
            on_start=work.begin,
        )
    )
    info = audit_of(result)
    if output is not None:
        write_plan(result.plan, output)
    if page is not None:
        report(result.plan, page, Answers(moves=info.way))
    if steps is not None:
        write_steps(result.steps(), steps, step)
    console.tell(json, info.to_dict, lambda: [draw_audit(info, f"audit of {plan}")], output, page)
    finish("feasible" if info.fits else "infeasible", work.interrupted)
