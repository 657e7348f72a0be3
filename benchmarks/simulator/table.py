"""The table of docs/trust/simulator.md from the newest stored result.

python benchmarks/simulator/table.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
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


def main() -> None:
    """Rewrite the marked block."""
    newest = sorted((HERE / "results").glob("*.json"))[-1]
    result = json.loads(newest.read_text(encoding="utf-8"))
    cases = result["cases"]
    lines = [
        "| rows | α | x | tiers | hit ratio | evicted | simulated, ns | touch, ns | × "
        "| gather, ns | × |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    lines += [
        f"| {c['rows']:,} | {c['alpha']} | {c['x']} | {c['mode']} {c['score'].upper()} | "
        f"{c['hit']} | {c['evicted']:,} | {c['simulated_ns']} | {c['touch_ns']} | "
        f"{c['touch_ratio']} | {c['gather_ns']} | {c['gather_ratio']} |"
        for c in cases
    ]
    lines += ["", f"{summary(cases, result['batch'])} `{newest.name}`."]
    block = "\n".join(["<!-- result -->", *lines, "<!-- end -->"])
    page = HERE.parent.parent / "docs" / "trust" / "simulator.md"
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<!-- result -->.*<!-- end -->", lambda _: block, text, flags=re.S)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
