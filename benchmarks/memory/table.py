"""The tables and the figure of docs/trust/memory.md from the newest stored result.

python benchmarks/memory/table.py [RESULT] [--check]
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.memory.cases import STATES, STEP  # noqa: E402
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


def summary(result: dict[str, Any]) -> str:
    """Errors at each moment, and at the fullest over all cases, those without replicated tables,
    those held out and those in half precision; of the latter also as constructed."""
    cases, half = result["cases"], result["half_precision"]
    ran = [case for case in half if all(moment in case["measured"] for moment in STEP)]
    split = [case for case in cases if case["case"]["sharding"] != "data_parallel"]
    lines = [
        f"| moment | median | worst | from … to | below by more than {-BELOW:g}% |",
        "|---|---|---|---|---|",
    ]
    for moment in (*STATES, *STEP):
        lines.append(f"| {moment} | {spread([error(case, moment) for case in cases])} |")
    groups = {
        "fullest moment": cases, "fullest moment, replicated tables left out": split,
        "fullest moment, held out": result["held_out"], "fullest moment, half precision": ran,
    }  # fmt: skip
    lines += [f"| {name} | {spread(list(map(fullest, each)))} |" for name, each in groups.items()]
    built = spread([error(case, "constructed") for case in half])
    return "\n".join([*lines, f"| constructed, half precision | {built} |"])


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """The page's blocks."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    text = f"{len(result['cases'])} cases, measured {result['date']} with {versions}."
    return {"summary": f"{summary(result)}\n\n{text}"}


def picture(result: dict[str, Any]) -> None:
    """Draw the figure of the page."""
    draw(result, ROOT / "docs" / "figures" / "memory.svg")


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, HERE / "results", blocks, picture))
