"""Write the README's table of measured results from stored benchmark results.

``python benchmarks/readme_table.py`` replaces what stands between the two markers in README.md;
with ``--check`` the exit code tells whether it is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.pages import stored, update
from milp_planner.drawing.units import show_gap, show_seconds, show_time

ROOT = Path(__file__).resolve().parents[1]
BLOCK = "results: benchmarks/readme_table.py"
NAMES = {"dp": "DP heuristic", "greedy": "greedy heuristic", "auto": "milp-planner"}


def table() -> str:
    """The table in Markdown, with the date of its measurements."""
    document = stored(ROOT / "benchmarks" / "demo" / "results")
    entries = document["entries"]
    lines = [
        "| cluster | planner | step time | best bound | gap | time to plan |",
        "|---|---|---|---|---|---|",
        *(row(entry, _best_bound(entries, entry["cluster"])) for entry in entries),
        "",
        f"`{document['model']}`, measured {document['date']} on {document['machine']['cores']} "
        f"cores, at most {document['time_limit']:g} s each ([benchmarks/demo](benchmarks/demo)). "
        "Best bound: the highest that any of the three proved on the cluster.",
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
    return update(ROOT / "README.md", {BLOCK: table()}, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
