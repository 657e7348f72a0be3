"""Write the README's table of measured results from stored benchmark results.

``python benchmarks/readme_table.py`` replaces what stands between the two markers in README.md;
with ``--check`` the exit code tells whether it is up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from milp_planner.report.units import show_gap, show_seconds, show_time

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results: benchmarks/readme_table.py -->", "<!-- end of results -->"
NAMES = {"dp": "DP heuristic", "greedy": "greedy heuristic", "auto": "milp-planner"}


def table() -> str:
    """The table in Markdown, with the date of its measurements."""
    document = newest("demo")
    lines = [
        "| cluster | planner | step time | proved bound | gap | time to plan |",
        "|---|---|---|---|---|---|",
        *(row(entry) for entry in document["entries"]),
        "",
        f"`{document['model']}`, measured {document['date']} on {document['machine']['cores']} "
        "cores ([benchmarks/demo](benchmarks/demo)).",
    ]
    return "\n".join(lines)


def newest(benchmark: str) -> dict[str, Any]:
    """The newest stored result of a benchmark."""
    path = max((ROOT / "benchmarks" / benchmark / "results").glob("*.json"))
    document: dict[str, Any] = json.loads(path.read_text())
    return document


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


def replaced(readme: str) -> str:
    """The README with a fresh table between its markers."""
    head, rest = readme.split(BEGIN)
    tail = rest.split(END)[1]
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare."""
    path = ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = replaced(old)
    if "--check" in arguments:
        return int(old != new)
    path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
