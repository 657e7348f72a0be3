"""``report``: a plan as one HTML page."""

from __future__ import annotations

from pathlib import Path

from milp_planner.features.explain.answers import Answers
from milp_planner.features.report.info import report_of
from milp_planner.features.report.page import render
from milp_planner.files import write_atomically
from milp_planner.plans.placement import Plan


def report(plan: Plan, path: str | Path | None = None, answers: Answers | None = None) -> str:
    """A plan as one HTML page that holds everything it shows and fetches nothing.

    Parameters
    ----------
    plan : Plan
    path : optional
        Where the page is written, whole or not at all.
    answers : Answers, optional
        What :func:`milp_planner.explain` returned, drawn on the page too.

    Returns
    -------
    str
        The page.
    """
    page = render(report_of(plan, answers))
    if path is not None:
        write_atomically(path, page)
    return page
