"""Trainers that take a plan as it is: what runs is the plan.

``DistributedModelParallel(plan=…)`` calls no planner. A callback replaces what TorchRec's
planner chose.

References
----------
TorchRec 1.9.2, ``distributed/model_parallel.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from milp_planner.inputs import Cluster, Model
from milp_planner.integrations.replay import Pins, Ran, Trainer
from milp_planner.integrations.replay.caches import shared


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """The plan itself, at the load factors of its kernels."""
    pins, left = shared(planned, model)
    yield Ran(pins, left=left)


TRAINER = Trainer(runs)
