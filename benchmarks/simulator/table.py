"""The tables of docs/trust/simulator.md from the newest stored results.

python benchmarks/simulator/table.py [RESULT] [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import command, stored  # noqa: E402

PAGE = ROOT / "docs" / "trust" / "simulator.md"
GOAL = 5


def summary(cases: list[dict[str, Any]], harder: list[dict[str, Any]]) -> str:
    """In how many cases the goal is met; what costs more."""
    sentences = []
    for loop in ("gather", "touch"):
        ratios = [case[f"{loop}_ratio"] for case in cases]
        met = sum(ratio <= GOAL for ratio in ratios)
        sentences.append(
            f"Compared with *{loop}*: {min(ratios):.1f} to {max(ratios):.1f}, "
            f"at most {GOAL}× in {met} of {len(ratios)} cases."
        )
    names = (
        f"{c['mode']} {c['score'].upper()}, α {c['alpha']}, x {c['x']}, batches of {c['batch']:,} "
        f"({c['evicted']:,} evicted): {c['gather_ratio']:.1f}"
        for c in harder
    )
    sentences.append(
        "Small caches under little skew, and small batches, cost more per lookup; compared with "
        f"*gather*, {harder[0]['rows']:,} rows: {'; '.join(names)}."
    )
    return " ".join(sentences)


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
    """The marked blocks of the page: speed, and the newest stored plans."""
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
    text = f"{summary(cases, result['harder'])} Measured {result['date']}."
    plans = stored(HERE / "results", "*-plans.json")
    return {"result": "\n".join([*lines, "", text]), "plans": plans_table(plans)}


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, HERE / "results", blocks, pattern="*-[0-9][0-9].json"))
