"""One scenario with the milp_planner that is imported: sizes and seconds as JSON.

``python one.py MODEL CLUSTER SECONDS SEED``; works with any version since 55004ff, so that two can
be compared. Seconds to 1% are those until plan and bound were first within 1%.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

from formulations import Settings, solve
from milp_planner.plans.compile import compile_for
from scenarios import catalog

NEAR = 0.01


def main() -> None:
    """Price, compile, solve, print."""
    name, site, limit, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    model, cluster = catalog.find_model(name), catalog.find_cluster(site)
    warm = catalog.find_model("generated:tables=4"), catalog.find_cluster("8xh100")
    solve(
        compile_for(*warm, "step_time").instance,
        "auto",
        Settings(time_limit=1, polish=False),
    )
    start = time.perf_counter()
    instance = compile_for(model, cluster, "step_time").instance
    priced = time.perf_counter() - start
    outcome = solve(
        instance, "auto", Settings(time_limit=limit, seed=seed, polish=False, certificate=False)
    )
    near = [
        point.seconds
        for point in outcome.trace
        if point.objective and point.bound is not None
        and point.objective - point.bound <= NEAR * point.objective
    ]  # fmt: skip
    result = {
        "resources": [r.name for r in instance.resources],
        "capacities": sum(len(r.capacity) for r in instance.resources),
        "uses": int(np.count_nonzero(instance.shard_use)),
        "options": int(instance.num_options),
        "pricing_seconds": priced,
        "seconds_to_1_percent": min(near, default=None),
        "seconds": outcome.seconds,
        "status": outcome.status.value,
        "gap": outcome.gap,
    }
    print(json.dumps(result), flush=True)
    os._exit(0)  # a solver's thread that is still stopping must not decide the exit status


if __name__ == "__main__":
    main()
