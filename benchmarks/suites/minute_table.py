"""The table *Within a minute* of docs/suites/catalogue.md, from ``minute.json``.

``python benchmarks/suites/minute_table.py [--check]``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import update  # noqa: E402

PAGE = ROOT / "docs" / "suites" / "catalogue.md"
NAME = "minute: benchmarks/suites/minute_table.py"
HEAD = (
    "| model | cluster | `--time-limit` | certified gap | `plan`, seconds in all "
    "| `verify`, seconds |\n|---|---|---|---|---|---|"
)


def table(result: dict[str, Any]) -> str:
    """The text of the page's block."""
    rows = result["rows"]
    slowest = max(row["plan_seconds"] for row in rows)
    good = sum(row["plan_exit"] == row["verify_exit"] == 0 for row in rows)
    text = (
        f"Run of {result['date']}, {result['cores']} cores: {good} of {len(rows)} models end in a "
        f"plan that `verify` accepts; the slowest takes {slowest:.1f} s from start to end."
    )
    return "\n".join([HEAD, *map(_row, rows), "", text])


def _row(row: dict[str, Any]) -> str:
    value, bound = row["objective"], row["certified_bound"]
    gap = "?" if None in (value, bound) else f"{(value - bound) / value:.2%}"
    seconds = f"{row['plan_seconds']:.1f} | {row['verify_seconds']:.1f}"
    limit = f"{row['time_limit']:g}"
    return f"| `{row['model']}` | `{row['cluster']}` | {limit} | {gap} | {seconds} |"


def main() -> int:
    """Write the block, or with ``--check`` say by the exit code whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    result = json.loads((Path(__file__).parent / "minute.json").read_text(encoding="utf-8"))
    return update(PAGE, {NAME: table(result)}, check=given.check)


if __name__ == "__main__":
    sys.exit(main())
