"""The table of docs/trust/simulator.md from the newest stored result.

python benchmarks/simulator/table.py [RESULT] [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import command  # noqa: E402

PAGE = ROOT / "docs" / "trust" / "simulator.md"
GOAL = 3


def summary(cases: list[dict[str, Any]], batch: int) -> str:
    """In how many cases the goal is met, and by how much it is missed in the others.

    There all that a lookup costs above one *gather* is put down to the evictions.
    """
    sentences = []
    for loop in ("gather", "touch"):
        ratios = [case[f"{loop}_ratio"] for case in cases]
        met = sum(ratio <= GOAL for ratio in ratios)
        sentences.append(
            f"Beside *{loop}*: {min(ratios):.1f} to {max(ratios):.1f}, "
            f"at most {GOAL}× in {met} of {len(ratios)} cases."
        )
    missed = [c for c in cases if c["gather_ratio"] > GOAL]
    names = (
        f"{c['rows']:,} rows, α {c['alpha']}, {c['mode']} {c['score'].upper()} (an eviction costs "
        f"{(c['gather_ratio'] - 1) * batch / c['evicted']:.1f} gathers, the goal allows "
        f"{(GOAL - 1) * batch / c['evicted']:.1f})"
        for c in missed
    )
    if missed:
        sentences.append(f"Above the goal beside *gather*: {'; '.join(names)}.")
    return " ".join(sentences)


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """The marked block of the page."""
    cases = result["cases"]
    lines = [
        "| rows | α | x | tiers | hit ratio | evicted | simulated, ns | touch, ns | × "
        "| gather, ns | × |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {c['rows']:,} | {c['alpha']} | {c['x']} | {c['mode']} {c['score'].upper()} | "
            f"{c['hit']} | {c['evicted']:,} | {c['simulated_ns']} | {c['touch_ns']} | "
            f"{c['touch_ratio']} | {c['gather_ns']} | {c['gather_ratio']} |"
            for c in cases
        ),
    ]
    text = f"{summary(cases, result['batch'])} Measured {result['date']}."
    return {"result": "\n".join([*lines, "", text])}


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, HERE / "results", blocks))
