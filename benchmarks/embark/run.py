"""NVIDIA's published instances under HugeCTR's cost: ``auto`` beside other planners and solvers.

``python benchmarks/embark/run.py DATA [--time-limit 5] [--rebalancer PYTHON]`` solves every case
that is not stored yet, stores it in ``results/DATE.json`` as soon as it is known and writes the
table of docs/results.md. DATA holds ``embark``.
"""

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.embark import lists, page
from benchmarks.pages import stored, update
from benchmarks.rebalancer.place import placed
from formulations import Instance, Outcome, Settings, Status, read_instance, solve
from formulations.instance.file import write_instance
from formulations.settings import available_cores
from milp_planner.files import write_json

PEERS = {"CP-SAT": "cpsat", "HiGHS": "mip"}


def main() -> None:
    """Solve what is missing, store, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of embark")
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    parser.add_argument("--rebalancer", help="a Python that has Rebalancer")
    parser.add_argument("--output", type=Path, help="default: results/DATE.json")
    given = parser.parse_args()
    today = datetime.date.today().isoformat()
    output = given.output or page.RESULTS / f"{today}.json"
    document = {"date": today, "cores": available_cores(), "rows": []}
    if output.exists():
        document = stored(output)
    known = {(row["case"], row["time_limit"], row["seed"]) for row in document["rows"]}
    for name, instance, hugectr in cases(given.data):
        wanted = not given.only or any(part in name for part in given.only)
        if not wanted or (name, given.time_limit, given.seed) in known:
            continue
        row = solved(name, instance, given.time_limit, given.seed, given.rebalancer)
        row["planners"]["HugeCTR"] = {"objective": hugectr}
        document["rows"].append(row)
        print(page.line(row), flush=True)
        write_json(output, document)
    update(page.PAGE, page.blocks(document))


def cases(data: Path) -> Iterator[tuple[str, Instance, int]]:
    """Name, Instance and the cost of HugeCTR's plan."""
    for name in lists.PUBLISHED:
        instance = read_instance(data / "embark" / f"{name}.json.gz")
        yield name, instance, lists.stored_cost(data, name)


def solved(
    name: str, instance: Instance, limit: float, seed: int, rebalancer: str | None
) -> dict[str, Any]:
    """A case by every planner, and the trivial bound."""
    settings = Settings(time_limit=limit, seed=seed, polish=False)
    began = time.perf_counter(), sum(os.times()[:4])
    ours = solve(instance, "auto", settings)
    planners = {"auto": _row(ours)}
    if ours.status is not Status.INFEASIBLE:
        for peer, formulation in PEERS.items():
            planners[peer] = _row(solve(instance, formulation, settings))
        if rebalancer and ours.placement is not None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "instance.json.gz"
                write_instance(instance, file)
                seconds = ["--seconds", str(limit), "--seed", str(seed)]
                planners["Rebalancer"] = placed(file, instance, ours, [rebalancer, *seconds])
    wall, cpu = time.perf_counter() - began[0], sum(os.times()[:4]) - began[1]
    return {
        "case": name, "tables": instance.num_tables, "ranks": instance.num_ranks,
        "options": instance.num_options, "time_limit": limit, "seed": seed,
        "planners": planners,
        "busy_cores": round(cpu / wall, 2),
    }  # fmt: skip


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "objective": outcome.objective, "bound": outcome.bound,
        "certified": outcome.certified_bound, "status": outcome.status.value,
        "seconds": round(outcome.seconds, 2),
    }  # fmt: skip


if __name__ == "__main__":
    main()
