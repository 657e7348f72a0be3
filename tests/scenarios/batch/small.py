"""Suites small enough for tests."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scenarios.batch.execute import execute
from scenarios.batch.local import Task
from scenarios.batch.store import Record
from scenarios.batch.suite import Suite

MODEL = "generated:tables=4,seed=1,kind=mixed,max_rows=200_000"


def suite(**changes: Any) -> Suite:
    """One model on one cluster with two sizes of HBM, solved two ways: four scenarios."""
    data: dict[str, Any] = {
        "name": "small",
        "models": [MODEL],
        "clusters": ["8xh100"],
        "sweep": {"ranks_per_machine": 2, "hbm": ["32MiB", "8GiB"]},
        "objectives": ["busiest_rank"],
        "formulations": ["greedy", "cpsat"],
        "time_limit": 60,
    }
    return Suite.from_dict({**data, **changes})


def record(key: str, **changes: Any) -> dict[str, Any]:
    """A record as a run writes it."""
    return {
        "key": key, "suite": "small", "model": MODEL, "cluster": "8xh100", "axes": {"hbm": 5},
        "objective_kind": "busiest_rank", "formulation": "cpsat", "seed": 0, "status": "optimal",
        "objective": 2 * 10**9, "bound": 2 * 10**9, "gap": 0.0, "objectives": {"total": 7},
        "headroom": {"hbm": 0.25, "ddr": 0.5}, "seconds": 0.5, "error": None,
        "versions": {"milp-planner": "0"}, **changes,
    }  # fmt: skip


def here(tasks: Sequence[Task], workers: int, started: Callable[[Task], Task]) -> Iterator[Record]:
    """Solve in this process, as many scenarios started at a time as there are workers."""
    left = iter(tasks)
    while some := list(map(started, itertools.islice(left, workers))):
        for key, scenario in some:
            yield execute(scenario, key)
