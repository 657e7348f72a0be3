"""Write the table of a result of ``run.py`` into docs/results.md.

    python benchmarks/torchrec-gap/table.py [--check]

From the newest ``results/2*.json``, of instances of seeds that nobody looked at before the run.
"""

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "results.md"
PEER = "cpsat"
HEAD = [
    "instance", "TorchRec ms", "CP-SAT ms", "ours ms: best", "first better s", "gap: best",
    "certified gap, worst", "proved",
]  # fmt: skip
Row = dict[str, Any]


def milliseconds(picoseconds: int | None) -> str:
    """Picoseconds as ms with four digits after the point."""
    return "none" if picoseconds is None else f"{picoseconds / 1e9:.4f}"


def percent(value: float | None) -> str:
    """A share as a percentage; 0 stays 0."""
    if value is None:
        return "–"
    return "0" if value == 0 else f"{100 * value:.3f}%"


def certified_gap(row: Row) -> float | None:
    """(objective − certified bound)/objective of one run."""
    if row["objective"] is None or row["certified_bound"] is None:
        return None
    gap: float = (row["objective"] - row["certified_bound"]) / max(1, abs(row["objective"]))
    return gap


def worst_certified(rows: list[Row]) -> float | None:
    """The largest certified gap; None where a run certified nothing."""
    gaps = [gap for row in rows if (gap := certified_gap(row)) is not None]
    return max(gaps) if len(gaps) == len(rows) else None


def line(rows: list[Row]) -> str:
    """One row of the table: all seeds of one instance, and CP-SAT's plan."""
    ours = [row for row in rows if row["formulation"] != PEER]
    plans = [row["objective"] for row in ours if row["objective"] is not None]
    theirs = [row["objective"] for row in rows if row["formulation"] == PEER]
    first = [s for row in ours if (s := row["first_better_seconds"]) is not None]
    cells = [
        rows[0]["instance"], milliseconds(rows[0]["reference"]),
        milliseconds(theirs[0]) if theirs else "", milliseconds(min(plans, default=None)),
        f"{statistics.median(first):.1f}" if first else "–",
        percent(min((row["gap"] for row in ours if row["gap"] is not None), default=None)),
        percent(worst_certified(ours)),
        f"{sum(row['status'] == 'optimal' for row in ours)} of {len(ours)}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def blocks(document: Row) -> dict[str, str]:
    """The block of the page."""
    by_name: dict[str, list[Row]] = {}
    for row in sorted(document["rows"], key=lambda r: (r["tables"], r["ranks"], r["instance"])):
        by_name.setdefault(row["instance"], []).append(row)
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|", *map(line, by_name.values())]
    return {"torchrec: benchmarks/torchrec-gap/table.py": "\n".join(lines)}


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, pattern="2*.json"))
