"""Whole plans of shipped models: predicted against simulated.

    python benchmarks/simulator/plans.py [--out results/DATE-plans.json]      (five minutes)

Each case is planned for step_time, 40 seconds at most, and simulated for five steps, with three
seeds: each draws the lookups, and which rows are the hot ones. Models without access statistics
get the published skew of ``simulate --skew``, here before they are planned, so that plan and
simulation know the same. Nothing is timed.
"""

import argparse
import json
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.simulator.streams import with_skew
from benchmarks.simulator.whole import SimulationInfo, simulate_plan
from milp_planner import plan
from scenarios.catalog import find_cluster, find_model

CASES = [
    ("kuairand-27k", "8xh100", None),
    ("kuairand-27k", "1xa10", None),
    ("criteo-kaggle", "1xa10", None),
    ("criteo-terabyte", "8xh100", None),
    ("criteo-terabyte", "1xa10", None),
    ("mlperf-dlrm-dcnv2", "8xh100", "dlrm-2022"),
    ("mlperf-dlrm-dcnv2", "1xa10", "dlrm-2022"),
    ("dlrmv4-yambda5b", "8xb200-tight", "dlrm-2022"),
]
LIMIT, BATCHES, SEEDS = 40, 5, 3


def hits(runs: list[SimulationInfo]) -> dict[str, Any]:
    """Tables with a cache: how many, and how far their hit ratios are from what was predicted."""
    tables = [(t, t.hit) for info in runs for t in info.tables if t.hit is not None]
    if not tables:
        return {"tables": 0}
    apart, worst = max((abs(t.predicted_hit - hit), t.name) for t, hit in tables)
    return {
        "tables": len(tables) // len(runs),
        "predicted": fmean(t.predicted_hit for t, _ in tables),
        "simulated": fmean(hit for _, hit in tables),
        "mean_difference": fmean(abs(t.predicted_hit - hit) for t, hit in tables),
        "worst_difference": apart,
        "worst_table": worst,
    }


def hot_tables(runs: list[SimulationInfo]) -> dict[str, dict[str, Any]]:
    """Hot ranks of the tables whose rows are split, predicted to be above the mean."""
    same = zip(*(info.tables for info in runs), strict=True)
    return {
        first.name: {
            "predicted": first.predicted_hot,
            "simulated": [first.hot, *(t.hot for t in rest)],
        }
        for first, *rest in same
        if first.predicted_hot > 1.01
    }


def measure(model: str, cluster: str, skew: str | None) -> dict[str, Any]:
    """One case: hit ratios and the load of ranks, of every seed."""
    known = with_skew(find_model(model), skew) if skew else find_model(model)
    found = plan(known, find_cluster(cluster), time_limit=LIMIT)
    runs = [simulate_plan(found, BATCHES, seed) for seed in range(SEEDS)]
    return {
        "model": model, "cluster": cluster, "skew": skew,
        "status": found.outcome.status, "gap": found.outcome.gap,
        "modes": Counter(table.mode for table in found.tables),
        "hit": hits(runs),
        "hot": {"predicted": runs[0].predicted_hot, "simulated": [r.hot for r in runs]},
        "hot_tables": hot_tables(runs),
    }  # fmt: skip


def main() -> None:
    """Run all cases and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    cases = []
    for case in CASES:
        cases.append(measure(*case))
        print(cases[-1], flush=True)
    if arguments.out:
        result = {
            "date": date.today().isoformat(), "limit": LIMIT, "batches": BATCHES,
            "seeds": SEEDS, "cases": cases,
        }  # fmt: skip
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
