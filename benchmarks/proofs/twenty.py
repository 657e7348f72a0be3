"""What is proved and what is certified on 20 tables × 8 ranks and on the demo: README.md's table.

``python benchmarks/proofs/twenty.py [--check]`` reads ``twenty.json``, which goals.py stored.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.pages import update

HERE = Path(__file__).resolve().parent


def table(rows: dict[str, dict[str, Any]]) -> str:
    """One line for each instance: plan, how far it is proved and certified, and the seconds."""
    lines = [
        "| instance | plan, ms | proved by the solvers | certified | solve, s | checker, s |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        cells = (
            name.removeprefix("torchrec_"), f"{row['objective'] / 1e9:.4f}",
            _within(row["objective"], row["bound"]),
            _within(row["objective"], row["certified_bound"]),
            f"{row['seconds']:.1f}", f"{row['check_seconds']:.1f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    proved, certified = (
        sum(row["objective"] == row[key] for row in rows.values())
        for key in ("bound", "certified_bound")
    )
    lines += ["", f"Of {len(rows)}, {proved} are proved optimal and {certified} certified optimal."]
    return "\n".join(lines)


def _within(value: int, bound: int | None) -> str:
    if bound is None:
        return "nothing"
    return "optimal" if value == bound else f"to {100 * (value - bound) / value:.2g}%"


def main() -> int:
    """Write the table, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    rows = json.loads((HERE / "twenty.json").read_text(encoding="utf-8"))
    blocks = {"twenty: benchmarks/proofs/twenty.py": table(rows)}
    return update(HERE / "README.md", blocks, check=check)


if __name__ == "__main__":
    sys.exit(main())
