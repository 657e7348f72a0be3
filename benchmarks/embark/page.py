"""The tables of docs/against-planners.md, from the newest stored result, which has every case.

``python benchmarks/embark/page.py [--check]``
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.embark import lists
from benchmarks.pages import command
from milp_planner.drawing.units import show_gap

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "against-planners.md"
RESULTS = HERE / "results"
OTHERS = "HugeCTR", "CP-SAT", "HiGHS", "Rebalancer"
TOO_LARGE = "too large for this machine's memory"
Row = dict[str, Any]


def blocks(document: dict[str, Any]) -> dict[str, str]:
    """Every block's text."""
    rows = sorted(document["rows"], key=lambda r: (r["case"].rpartition("_")[0], r["ranks"]))
    published = [row for row in rows if row["case"] in lists.PUBLISHED]
    return {
        "overview: benchmarks/embark/page.py": overview(document, rows),
        "published: benchmarks/embark/page.py": _table(published, OTHERS),
    }


def line(row: Row) -> str:
    """A case in one line, for a terminal."""
    ours = row["planners"]["auto"]
    found = [f"{name} {_beside(row, name)}" for name in OTHERS]
    return f"{row['case']}: {ours['status']} {ours['objective']} {_gap(ours)}; {', '.join(found)}"


def overview(document: dict[str, Any], rows: list[Row]) -> str:
    """Wins and losses, counted and by name."""
    fit = [row for row in rows if row["planners"]["auto"]["status"] != "infeasible"]
    limits = sorted({row["time_limit"] for row in rows})
    busy = statistics.median(row["busy_cores"] for row in rows)
    lines = [
        f"Measured {document['date']} on {document['cores']} cores, "
        f"{' or '.join(f'{limit:g} s' for limit in limits)} for every planner; a case kept "
        f"{busy:g} cores busy in the median.",
        f"{len(rows)} cases, of which {len(rows) - len(fit)} cannot fit (proved).",
        "",
        "| planner | cases | dearer than `auto` | the same | cheaper | no plan | median excess |",
        "|---|---|---|---|---|---|---|",
        *(_counted(fit, name) for name in OTHERS),
        "",
    ]
    gaps = sorted(_open(row["planners"]["auto"]) for row in fit)
    closed = sum(gap == 0 for gap in gaps)
    wide = [f"{row['case']} {show_gap(gap)}" for row in fit
            if (gap := _open(row["planners"]["auto"])) > 0.01]  # fmt: skip
    return "\n".join([
        *lines,
        f"- Plans of others that are cheaper than `auto`'s: {_listed(_cheaper(fit))}.",
        f"- Cases where a solver's bound is above `auto`'s: {_listed(_behind(fit))}.",
        f"- Certified gap of `auto`: median {show_gap(statistics.median(gaps))}, "
        f"worst {show_gap(gaps[-1])}; {closed} of {len(gaps)} closed.",
        f"- More than 1% open: {_listed(wide)}.",
    ])  # fmt: skip


def _listed(names: list[str]) -> str:
    return "; ".join(names) or "none"


def _counted(fit: list[Row], name: str) -> str:
    tried = [row["planners"][name] for row in fit if row["planners"].get(name)]
    tried = [found for found in tried if found.get("note") != TOO_LARGE]
    excess = [x for row in fit if (x := _excess(row, name)) is not None]
    middle = show_gap(statistics.median(excess)) if excess else "–"
    counts = [sum(x > 0 for x in excess), excess.count(0), sum(x < 0 for x in excess)]
    shown = [name, len(tried), *counts, len(tried) - len(excess), middle]
    return f"| {' | '.join(map(str, shown))} |"


def _cheaper(fit: list[Row]) -> list[str]:
    """Losses: case, whose plan, by how much."""
    return [
        f"{row['case']} ({name}, {show_gap(-excess)})"
        for row in fit
        for name in OTHERS
        if (excess := _excess(row, name)) is not None and excess < 0
    ]


def _behind(fit: list[Row]) -> list[str]:
    """Cases where another solver's bound is the higher one."""
    return [
        f"{row['case']} ({name}, {show_gap(bound / (ours or 1) - 1)})"
        for row in fit
        for name in ("CP-SAT", "HiGHS")
        if (bound := (row["planners"].get(name) or {}).get("bound"))
        and bound > (ours := row["planners"]["auto"]["bound"] or 0)
    ]


def _table(rows: list[Row], others: tuple[str, ...]) -> str:
    lines = [
        "| case | tables × ranks | trivial bound | `auto` | certified gap | seconds | "
        + " | ".join(others) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(others),
    ]  # fmt: skip
    for row in rows:
        ours = row["planners"]["auto"]
        shown = [row["case"], f"{row['tables']} × {row['ranks']}"]
        if ours["status"] == "infeasible":
            shown += ["–", "cannot fit", "–", f"{ours['seconds']:.1f}", *("–" for _ in others)]
        else:
            plan = f"{ours['objective']:,}" if ours["objective"] else "no plan"
            shown += [f"{row['trivial']:,}", plan, _gap(ours), f"{ours['seconds']:.1f}"]
            shown += [_beside(row, name) for name in others]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _excess(row: Row, name: str) -> float | None:
    """By how much another's plan is dearer than ours, as a share of ours."""
    found, ours = row["planners"].get(name) or {}, row["planners"]["auto"]
    if not found.get("objective") or not ours["objective"]:
        return None
    return float(found["objective"] / ours["objective"] - 1)


def _beside(row: Row, name: str) -> str:
    found, excess = row["planners"].get(name), _excess(row, name)
    if not found:
        return "–"
    if excess is None:
        return "not run" if found.get("note") == TOO_LARGE else "no plan"
    sign = "+" if excess > 0 else "−"
    proved = ", proved" if found.get("status") == "optimal" else ""
    return (f"{sign}{show_gap(abs(excess))}" if excess else "the same") + proved


def _open(found: Row) -> float:
    """The certified gap of a plan; 1 without one."""
    if not found["objective"] or found["certified"] is None:
        return 1.0
    return float(1 - found["certified"] / found["objective"])


def _gap(found: Row) -> str:
    return show_gap(_open(found)) if found["objective"] else "–"


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, RESULTS, blocks))
