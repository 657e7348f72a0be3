"""Write the table of gaps of the catalogue into docs/exact.md.

    python benchmarks/catalogue/table.py [--check]

From the newest ``results/2*.json``, beside the newest ``results/before-2*.json`` where that has a
run of the same instance (the same fingerprint).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "exact.md"
BLOCK = "catalogue: benchmarks/catalogue/table.py"
HEAD = (
    "| model × cluster | tables, ranks | plan, ms | gap | certified gap | proved "
    "| before: plan, ms | gap | certified gap |\n|" + "---|" * 9
)
Row = dict[str, Any]


def runs_of(document: Row) -> dict[tuple[str, str], list[Row]]:
    """The runs of every instance, by name and fingerprint."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in document["rows"]:
        found.setdefault((row["instance"], row["fingerprint"]), []).append(row)
    return found


def share(row: Row, bound: str) -> float:
    """(objective − bound)/objective; 1 without a plan or a bound."""
    value, low = row["objective"], row[bound]
    return 1.0 if value is None or low is None else (value - low) / max(1, value)


def cells(rows: list[Row]) -> list[str]:
    """Medians of some runs: the plan in ms, the gap and the certified gap; blank without runs."""
    if not rows:
        return ["", "", ""]
    plans = [row["objective"] for row in rows]
    known = [plan for plan in plans if plan is not None]
    plan = "none" if len(known) < len(plans) else f"{median(known) / 1e9:.4g}"
    return [
        plan,
        *(percent(median(share(r, b) for r in rows)) for b in ("bound", "certified_bound")),
    ]


def percent(value: float) -> str:
    """A gap in percent, with two digits after the point."""
    return "0" if value == 0 else f"{100 * value:.2f}%"


def table(after: Row, before: Row, groups: dict[str, str]) -> str:
    """The table, the widest certified gap first; a star marks instances that nobody tuned on."""
    past, lines = runs_of(before), [HEAD]
    runs = runs_of(after)
    order = sorted(runs, key=lambda key: -median(share(r, "certified_bound") for r in runs[key]))
    for key in order:
        rows = runs[key]
        proved = sum(row["status"] == "optimal" for row in rows)
        name = key[0].replace("_", " × ", 2) + (" *" if groups.get(key[0]) == "unseen" else "")
        size = f"{rows[0]['tables']:,}, {rows[0]['ranks']}"
        told = [name, size, *cells(rows), f"{proved} of {len(rows)}", *cells(past.get(key, []))]
        lines.append("| " + " | ".join(told) + " |")
    seconds = max(row["time_limit"] for row in after["rows"])
    told = f"Measured {after['date']}, {after['machine']}, {seconds:g} s each"
    if past:
        told += f"; before: {before['date']}, at c1890ead"
    return f"{told}.\n\n" + "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only tell whether it is up to date")
    asked = parser.parse_args()
    results = HERE / "results"
    after = stored(results, "2*.json")
    before = (
        stored(results, "before-2*.json") if any(results.glob("before-2*.json")) else {"rows": []}
    )
    known = json.loads((HERE / "instances.json").read_text(encoding="utf-8"))
    groups = {name: entry["group"] for name, entry in known.items()}
    return update(PAGE, {BLOCK: table(after, before, groups)}, check=asked.check)


if __name__ == "__main__":
    sys.exit(main())
