"""A frontier against one solve: ``python -m benchmarks.frontier.run [-o FILE] [CASE …]``.

For every case the script makes the plan as ``plan`` does, then finds the objective over twelve
budgets of HBM as ``explain --ask frontier`` does. The checker re-derives each point's plan, cost
and certificate; the exit code is 1 unless it could for all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from formulations import Settings
from formulations.capacity.budget import Budget
from formulations.result.outcome import standing
from milp_planner import plan
from milp_planner.features.explain.frontier import POINTS, frontier
from milp_planner.files import write_json
from scenarios import catalog

#: The twelve budgets share this many times the plan's time limit, as explain's 60 s are to 30.
TIMES = 2
CASES = (
    "kuairand-27k 1xa10", "kuairand-27k 8xh100", "criteo-terabyte 8xh100",
    "dlrmv4-yambda5b 8xmi350x", "mlperf-dlrm-dcnv2 8xh100",
)  # fmt: skip


def main() -> int:
    """Run the cases, report and judge them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES, help="such as 'kuairand-27k 1xa10'")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--over", default="hbm")
    arguments = parser.parse_args()
    found = [run(*each.split(), arguments.over, arguments.time_limit) for each in arguments.cases]
    result = {
        "date": datetime.date.today().isoformat(), "cores": os.cpu_count(),
        "time_limit": arguments.time_limit, "cases": found,
    }  # fmt: skip
    if arguments.output:
        write_json(arguments.output, result)
    return 0 if all(each["verified"] for each in found) else 1


def run(model: str, cluster: str, over: str, limit: float) -> dict[str, Any]:
    """One solve, and the frontier from it."""
    inputs = catalog.find_model(model), catalog.find_cluster(cluster)
    start = time.perf_counter()
    best = plan(*inputs, settings=Settings(time_limit=limit))
    solved = time.perf_counter() - start
    start = time.perf_counter()
    info, _ = frontier(best, over, POINTS, Budget(Settings(time_limit=TIMES * limit)))
    took = time.perf_counter() - start
    gaps = [point.gap for point in info.points if point.gap is not None]
    found = {
        "model": model, "cluster": cluster, "over": over, "standing": standing(best.outcome),
        "solve_seconds": round(solved, 2), "frontier_seconds": round(took, 2),
        "times": round(took / solved, 2), "points": len(info.points),
        "solved": sum(point.seconds is not None for point in info.points),
        "solving_seconds": round(sum(point.seconds or 0 for point in info.points), 2),
        "with_plan": len(gaps), "largest_gap": max(gaps, default=None),
        "verified": all(point.verified for point in info.points),
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
