"""``milp-planner check``: every problem of a model and a cluster at once."""

from __future__ import annotations

import typer

from milp_planner.cli import console
from milp_planner.cli.options import ClusterArgument, JsonOption, ModelArgument, ProfileOption
from milp_planner.printable import printable


def run(
    model: ModelArgument,
    cluster: ClusterArgument,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """List everything that is wrong with a model and a cluster, without solving.

    One line a problem: file and line, field, what was found, what is allowed. Exit code 2 when
    there is any. Values that cannot be read (1e6, a field written twice) are reported before fields
    are checked. With --json a list of objects with file, line, field and message, empty when all
    is right.
    """
    from dataclasses import asdict

    import milp_planner

    problems = milp_planner.check(model, cluster, profile=profile)
    if json:
        console.emit_json([asdict(problem) for problem in problems])
    elif problems:
        for problem in problems:
            print(printable(str(problem)))
    else:
        console.out().print(f"no problems in {model} and {cluster}")
    if problems:
        raise typer.Exit(2)
