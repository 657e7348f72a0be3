"""``milp-planner export``: a plan in the words of the trainer that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, OutputOption, argument, option
from milp_planner.files import check_writable, write_atomically

PlanArgument = Annotated[Path, argument("PLAN", "plan.json, as plan writes it.")]
ToOption = Annotated[
    str,
    option(
        "--to FORMAT",
        "torchrec (ShardingPlan as JSON), dynamicemb (table options, one set a fusion group), "
        "tzrec (TorchEasyRec config fragment), dlrmv4 (environment variables).",
    ),
]


def run(
    plan: PlanArgument, to: ToOption, output: OutputOption = None, json: JsonOption = False
) -> None:
    """Write a plan for TorchRec, dynamicemb, TorchEasyRec or DLRMv4.

    The text goes to stdout, or to a file with -o; what the format cannot say goes to stderr.
    """
    from milp_planner.integrations import exports
    from milp_planner.plans.plan_file import read_plan

    chosen = exports.get(to)
    check_writable(output)
    found = read_plan(plan)
    text, notes = exports.write(found, to), chosen.notes(found)
    if output is not None:
        write_atomically(output, text)
    if json:
        console.emit_json({"format": to, "text": text, "notes": notes})
        return
    for note in notes:
        console.err().print(f"note: {note}")
    if output is None:
        typer.echo(text, nl=False)
    else:
        console.out().print(f"written: {output}")
