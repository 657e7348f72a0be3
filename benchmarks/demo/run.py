"""Plan the demo's model on both of its clusters with several formulations; store what came out.

``python benchmarks/demo/run.py`` writes ``results/DATE.json``: one entry per cluster and
formulation, with the verdict, every rank's use and time, and the machine it ran on.
"""

import argparse
import datetime
import json
import platform
from pathlib import Path
from typing import Any

from formulations import Settings
from formulations.settings import available_cores
from milp_planner import plan
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.features.plan.verdict import verdict_of
from milp_planner.files import write_json
from scenarios import catalog

HERE = Path(__file__).parent
MODEL = "dlrmv4-yambda5b"
CLUSTERS = ("8xmi350x", "8xb200-tight")
FORMULATIONS = ("dp", "greedy", "auto")


def main() -> None:
    """Run all and store the result under today's date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    settings = Settings(time_limit=arguments.time_limit, seed=arguments.seed)
    entries = [run(c, f, settings) for c in CLUSTERS for f in FORMULATIONS]
    today = datetime.date.today().isoformat()
    result = {
        "date": today,
        "model": MODEL,
        "machine": {"cores": available_cores(), "python": platform.python_version()},
        "time_limit": arguments.time_limit,
        "entries": entries,
    }
    print(write_json(HERE / "results" / f"{today}.json", result))


def run(cluster: str, formulation: str, settings: Settings) -> dict[str, Any]:
    """One formulation on one cluster."""
    found = plan(
        catalog.find_model(MODEL),
        catalog.find_cluster(cluster),
        formulation=formulation,
        settings=settings,
    )
    verdict = verdict_of(found.instance, found.outcome).to_dict()
    placement = found.outcome.placement
    ranks = None if placement is None else ranks_of(found.instance, placement).to_dict()
    print(
        cluster, formulation, json.dumps({k: verdict[k] for k in ("status", "objective", "bound")})
    )
    return {"cluster": cluster, "formulation": formulation, "verdict": verdict, "ranks": ranks}


if __name__ == "__main__":
    main()
