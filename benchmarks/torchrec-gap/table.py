"""Write the table of a result file of ``run.py`` into docs/against-torchrec.md.

    python benchmarks/torchrec-gap/table.py [results/DATE.json]

Default: the newest result.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "against-torchrec.md"
BLOCK = "table: benchmarks/torchrec-gap/table.py"

_HEAD = (
    "| instance | TorchRec ms | TorchRec s | ours ms | first better s | bound ms | by | gap "
    "| certified gap |\n|---|---|---|---|---|---|---|---|---|"
)


def milliseconds(picoseconds: int | None) -> str:
    """Picoseconds as ms with four digits after the point."""
    return "none" if picoseconds is None else f"{picoseconds / 1e9:.4f}"


def seconds(value: float | None) -> str:
    """Seconds with one digit."""
    return "–" if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    """A share as a percentage; 0 stays 0."""
    if value is None:
        return "–"
    return "0" if value == 0 else f"{100 * value:.3f}%"


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    source = row["bound_source"]
    method = "–" if source is None else source["method"]
    certified = None
    if row["objective"] is not None and row["certified_bound"] is not None:
        certified = (row["objective"] - row["certified_bound"]) / max(1, abs(row["objective"]))
    cells = [
        row["instance"],
        milliseconds(row["reference"]),
        seconds(row["reference_seconds"]),
        milliseconds(row["objective"]),
        seconds(row["first_better_seconds"]),
        milliseconds(row["bound"]),
        method,
        percent(row["gap"]),
        percent(certified),
    ]
    return "| " + " | ".join(cells) + " |"


def summary(rows: list[dict[str, Any]]) -> str:
    """How the goals stand, in one sentence."""
    gaps = [r["gap"] for r in rows if r["gap"] is not None]
    worse = [
        r["instance"]
        for r in rows
        if r["objective"] is None
        or (r["reference"] is not None and r["objective"] > r["reference"])
    ]
    tight = sum(1 for g in gaps if g <= 1e-6)
    return (
        f"{len(rows)} instances: gap median {percent(statistics.median(gaps))}, "
        f"worst {percent(max(gaps))}, {tight} at most 1e-6; "
        f"worse than TorchRec's plan: {', '.join(worse) or 'none'}."
    )


def table(document: dict[str, Any]) -> str:
    """Date and machine, the table, the summary."""
    rows = sorted(document["rows"], key=lambda r: (r["tables"], r["ranks"], r["instance"]))
    lines = [f"{document['date']}, {document['machine']}", "", _HEAD, *map(line, rows)]
    return "\n".join([*lines, "", summary(rows)])


if __name__ == "__main__":
    sys.exit(
        command(
            __doc__, PAGE, HERE / "results", lambda found: {BLOCK: table(found)}, pattern="2*.json"
        )
    )
