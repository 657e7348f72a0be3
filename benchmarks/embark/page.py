"""The table of HugeCTR's published instances on docs/results.md, from the newest stored result.

``python benchmarks/embark/page.py [--check]``
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command
from milp_planner.drawing.units import show_gap

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "results.md"
RESULTS = HERE / "results"
OTHERS = "HugeCTR", "CP-SAT", "HiGHS", "Rebalancer"
Row = dict[str, Any]


def blocks(document: dict[str, Any]) -> dict[str, str]:
    """The block's text."""
    rows = sorted(document["rows"], key=lambda r: r["case"])
    return {"published: benchmarks/embark/page.py": _table(rows, OTHERS)}


def line(row: Row) -> str:
    """A case in one line, for a terminal."""
    ours = row["planners"]["auto"]
    found = [f"{name} {_beside(row, name)}" for name in OTHERS]
    return f"{row['case']}: {ours['status']} {ours['objective']} {_gap(ours)}; {', '.join(found)}"


def _table(rows: list[Row], others: tuple[str, ...]) -> str:
    lines = [
        "| case | tables × ranks | `auto` | certified gap | "
        + " | ".join(others) + " |",
        "|---|---|---|---|" + "---|" * len(others),
    ]  # fmt: skip
    for row in rows:
        ours = row["planners"]["auto"]
        shown = [row["case"], f"{row['tables']} × {row['ranks']}"]
        plan = f"{ours['objective']:,}" if ours["objective"] else "no plan"
        shown += [plan, _gap(ours), *(_beside(row, name) for name in others)]
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
        return "no plan"
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
