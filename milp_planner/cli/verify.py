"""``milp-planner verify``: what a plan or outcome claims, re-derived with no solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, argument, option

FileArgument = Annotated[
    Path,
    argument("PLAN|OUTCOME", "plan.json, or an outcome written by solve (then with --instance)."),
]
InstanceOption = Annotated[
    Path | None, option("--instance FILE", "The instance the outcome belongs to.")
]


def run(file: FileArgument, instance: InstanceOption = None, json: JsonOption = False) -> None:
    """Re-derive what a plan claims, with no solver.

    Feasibility, objective and certified bound are recomputed from the instance alone. Exit code 1
    when any claim is refuted.
    """
    from milp_planner import verify
    from milp_planner.features.verify import draw_claims, verification_to_dict

    result = verify(file, instance=instance)
    if json:
        console.emit_json(verification_to_dict(result))
    else:
        console.out().print(draw_claims(result, str(file)))
    if not result.ok:
        raise typer.Exit(1)
