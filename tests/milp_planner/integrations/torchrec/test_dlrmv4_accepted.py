"""Exports of shipped DLRMv4 models, through TorchRec's planner as the DLRMv4 trainer calls it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torchrec")

from milp_planner import plan
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports
from milp_planner.integrations.exports import dlrmv4
from milp_planner.integrations.replay.estimate import Job, asked_of, machines_of
from milp_planner.integrations.replay.judge import cost_of, judge, placed
from milp_planner.integrations.replay.plan_for import plan_for
from milp_planner.plans.placement import Plan
from scenarios import catalog
from tests.milp_planner.integrations.torchrec.pinned import choice_of, module_of, sharders_of

MODELS = [entry.name for entry in catalog.models() if entry.name.startswith("dlrmv4")]
CLUSTERS = [entry.name for entry in catalog.clusters()]
KERNELS = {"hbm": ["fused"], "uvm": ["fused_uvm"], "uvm_caching": ["fused_uvm_caching"]}
GIB = 2**30


def trained(found: Plan, variables: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Ranks by the trainer's own steps: variables to constraints, default batch, no host memory."""
    from torchrec.distributed.planner import (
        EmbeddingShardingPlanner,
        ParameterConstraints,
        Topology,
    )

    def pairs(name: str) -> dict[str, str]:
        entries = filter(None, variables.get(name, "").split(","))
        return dict(entry.split("=") for entry in entries)

    placements, kinds = pairs(dlrmv4.PLACEMENT_OVERRIDES), pairs(dlrmv4.SHARDING_OVERRIDES)
    constraints = {}
    for table in found.model.tables:
        placement = placements.get(table.name, variables.get(dlrmv4.PLACEMENT, "auto"))
        constraints[table.name] = ParameterConstraints(
            sharding_types=[kinds[table.name]], compute_kernels=KERNELS.get(placement)
        )
    cap = int(variables.get(dlrmv4.HBM) or dlrmv4.DEFAULT_CAP)
    topology = Topology(
        world_size=found.cluster.num_ranks,
        local_world_size=len(found.cluster.machine_ranks[0]),
        compute_device="cuda", hbm_cap=cap * GIB, ddr_cap=0,
    )  # fmt: skip
    pins = exports.read(dlrmv4.write(found), "dlrmv4", found.model)
    module = module_of(asked_of(found.model.tables, pins, pooled=False))
    planner = EmbeddingShardingPlanner(topology=topology, constraints=constraints, stats=[])
    sharding: Any = planner.plan(module, sharders_of((2.0, 2.0))).plan["tables"]
    return {name: tuple(entry.ranks) for name, entry in sharding.items()}


def accepted_or_refused(found: Plan) -> None:
    """The real planner takes the export and gives the ranks that we said; or there is none."""
    try:
        judgement, ran = judge(found, "dlrmv4")
    except (FallsShort, BadInput) as refusal:
        assert len(str(refusal)) > 40
        return
    variables = dlrmv4.environment(found, judgement.settings)
    theirs = trained(found, variables)
    for table in ran.tables:
        assert tuple(rank for block in table.ranks for rank in block) == theirs[table.name]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("model", MODELS)
def test_every_pair_by_greedy(model: str, cluster: str) -> None:
    """Plans of the greedy formulation, which are quick."""
    accepted_or_refused(
        plan(
            catalog.find_model(model), catalog.find_cluster(cluster), formulation="greedy",
            time_limit=10,
        )
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("model", MODELS)
def test_every_pair(model: str, cluster: str) -> None:
    """The plans that users get."""
    accepted_or_refused(
        plan(catalog.find_model(model), catalog.find_cluster(cluster), time_limit=5)
    )


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["8xmi350x", "8xb200-tight"])
def test_for_is_no_worse_than_the_trainers_planner(cluster: str) -> None:
    """With the trainer's defaults: nothing set, TorchRec's choice costs more or does not fit."""
    defaults = {"dedup": True, "codec": "low_memory"}
    model = exports.with_workload(catalog.find_model(MODELS[0]), defaults)
    found = plan_for("dlrmv4", model, catalog.find_cluster(cluster), time_limit=15)
    world, local = machines_of(found.cluster)
    smallest = min(rank.hbm_bytes for rank in found.cluster.ranks) // GIB
    by_row = {t.name: PinSpec(mode="HBM_ONLY", sharding_type="row_wise") for t in model.tables}
    tables = asked_of(model.tables, by_row, pooled=False)
    cap = min(dlrmv4.DEFAULT_CAP, smallest) * GIB
    alone = placed(found, choice_of(tables, Job(world, local, 512, (2.0, 2.0)), cap))
    assert alone.verdict is not None
    assert not alone.verdict.feasible or cost_of(alone) >= cost_of(found)
