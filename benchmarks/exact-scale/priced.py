"""The same question from the YAML side: pricing included, 1,000 generated dynamicemb tables.

``python benchmarks/exact-scale/priced.py -o results/DATE-priced.json``: ``fusion: free``, twenty
options per table, tables sized so that the cluster is tight but not too small.
"""

from __future__ import annotations

import argparse
import datetime
import time
from pathlib import Path

from formulations import Settings, solve
from milp_planner import Model
from milp_planner.files import write_json
from milp_planner.plans.compile import compile_for
from scenarios.catalog import find_cluster
from scenarios.generator import generate

#: Most rows a table, by cluster.
MOST_ROWS = {"8xh100": 3_000_000, "4x8xh100": 12_000_000, "16x8xh100": 50_000_000}


def measured(cluster: str, tables: int) -> dict[str, object]:
    """Seconds from model and cluster to a proved choice of options."""
    drawn = generate(tables, seed=0, kind="dynamicemb", max_rows=MOST_ROWS[cluster]).to_dict()
    drawn["workload"]["fusion"] = "free"
    model, where = Model.from_dict(drawn), find_cluster(cluster)
    start = time.perf_counter()
    instance = compile_for(model, where, "step_time").instance
    priced = time.perf_counter()
    outcome = solve(instance, "auto", Settings(time_limit=30, polish=False))
    done = time.perf_counter()
    return {
        "cluster": cluster,
        "ranks": instance.num_ranks,
        "options": instance.num_options,
        "status": outcome.status.value,
        "gap": outcome.gap,
        "objective": outcome.objective,
        "pricing_seconds": round(priced - start, 2),
        "solve_seconds": round(done - priced, 2),
        "seconds": round(done - start, 2),
    }


def main() -> None:
    """Measure every cluster and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("-o", type=Path, required=True)
    given = parser.parse_args()
    rows = [measured(cluster, given.tables) for cluster in MOST_ROWS]
    write_json(given.o, {"date": datetime.date.today().isoformat(), "rows": rows})
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
