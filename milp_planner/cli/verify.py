"""``milp-planner verify``: what a plan or outcome claims, re-derived with no solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli.options import JsonOption

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN|OUTCOME",
        help="plan.json, or an outcome written by solve (then with --instance).",
        show_default=False,
    ),
]
InstanceOption = Annotated[
    Path | None,
    typer.Option(
        "--instance",
        metavar="FILE",
        help="The instance the outcome belongs to.",
        show_default=False,
    ),
]


def run(file: FileArgument, instance: InstanceOption = None, json: JsonOption = False) -> None:
    """Re-derive what a plan claims, with no solver.

    Feasibility, objective and certified bound are recomputed from the instance alone. Exit code 1
    when any claim is refuted.
    """
    from milp_planner import verify
    from milp_planner.cli import console
    from milp_planner.features.verify.facts import verification_to_dict
    from milp_planner.features.verify.terminal import draw_claims

    result = verify(file, instance=instance)
    if json:
        console.emit_json(verification_to_dict(result))
    else:
        console.out().print(draw_claims(result, str(file)))
    if not result.ok:
        raise typer.Exit(1)
