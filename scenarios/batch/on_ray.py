"""Scenarios on a Ray cluster, or on a local Ray of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from milp_planner.errors import MissingExtra
from scenarios.batch.execute import execute, failure
from scenarios.batch.local import Task

AHEAD = 4
"""Scenarios submitted ahead for each core."""


def run_on_ray(
    tasks: Sequence[Task],
    workers: int,
    address: str | None = None,
    started: Callable[[Task], Task] = lambda task: task,
) -> Iterator[dict[str, Any]]:
    """Yield records as they are finished.

    Only scenarios are sent; models, prices and Instances are made where a scenario is solved.

    Parameters
    ----------
    tasks
    workers
        Cores of a local Ray; a running cluster uses all its cores.
    address : str, optional
        Address of a running cluster; default: a local Ray is started, and stopped at the end.
    started : callable
        Called with each task just before it starts; returns it with the plan to start from.

    Raises
    ------
    MissingExtra
        When Ray is not installed.
    """
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        limits = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **limits)
    try:
        yield from _drive(ray, tasks, started)
    finally:
        if ours:
            ray.shutdown()


def _drive(
    ray: Any, tasks: Sequence[Task], started: Callable[[Task], Task]
) -> Iterator[dict[str, Any]]:
    solve = ray.remote(num_cpus=1, max_retries=0)(execute)
    window = max(1, AHEAD * int(ray.cluster_resources().get("CPU", 1)))
    pending = iter(tasks)
    running: dict[Any, Task] = {}
    try:
        while True:
            for key, scenario in map(started, islice(pending, window - len(running))):
                running[solve.remote(scenario, key)] = (key, scenario)
            if not running:
                return
            for done in ray.wait(list(running), num_returns=1)[0]:
                key, scenario = running.pop(done)
                try:
                    record = ray.get(done)
                except ray.exceptions.RayError as error:  # its process died
                    record = failure(scenario, key, error)
                yield record
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtra(
            "--engine ray needs Ray, which is not installed: pip install 'milp-planner[ray]'"
        ) from None
    return ray
