"""Exports of shipped DLRMv4 models, through TorchRec's planner as the DLRMv4 trainer calls it."""

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
from tests.milp_planner.integrations.torchrec.pinned import choice_of
from tests.milp_planner.integrations.torchrec.trainer import trained

MODELS = [entry.name for entry in catalog.models() if entry.name.startswith("dlrmv4")]
CLUSTERS = [entry.name for entry in catalog.clusters()]
GIB = 2**30


def accepted_or_refused(found: Plan) -> None:
    """The real planner takes the export and gives the ranks that we said; or there is none."""
    try:
        judgement, ran = judge(found, "dlrmv4")
    except (FallsShort, BadInput) as refusal:
        assert len(str(refusal)) > 40
        return
    variables = dlrmv4.environment(found, judgement.settings)
    theirs = trained(variables, found.model, found.cluster)
    for table in ran.tables:
        ranks = [rank for block in table.ranks for rank in block]
        assert ranks == [*theirs[table.name].ranks]


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
