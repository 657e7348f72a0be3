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
from milp_planner.report.units import show_gap, show_seconds, show_time

ROOT = Path(__file__).resolve().parents[1]
BLOCK = "results: benchmarks/readme_table.py"
NAMES = {"dp": "DP heuristic", "greedy": "greedy heuristic", "auto": "milp-planner"}


def table() -> str:
    """The table in Markdown, with the date of its measurements."""
    document = stored(ROOT / "benchmarks" / "demo" / "results")
    lines = [
        "| cluster | planner | step time | proved bound | gap | time to plan |",
        "|---|---|---|---|---|---|",
        *(row(entry) for entry in document["entries"]),
        "",
        f"`{document['model']}`, measured {document['date']} on {document['machine']['cores']} "
        "cores ([benchmarks/demo](benchmarks/demo)).",
    ]
    return "\n".join(lines)


def row(entry: dict[str, Any]) -> str:
    """One formulation on one cluster; what is unknown is a dash."""
    verdict = entry["verdict"]
    cells = [
        entry["cluster"],
        NAMES[entry["formulation"]],
        show_time(verdict["objective"]),
        show_time(verdict["bound"]),
        show_gap(verdict["gap"]) + (" (optimal)" if verdict["status"] == "optimal" else ""),
        show_seconds(verdict["seconds"]),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare."""
    return update(ROOT / "README.md", {BLOCK: table()}, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
