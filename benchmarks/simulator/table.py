"""The table of plans on docs/trust/hit-ratio.md from the newest stored result.

python benchmarks/simulator/table.py [RESULT] [--check]
"""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import command  # noqa: E402

PAGE = ROOT / "docs" / "trust" / "hit-ratio.md"


def plans_table(result: dict[str, Any]) -> str:
    """Whole plans, predicted → simulated; two ends where the seeds differ."""
    lines = [
        "| model, cluster | tables with a cache: hit ratio | difference, mean (worst) | hot rank |",
        "|---|---|---|---|",
    ]
    for case in result["cases"]:
        hit, skew = case["hit"], f", {case['skew']}" if case["skew"] else ""
        shown = apart = "–"
        if hit["tables"]:
            shown = f"{hit['tables']}: {hit['predicted']:.3f} → {hit['simulated']:.3f}"
            apart = f"{hit['mean_difference']:.4f} ({hit['worst_difference']:.4f})"
        lines.append(
            f"| {case['model']}, {case['cluster']}{skew} | {shown} | {apart} | "
            f"{ends(case['hot'])} |"
        )
    what = f"Plans of at most {result['limit']} seconds; {result['batches']} steps, "
    return "\n".join(
        [
            *lines,
            "",
            f"{what}{result['seeds']} seeds. `benchmarks/simulator/plans.py`, {result['date']}.",
        ]
    )


def ends(case: dict[str, Any]) -> str:
    """Predicted → simulated, lowest to highest."""
    found = [f"{value:.3f}" for value in sorted(case["simulated"])]
    low, high = found[0], found[-1]
    simulated = low if low == high else f"{low} … {high}"
    return f"{case['predicted']:.3f} → {simulated}"


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """The marked block of the page."""
    return {"plans": plans_table(result)}


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, HERE / "results", blocks, pattern="*-plans.json"))
