"""The tables of NeuroShard's tasks on docs/results.md, from the newest stored results.

``python benchmarks/neuroshard/page.py [--check]``
"""

import sys
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.neuroshard.greedy import MEASURES
from benchmarks.pages import command, stored

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "results.md"
RESULTS = HERE / "results"
FIT = RESULTS / "fit.json"
Row = dict[str, Any]


def blocks(document: dict[str, Any]) -> dict[str, str]:
    """Every block's text."""
    fit = stored(FIT)
    return {
        "tasks: benchmarks/neuroshard/page.py": tasks(document),
        "fit: benchmarks/neuroshard/page.py": errors(fit),
    }


def line(row: Row) -> str:
    """A task in one line, for a terminal."""
    cut, whole = row["cut"], row["whole"]
    return (
        f"task {row['task']}: {cut['status']}, gap {gap(cut):.2%}; whole tables: "
        f"{whole['status']}; ledger: {row['ledger']}"
    )


def gap(found: Row) -> float:
    """The most that any plan could save, as certified."""
    return float(1 - (found["certified"] or 0) / found["objective"])


def tasks(document: dict[str, Any]) -> str:
    """Who plans how many tasks, and how much dearer than ours."""
    rows = document["rows"]
    others: dict[str, list[int | None]] = {
        f"greedy by {name}": [row["greedy"][name] for row in rows] for name in MEASURES
    }
    others["DP heuristic (`dp`)"] = [row["dp"] for row in rows]
    ours = [row["cut"]["objective"] for row in rows]
    none = [row["task"] for row in rows if row["whole"]["status"] == "infeasible"]
    lines = [
        "| planner | tasks planned | cost over ours: mean | median | worst | cheaper than ours |",
        "|---|---|---|---|---|---|",
        *(_beside(name, found, ours) for name, found in others.items()),
        _beside("milp-planner, whole tables", [row["whole"]["objective"] for row in rows], ours),
        f"| milp-planner, columns may be cut | {len(rows)} | – | – | – | – |",
        "",
        f"Certified gap of the last line: median {median(map(gap, _of(rows, 'cut'))):.2%}, worst "
        f"{max(map(gap, _of(rows, 'cut'))):.2%}. Without cuts {len(none)} of {len(rows)} tasks "
        f"have no plan, which is proved (tasks {', '.join(map(str, none))}). With our ledger's "
        f"buffers at their batch, {_infeasible(rows)} of {len(rows)} do not fit, proved too. "
        f"Measured {document['date']} at {document['commit']} with {document['work']:g} units of "
        "counted work a task.",
    ]
    return "\n".join(lines)


def _of(rows: list[Row], name: str) -> list[Row]:
    return [row[name] for row in rows]


def _infeasible(rows: list[Row]) -> int:
    return sum(row["ledger"] == "infeasible" for row in rows)


def _beside(name: str, found: list[int | None], ours: list[int]) -> str:
    over = [each / own - 1 for each, own in zip(found, ours, strict=True) if each is not None]
    cheaper = sum(each < 0 for each in over)
    shown = " | ".join(f"{value:.1%}" for value in (mean(over), median(over), max(over)))
    return f"| {name} | {len(over)} | {shown} | {cheaper} |"


def errors(fit: dict[str, Any]) -> str:
    """What the fitted prices explain, on held-out fifths."""
    lines = [
        "| what was measured | R² | rank correlation | median error |",
        "|---|---|---|---|",
    ]
    for name, found in fit["errors"].items():
        lines.append(
            f"| {name} | {found['r2']:.3f} | {found['rank_correlation']:.3f} | "
            f"{found['median_error']:.1%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, RESULTS, blocks, pattern="20*.json"))
