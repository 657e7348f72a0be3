"""The exit code an answer deserves; failures are in :mod:`milp_planner.cli.failures`."""

from __future__ import annotations

import typer

from milp_planner.cli.failures import FALLS_SHORT, INTERRUPTED, NO_PLAN, OK


def finish(status: str, interrupted: bool = False) -> None:
    """Leave the command with the code of an Outcome's status (returning means 0).

    Parameters
    ----------
    status
        ``optimal``, ``feasible``, ``infeasible`` or ``unknown``.
    interrupted
        Whether the user stopped the search: 130 whatever was found.
    """
    code = {"infeasible": FALLS_SHORT, "unknown": NO_PLAN}.get(status, OK)
    code = INTERRUPTED if interrupted else code
    if code != OK:
        raise typer.Exit(code)
