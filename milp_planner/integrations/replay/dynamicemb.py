"""dynamicemb's example planner: its own tables exactly as given, others by row or replicated.

Dynamic tables are placed by arithmetic: shard i of ``max_capacity`` rows on rank i of all. The
examples' ``get_planner`` allows row_wise for every other table, and data_parallel by name.

References
----------
NVIDIA/recsys-examples 43465aea, ``corelib/dynamicemb/dynamicemb/planner/planner.py`` and
``examples/commons/distributed/sharding.py`` (``get_planner``); read, not run.
"""

from __future__ import annotations

from collections.abc import Iterator

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.table import Table
from milp_planner.integrations.replay import Pins, Ran, Trainer
from milp_planner.integrations.replay.caches import shared
from milp_planner.integrations.replay.greedy import EVERYWHERE
from milp_planner.pricing.options import Choice

WHY = (
    "the examples' get_planner makes only row_wise and data_parallel of TorchRec tables; "
    "DistributedModelParallel(plan=…) takes any (export --to torchrec)"
)


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """dynamicemb tables as the file has them; TorchRec tables as planned, if on all ranks."""
    elsewhere = [name for name, pin in planned.items() if pin.sharding_type not in EVERYWHERE]
    left: tuple[str, ...] = ()
    if elsewhere:
        left = (
            f"{len(elsewhere)} TorchRec tables are not on all ranks, such as {elsewhere[0]}: the "
            "examples' get_planner makes only row_wise and data_parallel; give their part to "
            "DistributedModelParallel(plan=…) (export --to torchrec)",
        )
    pins, several = shared(planned, model)
    yield Ran(pins, left=(*left, *several))


def can_run(table: Table, choice: Choice) -> bool:
    """Options on all ranks."""
    return table.kind == "dynamicemb" or choice.sharding in EVERYWHERE


TRAINER = Trainer(runs, why=WHY, can_run=can_run)
