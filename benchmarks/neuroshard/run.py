"""NeuroShard's 100 tasks: greedy algorithms, the DP heuristic and milp-planner, at measured cost.

``python benchmarks/neuroshard/run.py [--work 2] [--seed 0]`` plans every task on 4 devices of 4
GiB, whole tables and with columns halved, asks what our ledger says of it, stores
``results/DATE.json`` as it goes (a run goes on where it stopped) and writes the tables of
docs/results.md. A plan's cost is the objective of the Instance, checked without a solver: the
fullest device's lookups, as fitted to the authors' measurements, and its exchange. Work is counted,
so every machine finds the same plans.
"""

import argparse
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.neuroshard import page
from benchmarks.neuroshard.greedy import MEASURES, place
from benchmarks.pages import stored, update
from formulations import Instance, Placement, Settings, solve
from formulations.result.check import check
from milp_planner import plan
from milp_planner.files import write_json
from milp_planner.inputs import Model
from milp_planner.plans.compile import compile_for
from milp_planner.plans.placement import Plan
from scenarios.catalog import find_cluster, find_model

CLUSTER = find_cluster("4xdlrm-856-cpu")
WHOLE, LEDGER = 0.5, 0.25
"""Share of the work for whole tables, and for the ledger's question."""


def main() -> None:
    """Plan what is missing, store, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=float, default=2.0, help="units of counted work")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    output = given.output or page.RESULTS / f"{date.today()}.json"
    document: dict[str, Any] = {
        "date": f"{date.today()}", "commit": head(), "work": given.work, "seed": given.seed,
        "rows": [],
    }  # fmt: skip
    if output.exists():
        document = stored(output)
    for number in range(len(document["rows"]), given.tasks):
        document["rows"].append(solved(number, given.work, given.seed))
        print(page.line(document["rows"][-1]), flush=True)
        write_json(output, document)
    if given.output is None:
        update(page.PAGE, page.blocks(document))


def head() -> str:
    """The commit of this checkout."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=page.HERE, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def solved(number: int, work: float, seed: int) -> dict[str, Any]:
    """One task by every planner."""
    model = find_model(f"neuroshard:{number}")
    whole = changed(model, sharding_types=("table_wise",), column_widths=None)

    def planned(asked: Model, share: float = 1.0) -> Plan:
        settings = Settings(time_limit=None, work_limit=share * work, seed=seed, workers=1)
        return plan(asked, CLUSTER, settings=settings)

    cut, apart = planned(model), planned(whole, WHOLE)
    workload = model.workload.model_copy(update={"storage_model": "runtime"})
    counted = model.model_copy(update={"workload": workload})
    ledger = planned(counted, LEDGER)
    dp = solve(apart.instance, "dp", Settings(time_limit=60))
    return {
        "task": number, "tables": len(model.tables),
        "cut": _row(cut), "whole": _row(apart),
        "shards": sum(len(ranks) for t in cut.tables for ranks in t.ranks),
        "ledger": ledger.status, "dp": dp.objective,
        "greedy": {name: greedy(whole, name) for name in MEASURES},
    }  # fmt: skip


def changed(model: Model, **limits: Any) -> Model:
    """The model with other constraints on all tables."""
    tables = [
        t.model_copy(update={"constraints": t.constraints.model_copy(update=limits)})
        for t in model.tables
    ]
    return model.model_copy(update={"tables": tuple(tables)})


def greedy(model: Model, measure: str) -> int | None:
    """The cost of a greedy algorithm's plan; None where it finds none."""
    instance = compile_for(model, CLUSTER, "step_time").instance
    room = int(instance.resources[0].capacity.min())
    devices = place(model, measure, CLUSTER.num_ranks, room)
    return None if devices is None else cost_of(instance, devices)


def cost_of(instance: Instance, devices: list[int]) -> int:
    """The checked cost of whole tables on these devices."""
    options = np.array([instance.options_of(table)[0] for table in range(instance.num_tables)])
    placement = Placement(options, [[np.array([device])] for device in devices])
    found = check(instance, placement)
    if not found.feasible:
        raise RuntimeError(found.violations[0])
    return int(found.objectives["step_time"])


def _row(found: Plan) -> dict[str, Any]:
    outcome = found.outcome
    return {
        "status": outcome.status.value, "objective": outcome.objective,
        "certified": outcome.certified_bound,
    }  # fmt: skip


if __name__ == "__main__":
    main()
