"""TorchRec's planner as the DLRMv4 trainer calls it for a file of its variables, step by step."""

from collections.abc import Mapping
from typing import Any

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.exports import dlrmv4
from milp_planner.integrations.replay.estimate import GIB, asked_of
from tests.milp_planner.integrations.torchrec.pinned import module_of, sharders_of

KERNELS = {"hbm": ["fused"], "uvm": ["fused_uvm"], "uvm_caching": ["fused_uvm_caching"]}
_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}


def trained(
    variables: Mapping[str, str], model: Model, cluster: Cluster, host_gib: int = 0
) -> dict[str, Any]:
    """TorchRec's sharding of every table; its PlannerError or RuntimeError if the trainer stops.

    ``host_gib`` stands for what an older TorchRec takes ``ddr_cap=0`` for.
    """
    from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology

    local = len(cluster.machine_ranks[0])
    cap = int(variables.get(dlrmv4.HBM) or dlrmv4.DEFAULT_CAP)
    topology = Topology(
        world_size=cluster.num_ranks, local_world_size=local, compute_device="cuda",
        hbm_cap=cap * GIB, ddr_cap=host_gib * GIB,
    )  # fmt: skip
    pin = PinSpec(mode="HBM_ONLY", sharding_type="row_wise")
    tables = asked_of(model.tables, {t.name: pin for t in model.tables}, pooled=False)
    outside = model.outside_embeddings
    module = module_of(tables, 0 if outside is None else outside.parameter_bytes)
    sent = tuple(
        _BYTES[variables.get(name) or "fp16"] for name in (dlrmv4.FORWARD, dlrmv4.BACKWARD)
    )
    sharders = sharders_of(None if sent == (4.0, 4.0) else sent, variables.get(dlrmv4.DEDUP) != "0")
    planner = EmbeddingShardingPlanner(
        topology=topology, constraints=_constraints(variables, model), stats=[]
    )
    found: dict[str, Any] = planner.plan(module, sharders).plan["tables"]
    return found


def _constraints(variables: Mapping[str, str], model: Model) -> dict[str, Any] | None:
    from torchrec.distributed.planner import ParameterConstraints

    placements, kinds = (
        dict(entry.split("=") for entry in filter(None, variables.get(name, "").split(",")))
        for name in (dlrmv4.PLACEMENT_OVERRIDES, dlrmv4.SHARDING_OVERRIDES)
    )
    found = {}
    for table in model.tables:
        placement = placements.get(table.name, variables.get(dlrmv4.PLACEMENT, "auto"))
        asked = {
            "compute_kernels": KERNELS.get(placement),
            "sharding_types": [kinds[table.name]] if table.name in kinds else None,
        }
        if any(asked.values()):
            found[table.name] = ParameterConstraints(**asked)
    return found or None
