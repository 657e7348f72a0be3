"""Write the tables of result files of ``run.py`` into docs/against-torchrec.md.

    python benchmarks/torchrec-gap/table.py

The newest ``results/2*.json`` (the instances that settings were chosen on) and the newest
``results/unseen-2*.json`` (seeds that nobody looked at before the run) fill a block each.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "against-torchrec.md"
BLOCKS = {
    "known: benchmarks/torchrec-gap/table.py": "2*.json",
    "unseen: benchmarks/torchrec-gap/table.py": "unseen-2*.json",
}

_HEAD = (
    "| instance | TorchRec ms | ours ms | spread | first better s | certified gap | gap | by "
    "| proved |\n|---|---|---|---|---|---|---|---|---|"
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


def certified_gap(row: dict[str, Any]) -> float | None:
    """(objective − certified bound)/objective of one run."""
    if row["objective"] is None or row["certified_bound"] is None:
        return None
    gap: float = (row["objective"] - row["certified_bound"]) / max(1, abs(row["objective"]))
    return gap


def middle(values: list[Any]) -> Any:
    """The median of what is known; None where nothing is."""
    known = [v for v in values if v is not None]
    return statistics.median_low(known) if known else None


def line(rows: list[dict[str, Any]]) -> str:
    """One row of the table: all seeds of one instance, medians."""
    plans = [r["objective"] for r in rows if r["objective"] is not None]
    spread = (max(plans) - min(plans)) / min(plans) if len(plans) > 1 and min(plans) else None
    source = rows[0]["bound_source"]
    proved = sum(r["status"] == "optimal" for r in rows)
    cells = [
        rows[0]["instance"],
        milliseconds(rows[0]["reference"]),
        milliseconds(middle([r["objective"] for r in rows])),
        percent(spread),
        seconds(middle([r["first_better_seconds"] for r in rows])),
        percent(middle([certified_gap(r) for r in rows])),
        percent(middle([r["gap"] for r in rows])),
        "–" if source is None else source["method"],
        f"{proved} of {len(rows)}",
    ]
    return "| " + " | ".join(cells) + " |"


def summary(rows: list[dict[str, Any]]) -> str:
    """How the goals stand, in two sentences."""
    gaps = [r["gap"] for r in rows if r["gap"] is not None]
    certified = [g for g in map(certified_gap, rows) if g is not None]
    worse = {
        r["instance"]
        for r in rows
        if r["objective"] is None
        or (r["reference"] is not None and r["objective"] > r["reference"])
    }
    proved = sum(r["status"] == "optimal" for r in rows)
    return (
        f"{len(rows)} runs: gap median {percent(statistics.median(gaps))}, worst "
        f"{percent(max(gaps))}; certified gap median {percent(statistics.median(certified))}, "
        f"worst {percent(max(certified))}; {proved} proved optimal. "
        f"Worse than TorchRec's plan: {', '.join(sorted(worse)) or 'none'}."
    )


def table(document: dict[str, Any]) -> str:
    """Date and machine, the table, the summary."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(document["rows"], key=lambda r: (r["tables"], r["ranks"], r["instance"])):
        by_name.setdefault(row["instance"], []).append(row)
    lines = [f"{document['date']}, {document['machine']}", "", _HEAD, *map(line, by_name.values())]
    return "\n".join([*lines, "", summary(document["rows"])])


if __name__ == "__main__":
    tables = {block: table(stored(HERE / "results", pattern)) for block, pattern in BLOCKS.items()}
    sys.exit(update(PAGE, tables, check="--check" in sys.argv[1:]))
