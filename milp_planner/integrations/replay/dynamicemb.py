"""dynamicemb's example planner: its own tables exactly as given, others by row or replicated.

Dynamic tables are placed by arithmetic: shard i of ``max_capacity`` rows on rank i of all. The
examples' ``get_planner`` allows row_wise for every other table, and data_parallel by name.

References
----------
NVIDIA/recsys-examples 43465aea, ``corelib/dynamicemb/dynamicemb/planner/planner.py`` and
``examples/commons/distributed/sharding.py`` (``get_planner``); read, not run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.files import read_json
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import dynamicemb
from milp_planner.integrations.replay import Pins, Ran, Trainer
from milp_planner.integrations.replay.caches import shared
from milp_planner.integrations.replay.estimate import LOAD_FACTOR
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


def runs_now(text: str, model: Model, cluster: Cluster) -> tuple[dict[str, PinSpec], list[str]]:
    """What runs of table options in a file, and what is assumed.

    BadInput for options that the runtime refuses, or of other ranks than the cluster's.
    """
    pins = dynamicemb.read(text, model)
    same_world(read_json(text, "dynamicemb options").data, cluster)
    rest, notes = others(model)
    return rest | pins, notes


def same_world(document: Mapping[str, Any], cluster: Cluster) -> None:
    """BadInput if a document is of other ranks than the cluster's."""
    if document["world_size"] != cluster.num_ranks:
        raise BadInput(
            f"world_size: found {document['world_size']}; allowed: {cluster.num_ranks}, the ranks "
            f"of {cluster.name}"
        )


def others(
    model: Model, prefetched: bool = False, replicated: Collection[str] = ()
) -> tuple[dict[str, PinSpec], list[str]]:
    """What the examples' ``get_planner`` makes of TorchRec tables: rows over all ranks.

    Its pipeline decides the kernel: a cache at TorchRec's load factor where rows are prefetched.
    """
    ratio = LOAD_FACTOR if prefetched else None
    rows = PinSpec(mode="CACHING" if ratio else "HBM_ONLY", sharding_type="row_wise",
                   cache_ratio=ratio)  # fmt: skip
    whole = PinSpec(mode="HBM_ONLY", sharding_type="data_parallel")
    names = [table.name for table in model.tables if table.kind == "torchrec"]
    where = "in a cache" if prefetched else "in HBM"
    notes = [f"TorchRec's tables ({listed(names, 3)}) are judged row_wise {where}, or replicated "
             "where the file says so, as the examples' get_planner has them"]  # fmt: skip
    return {n: whole if n in replicated else rows for n in names}, notes if names else []


def can_run(table: Table, choice: Choice) -> bool:
    """Options on all ranks."""
    return table.kind == "dynamicemb" or choice.sharding in EVERYWHERE


TRAINER = Trainer(runs, why=WHY, can_run=can_run)
