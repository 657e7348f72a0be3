"""The tables and the figure of docs/trust/memory.md from the newest stored result.

python benchmarks/memory/table.py [RESULT] [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.memory.cases import STATES, STEP, Case  # noqa: E402
from benchmarks.memory.figure import draw  # noqa: E402
from benchmarks.pages import command  # noqa: E402

PAGE = ROOT / "docs" / "trust" / "memory.md"
BELOW = -2.0
"""Percent by which the ledger may be below what is measured."""


def error(case: dict[str, Any], moment: str) -> float:
    """Predicted bytes over measured ones at a moment, less one, in percent."""
    measured = sum(case["measured"][moment].values())
    return 100 * (sum(case["predicted"][moment].values()) - measured) / measured


def fullest(case: dict[str, Any]) -> float:
    """The same for each side's own fullest moment, which is what a capacity is compared with."""
    measured, predicted = (
        max(sum(case[side][moment].values()) for moment in STEP)
        for side in ("measured", "predicted")
    )
    return 100 * (predicted - measured) / measured


def signed(percent: float) -> str:
    """An error to a tenth, without a sign where that is zero."""
    rounded = round(percent, 1)
    return f"{rounded:+.1f}%" if rounded else "0.0%"


def spread(errors: list[float]) -> str:
    """Median and worst size of errors, the extremes, and how many are too low."""
    sizes = [abs(each) for each in errors]
    low = sum(each < BELOW for each in errors)
    ends = f"{signed(min(errors))} to {signed(max(errors))}"
    return f"{median(sizes):.1f}% | {max(sizes):.1f}% | {ends} | {low} of {len(errors)}"


def summary(cases: list[dict[str, Any]]) -> str:
    """Errors at each moment, over all cases and without the replicated tables."""
    split = [case for case in cases if case["case"]["sharding"] != "data_parallel"]
    lines = [
        f"| moment | median | worst | from … to | below by more than {-BELOW:g}% |",
        "|---|---|---|---|---|",
    ]
    for moment in (*STATES, *STEP):
        lines.append(f"| {moment} | {spread([error(case, moment) for case in cases])} |")
    lines.append(f"| fullest moment | {spread([fullest(case) for case in cases])} |")
    lines.append(
        f"| fullest moment, replicated tables left out | {spread([fullest(c) for c in split])} |"
    )
    return "\n".join(lines)


def held_out(cases: list[dict[str, Any]]) -> str:
    """Errors at the fullest moments of the held-out cases, and their spread."""
    lines = ["| case | measured, kB | by the ledger, kB | error |", "|---|---|---|---|"]
    for case in cases:
        most = [
            max(sum(case[side][moment].values()) for moment in STEP) / 1000
            for side in ("measured", "predicted")
        ]
        name = Case(**case["case"]).name
        lines.append(f"| {name} | {most[0]:,.0f} | {most[1]:,.0f} | {signed(fullest(case))} |")
    head = "| | median | worst | from … to | below by more than 2% |\n|---|---|---|---|---|\n"
    return "\n".join(
        [*lines, "", f"{head}| fullest moment | {spread([fullest(case) for case in cases])} |"]
    )


def half_precision(cases: list[dict[str, Any]]) -> str:
    """Rows with their state as constructed and, where a step can run, the fullest moment."""
    lines = [
        "| case | constructed, kB | by the ledger, kB | error | fullest moment, kB | error |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        held = [sum(case[side]["constructed"].values()) for side in ("measured", "predicted")]
        ran = all(moment in case["measured"] for moment in STEP)
        most = max((sum(each.values()) for each in case["measured"].values()), default=0)
        cells = [f"{most / 1000:,.0f}", signed(fullest(case))] if ran else ["not run", ""]
        known = [f"{held[0] / 1000:,.0f}", f"{held[1] / 1000:,.0f}"]
        known.append(signed(error(case, "constructed")))
        lines.append(f"| {' | '.join([Case(**case['case']).name, *known, *cells])} |")
    return "\n".join(lines)


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """The page's blocks."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    text = f"{len(result['cases'])} cases, measured {result['date']} with {versions}."
    cases = result["cases"]
    return {
        "summary": f"{summary(cases)}\n\n{text}",
        "held_out": held_out(result["held_out"]),
        "half_precision": half_precision(result["half_precision"]),
    }


def picture(result: dict[str, Any]) -> None:
    """Draw the figure of the page."""
    draw(result, ROOT / "docs" / "figures" / "memory.svg")


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, HERE / "results", blocks, picture))
