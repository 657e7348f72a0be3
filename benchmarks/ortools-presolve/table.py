"""Write the table of the newest (or a given) count into docs/bounds.md.

python benchmarks/ortools-presolve/table.py [results/DATE.json]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
from benchmarks.pages import command  # noqa: E402

BLOCK = "presolve: benchmarks/ortools-presolve/table.py"
NAMES = {
    "default": "default",
    "inclusion limit 0": "`presolve_inclusion_work_limit=0`",
    "no probing": "`cp_model_probing_level=0`",
    "no iterations": "`max_presolve_iterations=0`",
    "no presolve": "`cp_model_presolve=False`",
}


def table(document: dict[str, Any]) -> str:
    """Instances with a false claim, by parameters and model, as Markdown."""
    lines = [
        f"Of {document['next']:,} random small instances ({document['date']}; one worker, OR-Tools "
        f"{document['ortools']}), those with a false claim of the",
        "",
        "| parameters | exact model | program that keeps machines apart | either |",
        "|---|---|---|---|",
    ]
    for case, name in NAMES.items():
        exact, relaxed = (_numbers(document, case, what) for what in ("exact", "relaxation"))
        lines.append(f"| {name} | {len(exact)} | {len(relaxed)} | {len(exact | relaxed)} |")
    return "\n".join(lines)


def _numbers(document: dict[str, Any], case: str, what: str) -> set[int]:
    return {n for n, _, c, w in document["numbers"] if c == case and w.startswith(what)}


def main() -> int:
    """Update the page."""
    page = HERE.parents[1] / "docs" / "bounds.md"
    return command(__doc__, page, HERE / "results", lambda d: {BLOCK: table(d)})


if __name__ == "__main__":
    sys.exit(main())
