"""``milp-planner compare``: formulations side by side on the same Instance."""

from __future__ import annotations

from typing import Annotated

from milp_planner.cli import console, options, readers
from milp_planner.cli.console import Work
from milp_planner.cli.failures import finish
from milp_planner.cli.options import asking, option
from milp_planner.files import check_writable, write_json
from milp_planner.request import PlanRequest


@asking(
    PlanRequest, "model", "cluster", "time_limit", "gap", "seed", "workers", "options", "change",
    "cache",
    time_limit=10.0,
)  # fmt: skip
def run(
    request: PlanRequest,
    *,
    formulations: Annotated[
        str,
        option("--formulations -f NAMES", "Formulations, comma-separated; default: all."),
    ] = "all",
    objective: Annotated[
        list[str] | None,
        option(
            "--objective NAME",
            "Objective; may be repeated; default: total, busiest_rank and step_time.",
        ),
    ] = None,
    output: options.OutputOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compare formulations on the same instance, under several objectives.

    Each row is one formulation minimising one objective: the value of its plan under every
    objective, whether the solver-free check accepts it, and its gaps to the best bounds that any
    row certified and proved. A plan that ignores fusion groups is shown both as planned and as the
    runtime would run it, and the DP runs a second time with fusion groups taken into account. A
    formulation starts from its own plans for the other objectives. A solve stops early once its
    plan meets a bound that another row proved; its row says so. The DP is the published one as
    merged, with 100 × 25 bins for each device and no cap. Its first version has 100 × 50 bins, at
    most 1,024 on an axis: --set dp.variant=first (prefix a setting with its formulation). The bins
    are listed below the table. `milp-planner report` draws the file that -o writes.
    """
    from scenarios.compare.call import DEFAULT, OBJECTIVES, compare

    names = DEFAULT if formulations == "all" else readers.parse_formulations(formulations)
    check_writable(output, kind="comparison")
    inputs = readers.find(request)
    work = Work("pricing", prepares=True)
    info = work.run(
        lambda: compare(
            *inputs,
            formulations=names,
            objectives=list(dict.fromkeys(objective or OBJECTIVES)),
            settings=work.settings(request.settings()),
            on_start=work.begin,
            cache=readers.find_cache(request.cache, False),
        )
    )
    if output is not None:
        write_json(output, info.to_dict())
    console.tell(json, info.to_dict, lambda: [info.drawing()], output)
    finish("feasible", work.interrupted)
