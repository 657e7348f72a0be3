"""``milp-planner check`` and ``verify``: find mistakes in inputs, and false claims of plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli import console, options
from milp_planner.cli.options import argument, asking, option
from milp_planner.errors import printable
from milp_planner.request import Inputs


@asking(Inputs, "model", "cluster", "profile")
def check(
    request: Inputs,
    *,
    json: options.JsonOption = False,
) -> None:
    """List all mistakes in a model and a cluster, without solving.

    Prints one line per problem: file and line, field, what was found, what is allowed. Exit code 2
    if there are any. If there are no problems, warns of values that are probably not intended: a
    table that fits nowhere, a share in place of a percentage, a size in another unit. --json prints
    a list of objects with level (problem or warning), file, line, field and message.
    """
    from dataclasses import asdict

    import milp_planner
    from milp_planner.features.plan.call import assumed
    from milp_planner.features.plan.doubts import doubts

    model, cluster = request.model, request.cluster
    problems = milp_planner.check(model, cluster, profile=request.profile)
    warnings = () if problems else doubts(model, cluster, profile=request.profile)
    if json:
        levels = [*(("problem", p) for p in problems), *(("warning", w) for w in warnings)]
        console.emit_json([{"level": level, **asdict(found)} for level, found in levels])
    else:
        for problem in problems:
            print(printable(str(problem)))
        for warning in warnings:
            print(printable(f"warning: {warning}"))
        if not problems:
            count = f", {len(warnings)} warning{'s' * (len(warnings) > 1)}" if warnings else ""
            console.out().print(f"no problems in {model} and {cluster}{count}")
            assumption = assumed(model, cluster)
            if assumption is not None:
                console.out().print(assumption)
    if problems:
        raise typer.Exit(2)


FileArgument = Annotated[
    Path,
    argument("PLAN|OUTCOME", "plan.json, or an outcome written by solve (which needs --instance)."),
]
InstanceOption = Annotated[
    Path | None, option("--instance FILE", "The instance the outcome belongs to.")
]


def verify(
    file: FileArgument, instance: InstanceOption = None, json: options.JsonOption = False
) -> None:
    """Re-derive a plan's claims without a solver.

    Feasibility, objective and certified bound are recomputed from the instance alone. Exit code 1
    if a claim is refuted, 3 if a claim could not be checked: the certificate needs more steps than
    the checker allows, or another version wrote the plan and priced it differently.
    """
    from milp_planner import verify
    from milp_planner.features.verify import draw_claims, verification_to_dict

    result = verify(file, instance=instance)
    console.tell(
        json, lambda: verification_to_dict(result), lambda: [draw_claims(result, str(file))]
    )
    raise typer.Exit(result.exit_code)
