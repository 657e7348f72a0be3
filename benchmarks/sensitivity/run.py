"""How wrong may prices be before the plans of the shipped models change, and what would it cost?

python benchmarks/sensitivity/run.py [--plan-limit 15] [--time-limit 50] [--draws 20]
    [--cases kuairand-27k@1xa10,...] [-o FILE]
"""

import argparse
import datetime
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from formulations import Settings
from formulations.capacity.budget import Budget
from milp_planner import plan
from milp_planner.features.explain.sensitivity import sensitivity
from scenarios import catalog

HERE = Path(__file__).parent
CASES = (
    "criteo-kaggle@1xa10",
    "kuairand-27k@1xa10",
    "kuairand-27k@8xh100",
    "criteo-terabyte@8xh100",
    "mlperf-dlrm-dcnv2@8xh100",
    "dlrmv4-yambda5b@8xb200-tight",
    "dlrmv4-yambda5b@4x8xh200",
)


def case(name: str, plan_limit: float, time_limit: float, draws: int) -> dict[str, Any]:
    """One model on one cluster: its plan, then the answer."""
    model, _, cluster = name.partition("@")
    best = plan(
        catalog.find_model(model), catalog.find_cluster(cluster),
        settings=Settings(time_limit=plan_limit),
    )  # fmt: skip
    budget = Budget(Settings(time_limit=time_limit))
    info = sensitivity(best, budget, draws=draws)
    print(f"{name}: {info.summary}", flush=True)
    return {
        "case": name,
        "status": best.outcome.status.value,
        "gap": best.outcome.gap,
        "sensitivity": info.to_dict(),
    }


def main() -> None:
    """Run every case and write what was found."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plan-limit", type=float, default=15.0, metavar="SECONDS")
    parser.add_argument("--time-limit", type=float, default=50.0, metavar="SECONDS")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results" / f"{today}.json")
    given = parser.parse_args()
    document = {
        "date": today,
        "version": version("milp-planner"),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "limits": {"plan": given.plan_limit, "sensitivity": given.time_limit},
        "cases": [
            case(name, given.plan_limit, given.time_limit, given.draws)
            for name in given.cases.split(",")
        ],
    }
    given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written: {given.output}")


if __name__ == "__main__":
    main()
