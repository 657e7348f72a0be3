"""Write the table of a result file of ``run.py`` as Markdown.

python benchmarks/torchrec-gap/table.py benchmarks/torchrec-gap/results/DATE.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    document = json.loads(parser.parse_args().result.read_text())
    rows = sorted(document["rows"], key=lambda r: (r["tables"], r["ranks"], r["instance"]))
    print(f"{document['date']}, {document['machine']}\n")
    print(_HEAD)
    for row in rows:
        print(line(row))
    print(f"\n{summary(rows)}")


if __name__ == "__main__":
    main()
