"""Write README's table of what closes and what stays open, and the demo's table, from stored
results.

``python benchmarks/readme_table.py`` replaces the blocks in README.md and docs/results.md; with
``--check`` the exit code tells whether they are up to date.
"""

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.pages import stored, update
from milp_planner.drawing.units import show_gap, show_seconds, show_time

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
OPEN, DEMO = "results: benchmarks/readme_table.py", "demo: benchmarks/readme_table.py"
NAMES = {"dp": "DP heuristic", "greedy": "greedy heuristic", "auto": "milp-planner"}
Gaps = list[float]

#: Shipped models: most tables and ranks of a row, with why gaps stay open.
SHIPPED: dict[str, tuple[int, int, str]] = {
    "up to 110 tables and 32 ranks": (
        110, 32, "phases that cannot all be even at once, full memory"
    ),
    "larger": (10**9, 10**9, "the same; options and shards are too many for the exact model"),
}  # fmt: skip


def open_table() -> str:
    """What closes and what stays open, with the dates of the measurements."""
    shipped = stored(BENCHMARKS / "catalogue" / "results", "2*.json")
    lines = [
        "| instances | plans | proved best | gap: median | worst | what keeps it open |",
        "|---|---|---|---|---|---|",
    ]
    left = shipped["rows"]
    for name, (tables, ranks, why) in SHIPPED.items():
        rows = [row for row in left if row["tables"] <= tables and row["ranks"] <= ranks]
        left = [row for row in left if row not in rows]
        lines.append(_line(f"shipped models, {name}", [row["gap"] for row in rows], why))
    return "\n".join([*lines, "", (
        f"Measured {shipped['date']}, 60 s each on 2 cores. Gap: the most that any plan could "
        "save. [Model by model, and beside other planners](docs/results.md)."
    )])  # fmt: skip


def _line(name: str, gaps: Gaps, why: str) -> str:
    """One row: how many plans, how many are proved best, how far the rest may be."""
    closed = sum(gap == 0 for gap in gaps)
    middle, worst = f"{statistics.median(gaps):.2%}", f"{max(gaps):.2%}"
    return f"| {name} | {len(gaps)} | {closed} | {middle} | {worst} | {why} |"


def demo_table() -> str:
    """The demo's plans, with the date of its measurements."""
    document = stored(BENCHMARKS / "demo" / "results")
    entries = document["entries"]
    lines = [
        "| cluster | planner | step time | best bound | gap | time to plan |",
        "|---|---|---|---|---|---|",
        *(row(entry, _best_bound(entries, entry["cluster"])) for entry in entries),
        "",
        f"`{document['model']}`, measured {document['date']} on {document['machine']['cores']} "
        f"cores, at most {document['time_limit']:g} s each "
        "([benchmarks/demo](../benchmarks/demo)). Best bound: the highest that any of "
        "the three proved on the cluster.",
    ]
    return "\n".join(lines)


def _best_bound(entries: list[dict[str, Any]], cluster: str) -> int:
    """The highest bound proved on a cluster."""
    return max(e["verdict"]["bound"] for e in entries if e["cluster"] == cluster)


def row(entry: dict[str, Any], bound: int) -> str:
    """One formulation on one cluster, its gap to that bound."""
    verdict, reached, gap = entry["verdict"], "no plan found", ""
    if verdict["objective"] is not None:
        reached = show_time(verdict["objective"])
        gap = show_gap(1 - bound / verdict["objective"])
        gap += " (optimal)" if verdict["status"] == "optimal" else ""
    cells = [
        entry["cluster"], NAMES[entry["formulation"]], reached, show_time(bound), gap,
        show_seconds(verdict["seconds"]),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare."""
    check = "--check" in arguments
    stale = update(ROOT / "README.md", {OPEN: open_table()}, check=check)
    return update(ROOT / "docs" / "results.md", {DEMO: demo_table()}, check=check) or stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
