"""Trainers that take a plan as it is: what runs is the plan.

``DistributedModelParallel(plan=…)`` calls no planner. A callback replaces what TorchRec's
planner chose.

References
----------
TorchRec 1.9.2, ``distributed/model_parallel.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.table import Table
from milp_planner.integrations.replay import Pins, Ran
from milp_planner.integrations.replay.caches import shared
from milp_planner.pricing.options import Choice

DECIDES, WHY = False, ""


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """The plan itself, at the load factors of its kernels."""
    pins, left = shared(planned, model)
    yield Ran(pins, left=left)


def steady(ran: Ran, asked: Pins, model: Model, cluster: Cluster) -> Ran:
    """The same: it has no such settings."""
    return ran


def can_run(table: Table, choice: Choice) -> bool:
    """Everything."""
    return True


def priced_otherwise(model: Model) -> list[str]:
    """Nothing is known."""
    return []


def grid(table: Table) -> dict[str, Any]:
    """None."""
    return {}
