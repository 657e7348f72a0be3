"""Published table lists under HugeCTR's cost: ``auto`` beside other planners and solvers.

``python benchmarks/embark/run.py DATA [--time-limit 5] [--rebalancer PYTHON]`` solves every case
that is not stored yet, stores it in ``results/DATE.json`` as soon as it is known and writes the
tables of docs/against-planners.md. DATA holds ``embark`` and ``table-lists``. ``--quick`` takes
only the small cases, a second each, without storing anything.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.embark import lists, page
from benchmarks.pages import stored, update
from benchmarks.rebalancer.place import placed
from formulations import Instance, Outcome, Settings, Status, read_instance, solve
from formulations.instance.facts import option_facts, own_cost
from formulations.instance.file import write_instance
from formulations.settings import available_cores
from milp_planner.files import write_json

RANKS = 8, 16, 32, 64, 128
PEERS = {"CP-SAT": "cpsat", "HiGHS": "mip"}
LARGEST = 400_000
"""Most options × ranks for which HiGHS is given the whole program; beyond, memory runs out."""


def main() -> None:
    """Solve what is missing, store, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of embark and table-lists")
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    parser.add_argument("--rebalancer", help="a Python that has Rebalancer")
    parser.add_argument("--output", type=Path, help="default: results/DATE.json")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    limit = 1.0 if given.quick else given.time_limit
    today = datetime.date.today().isoformat()
    output = given.output or page.RESULTS / f"{today}.json"
    document = {"date": today, "cores": available_cores(), "rows": []}
    if output.exists() and not given.quick:
        document = stored(output)
    known = {(row["case"], row["time_limit"], row["seed"]) for row in document["rows"]}
    for name, instance, hugectr in cases(given.data, given.quick):
        wanted = not given.only or any(part in name for part in given.only)
        if not wanted or (name, limit, given.seed) in known:
            continue
        row = solved(name, instance, limit, given.seed, given.rebalancer)
        row["planners"]["HugeCTR"] = hugectr and {"objective": hugectr}
        document["rows"].append(row)
        print(page.line(row), flush=True)
        if not given.quick:
            write_json(output, document)
    if not given.quick:
        update(page.PAGE, page.blocks(document))


def cases(data: Path, quick: bool) -> Iterator[tuple[str, Instance, int | None]]:
    """Name, Instance and, where one is stored, the cost of HugeCTR's plan."""
    for name in lists.PUBLISHED:
        instance = read_instance(data / "embark" / f"{name}.json.gz")
        if not quick or instance.num_options < 500:
            yield name, instance, lists.stored_cost(data, name)
    published = {(table, int(name[-3]) * 8) for name, table in lists.PUBLISHED.items()}
    for name in lists.names(data):
        for ranks in RANKS[:1] if quick else RANKS:
            instance = lists.instance_of(data, name, ranks)
            if (name, ranks) not in published and not (quick and instance.num_tables > 60):
                yield f"{name}_{ranks // lists.MACHINE}x{lists.MACHINE}", instance, None


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
            if peer == "HiGHS" and instance.num_options * instance.num_ranks > LARGEST:
                planners[peer] = {"objective": None, "note": page.TOO_LARGE}
            else:
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
        "trivial": trivial(instance), "planners": planners,
        "busy_cores": round(cpu / wall, 2),
    }  # fmt: skip


def trivial(instance: Instance) -> int:
    """The larger of the mean over ranks and the largest shard, each of the best options."""
    first = instance.table_options[:-1]
    least = int(np.minimum.reduceat(option_facts(instance).cost, first).sum())
    largest = int(np.minimum.reduceat(own_cost(instance), first).max())
    return max(-(-least // instance.num_ranks), largest)


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "objective": outcome.objective, "bound": outcome.bound,
        "certified": outcome.certified_bound, "status": outcome.status.value,
        "seconds": round(outcome.seconds, 2),
    }  # fmt: skip


if __name__ == "__main__":
    main()
