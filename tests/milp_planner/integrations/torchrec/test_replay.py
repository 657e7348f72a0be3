"""The replay of pinned tables against TorchRec's own planner, on drawn settings.

Exports of shipped DLRMv4 models, through TorchRec's planner as the DLRMv4 trainer calls it.
"""

import random
from dataclasses import replace
from typing import Any

import pytest

from milp_planner import plan
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports
from milp_planner.integrations.exports import dlrmv4
from milp_planner.integrations.replay import proposals
from milp_planner.integrations.replay.estimate import (
    GIB,
    Asked,
    Job,
    asked_of,
    machines_of,
    shards_of,
)
from milp_planner.integrations.replay.greedy import partition, room_of
from milp_planner.integrations.replay.judge import cost_of, judge, placed
from milp_planner.integrations.replay.plan_for import plan_for
from milp_planner.plans.placement import Plan
from scenarios import catalog
from tests.milp_planner.integrations.replay.test_published import (
    CUT,
    FOUR,
    HOSTED,
    ONE,
    ROWS,
    SMALL,
    pinned,
)
from tests.milp_planner.integrations.torchrec.pinned import (
    choice_of,
    decided,
    enumerated,
    planned,
)
from tests.milp_planner.integrations.torchrec.trainer import trained

BAGS = ("data_parallel", "table_wise", "column_wise", "row_wise", "table_row_wise",
        "table_column_wise", "grid_shard")  # fmt: skip
SEQUENCES = BAGS[:4]
KERNELS = ("fused", "fused", "fused", "fused_uvm", "fused_uvm_caching")


def drawn(draw: random.Random) -> tuple[list[Asked], Job, int, int]:
    """Tables with pinned types and kernels, machines, and bytes of HBM and DDR of a rank."""
    machines, local = draw.choice([(1, 2), (1, 4), (1, 8), (2, 4), (4, 2), (3, 4), (4, 8)])
    pooled = draw.random() < 0.6
    weighted = pooled and draw.random() < 0.2
    found, dims = [], (16, 64, 128, 192, 512)
    dims = dims if pooled else (draw.choice(dims),)
    for index in range(draw.randint(2, 14)):
        kind = draw.choice(BAGS if pooled else SEQUENCES)
        kernel = "dense" if kind == "data_parallel" else draw.choice(KERNELS)
        found.append(
            Asked(
                name=f"t{index}",
                rows=draw.choice([5, 1000, 1000, 40_000, 777_777]),
                dim=draw.choice(dims),
                element_bytes=4,
                optimizer=draw.choice(["sgd", "adam", "adagrad", "rowwise_adagrad"]),
                sharding_type=kind,
                kernel=kernel,
                pooled=pooled,
                weighted=weighted,
            )
        )
    wire = draw.choice([None, (2.0, 2.0)])
    job = Job(machines * local, local, draw.choice([64, 512]), wire)
    size = sum(4 * t.rows * t.dim for t in found)
    room = int(size * draw.choice([0.2, 0.6, 3.0])) + 2**28
    return found, job, room, int(size * draw.choice([0.0, 0.5, 3.0]))


@pytest.mark.parametrize("seed", range(20))
def test_estimates_are_torchrecs(seed: int) -> None:
    """Bytes and times of every shard, digit for digit: ranks alone seldom tell."""
    tables, job, *_ = drawn(random.Random(seed))
    own = {table.name: shards_of(table, job) for table in tables}
    for option in enumerated(tables, job):
        theirs = [
            (
                (shard.storage.hbm, shard.storage.ddr),
                (perf.fwd_compute, perf.bwd_compute, perf.fwd_comms, perf.bwd_comms),
            )
            for shard, perf in ((shard, shard.perf) for shard in option.shards)
        ]
        assert [(tuple(storage), tuple(perf)) for storage, perf in own[option.name]] == theirs


@pytest.mark.parametrize("seed", range(40))
def test_replay_is_torchrecs(seed: int) -> None:
    """Every shard has TorchRec's rank, or neither finds a plan."""
    from torchrec.distributed.planner.types import PlannerError

    tables, job, hbm, ddr = drawn(random.Random(seed))
    try:
        theirs = planned(tables, job, hbm, ddr)
    except PlannerError:
        with pytest.raises(FallsShort, match="finds no rank"):
            partition(tables, job, room_of(hbm, ddr, tables, job.batch))
        return
    assert partition(tables, job, room_of(hbm, ddr, tables, job.batch)) == theirs


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_open_is_torchrecs_choice(seed: int) -> None:
    """Types or kernels of some tables are left to TorchRec's proposers: its types, kernels and
    ranks, or neither finds a plan."""
    from torchrec.distributed.planner import ParameterConstraints
    from torchrec.distributed.planner.types import PlannerError

    draw = random.Random(seed)
    tables, job, hbm, ddr = drawn(draw)
    tables = [replace(t, pooled=False, weighted=False, dim=128) for t in tables]
    spaces, constraints = [], {}
    for table in tables:
        kind = draw.choice([None, *SEQUENCES])
        kernel = draw.choice([None, "fused", "fused", "fused_uvm", "fused_uvm_caching"])
        kernel = None if kind == "data_parallel" else kernel
        spaces.append([
            replace(table, sharding_type=each, kernel=own)
            for each in ([kind] if kind else SEQUENCES)
            for own in ((["dense"] if kernel is None else []) if each == "data_parallel"
                        else [kernel] if kernel else dict.fromkeys(KERNELS))
        ])  # fmt: skip
        constraints[table.name] = ParameterConstraints(
            sharding_types=[kind] if kind else None, compute_kernels=[kernel] if kernel else None,
        )  # fmt: skip
    room = room_of(hbm, ddr, tables, job.batch)
    try:
        theirs = decided(tables, job, hbm, ddr, constraints)
    except PlannerError:
        with pytest.raises(FallsShort, match="finds no rank"):
            proposals.plan(spaces, job, room)
        return
    options, ranks = proposals.plan(spaces, job, room)
    assert {o.name: (o.sharding_type, o.kernel, ranks[o.name]) for o in options} == theirs


@pytest.mark.parametrize(
    ("job", "cap", "ddr", "tables", "constraints"),
    [
        (ONE, 260, 0, pinned(CUT), {}),
        (ONE, 84, 0, pinned(rest="row_wise"), {}),
        (ONE, 90, 0, pinned(tuple(ROWS)), {}),
        (FOUR, 260, 0, pinned(rest="row_wise"), {}),
        (Job(4, 4, 512, (2.0, 2.0)), 260, 0, pinned(SMALL), None),
        (ONE, 90, 128 * GIB, pinned(CUT, HOSTED), None),
    ],
)
def test_published_layouts(
    job: Job, cap: int, ddr: int, tables: list[Asked], constraints: dict[str, Any] | None
) -> None:
    """TorchRec's own ranks, as the logs have them: with nothing pinned (no constraints), where the
    cap alone decides, and with all tables pinned, two of them in DDR."""
    theirs = planned(tables, job, cap * GIB, ddr, constraints)
    assert partition(tables, job, room_of(cap * GIB, ddr, tables, 512)) == theirs


MODELS = [entry.name for entry in catalog.models() if entry.name.startswith("dlrmv4")]
CLUSTERS = [entry.name for entry in catalog.clusters()]


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
            work_limit=50,
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
    assert not alone.verdict.feasible or cost_of(alone) >= cost_of(found)
