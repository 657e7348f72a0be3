"""Write README's table of what closes and what stays open, and the demo's table, from stored
results.

``python benchmarks/readme_table.py`` replaces the blocks in README.md and docs/dp-vs-exact.md; with
``--check`` the exit code tells whether they are up to date.
"""

from __future__ import annotations

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

#: Sizes of the instances in TorchRec's estimates that are one row, with why their gaps stay open.
SIZES: dict[str, tuple[tuple[tuple[int, int], ...], str]] = {
    "20 tables × 8 ranks": (((20, 8),), ""),
    "50 tables × 8 or 16": (((50, 8), (50, 16)), "three or four shards decide what fits on a rank"),
    "100 tables × 16": (((100, 16),), "the same; worst where HBM and DDR are both tight"),
    "300 tables × 32 or 64": (((300, 32), (300, 64)), "the same; plans differ from seed to seed"),
    "1,000 × 128 and 1,935 × 96": (
        ((1000, 128), (1935, 96)),
        "the exact model is too large for this time",
    ),
}


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
    unseen = stored(BENCHMARKS / "torchrec-gap" / "results", "unseen-2*.json")
    lists = stored(BENCHMARKS / "embark" / "results")
    ours = [row for row in unseen["rows"] if row["formulation"] == "auto"]
    lines = [
        "| instances | plans | proved best | gap: median | worst | what keeps it open |",
        "|---|---|---|---|---|---|",
    ]
    left = shipped["rows"]
    for name, (tables, ranks, why) in SHIPPED.items():
        rows = [row for row in left if row["tables"] <= tables and row["ranks"] <= ranks]
        left = [row for row in left if row not in rows]
        lines.append(_line(f"shipped models, {name}", [row["gap"] for row in rows], why))
    for name, (sizes, why) in SIZES.items():
        gaps = [row["gap"] for row in ours if (row["tables"], row["ranks"]) in sizes]
        lines.append(_line(f"TorchRec's estimates, {name}", gaps, why))
    why = "mostly: bounds say little about how large parts fit together"
    lines.append(_line("published table lists, 8 to 128 GPUs", _certified(lists), why))
    return "\n".join([*lines, "", (
        f"Measured {shipped['date']} (shipped models, 60 s each, [table](docs/exact.md)), "
        f"{unseen['date']} (60 or 120 s each, [table](docs/against-torchrec.md)) and "
        f"{lists['date']} (last row: HugeCTR's cost, certified gap, 5 s each, "
        "[table](docs/against-planners.md)), 2 cores. Gap: the most that any plan could save."
    )])  # fmt: skip


def _line(name: str, gaps: Gaps, why: str) -> str:
    """One row: how many plans, how many are proved best, how far the rest may be."""
    closed = sum(gap == 0 for gap in gaps)
    middle, worst = show_gap(statistics.median(gaps)), show_gap(max(gaps))
    return f"| {name} | {len(gaps)} | {closed} | {middle} | {worst} | {why} |"


def _certified(document: dict[str, Any]) -> Gaps:
    """The certified gaps of the cases that can fit; 1 without a plan or a bound."""
    found = [row["planners"]["auto"] for row in document["rows"]]
    return [
        1 - auto["certified"] / auto["objective"] if auto["objective"] and auto["certified"] else 1
        for auto in found
        if auto["status"] != "infeasible"
    ]


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
    return update(ROOT / "docs" / "dp-vs-exact.md", {DEMO: demo_table()}, check=check) or stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
