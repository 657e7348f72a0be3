"""Write the table of gaps of the catalogue into docs/results.md.

    python benchmarks/catalogue/table.py [--check]

From the newest ``results/2*.json``.
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "results.md"
HEAD = (
    "| model × cluster | tables, ranks | plan, ms | gap | certified gap | proved |\n|" + "---|" * 6
)
Row = dict[str, Any]


def share(row: Row, bound: str) -> float:
    """(objective − bound)/objective; 1 without a plan or a bound."""
    value, low = row["objective"], row[bound]
    return 1.0 if value is None or low is None else (value - low) / max(1, value)


def cells(rows: list[Row]) -> list[str]:
    """Medians of some runs: the plan in ms, the gap and the certified gap."""
    plans = [row["objective"] for row in rows]
    known = [plan for plan in plans if plan is not None]
    plan = "none" if len(known) < len(plans) else f"{median(known) / 1e9:.4g}"
    gaps = (median(share(row, bound) for row in rows) for bound in ("bound", "certified_bound"))
    return [plan, *map(percent, gaps)]


def percent(value: float) -> str:
    """A gap in percent, with two digits after the point."""
    return "0" if value == 0 else f"{100 * value:.2f}%"


def table(document: Row, groups: dict[str, str]) -> str:
    """The table, the widest certified gap first; a star marks instances that nobody tuned on."""
    runs: dict[str, list[Row]] = {}
    for row in document["rows"]:
        runs.setdefault(row["instance"], []).append(row)
    order = sorted(runs, key=lambda key: -median(share(r, "certified_bound") for r in runs[key]))
    lines = [HEAD]
    for key in order:
        rows = runs[key]
        proved = sum(row["status"] == "optimal" for row in rows)
        name = key.replace("_", " × ", 2) + (" *" if groups.get(key) == "unseen" else "")
        size = f"{rows[0]['tables']:,}, {rows[0]['ranks']}"
        lines.append(f"| {name} | {size} | {' | '.join(cells(rows))} | {proved} of {len(rows)} |")
    return "\n".join(lines)


def blocks(document: Row) -> dict[str, str]:
    """The block of the page."""
    known = json.loads((HERE / "instances.json").read_text(encoding="utf-8"))
    groups = {name: entry["group"] for name, entry in known.items()}
    return {"catalogue: benchmarks/catalogue/table.py": table(document, groups)}


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, pattern="2*.json"))
