"""The replay of pinned tables against TorchRec's own planner, on drawn settings.

Exports of shipped DLRMv4 models, through TorchRec's planner as the DLRMv4 trainer calls it.
"""

import random
from dataclasses import replace

import pytest

from milp_planner import plan
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports
from milp_planner.integrations.exports import dlrmv4
from milp_planner.integrations.replay import proposals
from milp_planner.integrations.replay.estimate import GIB, Asked, Job, asked_of, machines_of
from milp_planner.integrations.replay.greedy import partition, room_of
from milp_planner.integrations.replay.judge import cost_of, judge, placed
from milp_planner.integrations.replay.plan_for import plan_for
from milp_planner.plans.placement import Plan
from scenarios import catalog
from tests.milp_planner.integrations.replay.test_published import CUT, ROWS, layout
from tests.milp_planner.integrations.torchrec.pinned import choice_of, decided, planned
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
                lengths=tuple(draw.choice([0.5, 1.0, 3.0]) for _ in range(draw.randint(1, 3))),
                weighted=weighted,
                min_partition=draw.choice([None, None, 32, 64, 256]),
                load_factor=draw.choice([None, 0.3]) if kernel == "fused_uvm_caching" else None,
            )
        )
    wire = draw.choice([None, (2.0, 2.0)])
    job = Job(machines * local, local, draw.choice([64, 512]), wire)
    size = sum(4 * t.rows * t.dim for t in found)
    room = int(size * draw.choice([0.2, 0.6, 3.0])) + 2**28
    return found, job, room, int(size * draw.choice([0.0, 0.5, 3.0]))


@pytest.mark.parametrize("seed", range(120))
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


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_open_is_torchrecs_choice(seed: int) -> None:
    """Types or kernels of some tables are left to TorchRec's proposers: its types, kernels and
    ranks, or neither finds a plan."""
    from torchrec.distributed.planner import ParameterConstraints
    from torchrec.distributed.planner.types import PlannerError

    draw = random.Random(seed)
    tables, job, hbm, ddr = drawn(draw)
    tables = [replace(t, pooled=False, weighted=False, dim=128, load_factor=None) for t in tables]
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
            min_partition=table.min_partition, pooling_factors=[*table.lengths],
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


def test_published_layout_with_nothing_pinned() -> None:
    """8 ranks, cap 260: TorchRec cuts three tables, and pinning its choice gives the same ranks."""
    tables = [
        Asked(name, rows, 512, 4, "rowwise_adagrad",
              "column_wise" if name in CUT else "table_wise", "fused")
        for name, rows in ROWS.items()
    ]  # fmt: skip
    job = Job(8, 8, 512, (2.0, 2.0))
    theirs = planned(tables, job, 260 * GIB, 0, {})
    assert {name for name, ranks in theirs.items() if len(ranks) == 4} == {*CUT}
    assert partition(tables, job, room_of(260 * GIB, 0, tables, 512)) == theirs


@pytest.mark.parametrize(("cap", "kind"), [(84, "row_wise"), (90, "column_wise")])
def test_the_cap_moves_what_is_not_pinned(cap: int, kind: str) -> None:
    """At 84 GiB all tables become row-wise, at 90 all are cut: only the cap differs."""
    tables = [
        Asked(name, rows, 512, 4, "rowwise_adagrad", "table_wise", "fused")
        for name, rows in ROWS.items()
    ]
    theirs = planned(tables, Job(8, 8, 512, (2.0, 2.0)), cap * GIB, 0, {})
    assert {len(ranks) for ranks in theirs.values()} == {8 if kind == "row_wise" else 4}


def test_published_layout_on_four_machines() -> None:
    """32 ranks, nothing set: TorchRec's own choice is all row-wise, as the log says."""
    tables = [
        Asked(name, rows, 512, 4, "rowwise_adagrad", "row_wise", "fused")
        for name, rows in ROWS.items()
    ]
    job = Job(32, 8, 512, (2.0, 2.0))
    theirs = planned(tables, job, 260 * GIB, 0, {})
    assert set(theirs.values()) == {tuple(range(32))}
    assert partition(tables, job, room_of(260 * GIB, 0, tables, 512)) == theirs


@pytest.mark.parametrize("four", [True, False])
def test_published_layouts_pinned(four: bool) -> None:
    """4 ranks with all tables pinned; 8 ranks at a cap of 90 GiB with two tables in DDR."""
    if four:
        job, cap, ddr = Job(4, 4, 512, (2.0, 2.0)), 260, 0
        cut, hosted = ("artist_id", "uid", "user_x_is_organic"), ()
    else:
        job, cap, ddr = Job(8, 8, 512, (2.0, 2.0)), 90, 128 * GIB
        cut, hosted = CUT, ("user_x_artist_x_hour", "artist_x_hour")
    tables = [
        Asked(name, rows, 512, 4, "rowwise_adagrad",
              "column_wise" if name in cut else "table_wise",
              "fused_uvm_caching" if name in hosted else "fused")
        for name, rows in ROWS.items()
    ]  # fmt: skip
    theirs = planned(tables, job, cap * GIB, ddr)
    assert theirs == layout(job, cap, cut, hosted, ddr)[0]


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
