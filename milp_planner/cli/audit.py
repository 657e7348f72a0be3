"""``milp-planner audit``: the plan you run today against the bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console, options, readers
from milp_planner.cli.console import Work
from milp_planner.cli.explain_asked import StepOption, StepsOption, write_steps
from milp_planner.cli.failures import finish
from milp_planner.cli.fit_memory import draw, measured
from milp_planner.cli.options import argument, asking, option
from milp_planner.errors import BadInput
from milp_planner.files import check_writable
from milp_planner.request import PlanRequest

if TYPE_CHECKING:
    from milp_planner.features.audit.call import Audit
    from milp_planner.features.fit_memory import Fit


@asking(
    PlanRequest, "model", "cluster", "formulation", "objective", "time_limit", "seed", "workers",
    "options", "profile", "reserve", "change", "goals",
)  # fmt: skip
def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    request: PlanRequest,
    *,
    plan: Annotated[
        Path,
        argument(
            "PLAN",
            "plan.json; a CSV with the columns table, mode, ratio, sharding_type, ranks (and "
            "optionally dist_type, column_width); TorchRec's ShardingPlan as export "
            "writes it; DLRMv4's variables or TorchEasyRec's config, whose planners are replayed "
            "under the workload that they state; dynamicemb's options in JSON, or a gin file of "
            "recsys-examples; or the statistics that TorchRec prints. The content decides, not "
            "the file's name.",
        ),
    ],
    torchrec: options.TorchRecOption = None,
    output: options.OutputOption = None,
    page: Annotated[
        Path | None, option("--page FILE", "Also write the report of the best plan found.")
    ] = None,
    peak: Annotated[
        list[str] | None,
        option(
            "--peak RANK=SIZE",
            "Peak of HBM measured on a rank under today's plan, such as 0=187.2GiB; it is shown "
            "next to the predicted peak. May be repeated.",
        ),
    ] = None,
    steps: StepsOption = None,
    step: StepOption = None,
    json: options.JsonOption = False,
) -> None:
    """Judge the plan you run today, under all that its file states.

    Does it fit, how far can it be from the optimum, and which ranks are to blame? -o writes the
    best plan found. --peak compares measured peaks of memory with predicted ones. Exit code 1 if
    today's plan does not fit.
    """
    import milp_planner
    from milp_planner.features.audit.call import audit_of
    from milp_planner.features.audit.facts import draw_audit
    from milp_planner.features.explain.answers import Answers
    from milp_planner.features.report.page import report
    from milp_planner.integrations.stated import read_stated
    from milp_planner.plans.plan_file import write_plan

    check_writable(output, kind="plan")
    check_writable(page, kind="page")
    peaks = [_peak(text) for text in peak or []]
    tables, place = readers.find(request)
    stated = read_stated(plan, tables, place, torchrec)
    work = Work("pricing", prepares=True)
    result = work.run(
        lambda: milp_planner.audit(
            stated.plan,
            stated.model,
            place,
            formulation=request.formulation,
            objective=request.objective,
            settings=work.settings(request.settings()),
            on_start=work.begin,
        )
    )
    info = audit_of(result)
    fit = _fit(result, peaks, str(plan))
    if output is not None:
        write_plan(result.plan, output)
    if page is not None:
        report(result.plan, page, Answers(moves=info.way))
    if steps is not None:
        write_steps(result.steps(), steps, step)
    assumed = result.compiled.cluster.assumed_profile
    found = {**info.to_dict(), "stated": stated.notes, "note": assumed or ""}
    if fit is not None:
        found["peaks"] = fit.to_dict()
    said = [f"note: {each}" for each in filter(None, [*stated.notes, assumed])]
    console.tell(
        json,
        lambda: found,
        lambda: [*said, draw_audit(info, f"audit of {plan}"), *([] if fit is None else draw(fit))],
        output,
        page,
    )
    finish("feasible" if info.fits else "infeasible", work.interrupted)


def _peak(text: str) -> tuple[int, int]:
    """Parse ``RANK=SIZE`` into rank and bytes."""
    rank, equals, size = text.partition("=")
    if not (equals and rank.isascii() and rank.isdecimal()):
        raise BadInput(f"--peak: found {text!r}; allowed: RANK=SIZE, such as 0=187.2GiB")
    return int(rank), measured(f"--peak {text}", size)


def _fit(audit: Audit, peaks: list[tuple[int, int]], name: str) -> Fit | None:
    """Measured and predicted peaks of today's plan; None if none was measured."""
    from milp_planner.features.fit_memory import Reading, fit_memory

    if not peaks:
        return None
    return fit_memory(Reading(audit.today, name, rank, size) for rank, size in peaks)
