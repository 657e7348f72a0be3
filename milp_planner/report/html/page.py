"""From a ReportInfo to one HTML file that needs nothing else."""

from __future__ import annotations

from milp_planner.report.html.explained import explained
from milp_planner.report.html.sections import (
    memory_section,
    modes_section,
    strip,
    tables_section,
    time_section,
    trace_section,
)
from milp_planner.report.html.shell import fill
from milp_planner.report.html.shortage import shortage_section
from milp_planner.report.info import ReportInfo


def render(info: ReportInfo) -> str:
    """The page as text: styles, script and drawings inside, nothing fetched from anywhere.

    Parameters
    ----------
    info : ReportInfo

    Returns
    -------
    str
    """
    unit = info.verdict.time_unit
    sections = [
        shortage_section(info.shortage or info.answers.why_not, unit),
        memory_section(info),
        time_section(info),
        modes_section(info),
        *explained(info.answers),
        trace_section(info),
        tables_section(info),
    ]
    return fill(
        title=f"{info.model} on {info.cluster}",
        subtitle=f"{_count(info)} on {_ranks(info.num_ranks)}, prices of profile {info.profile}",
        strip=strip(info.verdict),
        sections=sections,
        footer=f"Written by milp-planner. Instance {info.fingerprint[:16]}. milp-planner verify "
        "re-derives feasibility, objective and certified bound without a solver.",
    )


def _count(info: ReportInfo) -> str:
    return "no placement" if info.tables is None else f"{len(info.tables.rows):,} tables"


def _ranks(count: int) -> str:
    return f"{count} rank{'' if count == 1 else 's'}"
