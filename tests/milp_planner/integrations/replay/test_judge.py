"""What a trainer runs of a plan: price, memory, differences, and what is refused.

FBGEMM's shared caches: factors and widths that run instead of those of a plan.

Plans are compared up to ranks and machines that are interchangeable.
"""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs import Cluster
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports, replay
from milp_planner.integrations.replay.caches import padding, shared
from milp_planner.integrations.replay.judge import differences, judge
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import cache_warnings
from milp_planner.start.rows import pins_of
from tests.milp_planner.integrations.exports import plans

#: Two tables of 512 columns, as long sequences: where their shards are decides the price.
BUSY = {"dim": 512, "output": "sequence", "sequence_length": 400.0}


def busy(choose: dict[str, str], seed: int = 0, hbm: str = "80GiB") -> Plan:
    """A plan of two busy tables and a small one on four ranks."""
    tables = [plans.static(name, 200_000, **BUSY) for name in ("a", "b")]
    planned = plans.model(*tables, plans.static("c", 10, 512))
    return plans.plan_of(planned, choose, plans.cluster(1, 4, hbm), seed)


def test_on_all_ranks_is_exact() -> None:
    """Row-wise and data-parallel tables run as planned."""
    plan = busy({"a": "row_wise/HBM_ONLY", "b": "row_wise/HBM_ONLY", "c": "data_parallel/HBM_ONLY"})
    for to in ("dlrmv4", "tzrec", "torchrec"):
        judgement, ran = judge(plan, to)
        assert judgement.exact and judgement.runs == judgement.planned
        assert judgement.fullest == judgement.planned_fullest
        assert [t.ranks for t in ran.tables] == [t.ranks for t in plan.tables]
        assert "what runs is this plan" in " ".join(judgement.sentences())


def test_another_width_is_the_first_reason() -> None:
    """Two shards of 256 columns become four of 128, one on each rank: hand-computed."""
    plan = busy({"a": "column_wise:2/HBM_ONLY", "b": "row_wise/HBM_ONLY"})
    judgement, ran = judge(plan, "dlrmv4")
    [a] = [each for each in judgement.differ if each.table == "a"]
    assert (a.reason, a.planned, a.runs) == (
        "width", "2 shards of 256 columns", "4 shards of 128 columns",
    )  # fmt: skip
    assert sorted(r for block in ran.table("a").ranks for r in block) == [0, 1, 2, 3]
    assert not judgement.exact and judgement.runs != judgement.planned
    first = next(judgement.sentences())
    assert "the trainer's planner will run this as" in first and "the plan says" in first


def test_equal_prices_put_tables_in_order_of_their_bytes() -> None:
    """Table-wise tables of one price go to ranks 0, 1, 2 by size, wherever we planned them."""
    whole = "table_wise/HBM_ONLY"
    _, ran = judge(busy({"a": whole, "b": whole, "c": whole}, seed=3), "dlrmv4")
    assert [t.ranks for t in ran.tables] == [((0,),), ((1,),), ((2,),)]


def test_no_room_by_the_trainers_count_is_refused() -> None:
    """392 MiB fit into 95% of 430 MiB, but not into the 85% that its planner takes."""
    document = {**plans.cluster(1, 4, "430MiB").to_dict(), "reservations": {"hbm_percent": 5}}
    on = Cluster.from_dict(document)
    planned = plans.model(plans.static("a", 200_000, 512))
    with pytest.raises(FallsShort, match=r"for a shard of 'a'.* counts 391.9 MiB"):
        judge(plans.plan_of(planned, {"a": "table_wise/HBM_ONLY"}, on), "tzrec")


def test_a_grid_of_one_column_is_by_row() -> None:
    """TorchRec cuts no table of 128 columns: the grid that we planned runs as table_row_wise."""
    tables = [plans.static("a", 4000, 128, constraints={"column_widths": [64]})]
    plan = plans.plan_of(plans.model(*tables), {"a": "grid_shard:2/HBM_ONLY"}, plans.cluster(3, 2))
    judgement, ran = judge(plan, "tzrec")
    assert ran.table("a").sharding_type == "table_row_wise"
    assert [d.reason for d in judgement.differ] == ["type"]


def test_a_plan_of_another_version_is_compared_at_todays_prices() -> None:
    """An earlier version's cost is not set beside what this version says of what runs."""
    plan = busy({"a": "row_wise/HBM_ONLY", "b": "row_wise/HBM_ONLY", "c": "row_wise/HBM_ONLY"})
    dear = replace(plan.instance, shard_cost=plan.instance.shard_cost * 2)
    objective = 2 * (plan.outcome.objective or 0)
    old = replace(
        plan,
        instance=dear,
        version="0.1.0",
        outcome=plan.outcome.with_(objective=objective or None),
    )
    judgement, _ = judge(old, "dlrmv4")
    assert judgement.planned == judgement.runs


def test_host_memory_of_tzrec() -> None:
    """A cached table runs at TorchRec's load factor of 0.2, the only one without a field."""
    plan = busy({"a": "row_wise/CACHING/0.5", "b": "row_wise/HOST_ONLY"})
    judgement, ran = judge(plan, "tzrec")
    assert [(d.table, d.reason, d.runs) for d in judgement.differ] == [("a", "ratio", "1/5")]
    assert ran.table("b").mode == "HOST_ONLY"


def test_dynamicemb_tables_of_tzrec_are_said_to_be_open() -> None:
    """Their mode and ratio are its proposer's choice."""
    plan = plans.chosen_plan(
        {"d": "row_wise/HYBRID/0.5/roundrobin"}, plans.static("a"), plans.dynamic("d")
    )
    judgement, _ = judge(plan, "tzrec")
    first, second = judgement.sentences()
    assert "mode and ratio of 1 dynamicemb tables" in first and second.startswith("otherwise what")
    assert not judgement.exact
    assert "cache_load_factor" not in exports.write(plan, "tzrec")


def test_unequal_machines_have_no_topology() -> None:
    """TorchRec's Topology knows one number of ranks a machine."""
    document = plans.cluster(2, 2).to_dict()
    document["machines"][1]["ranks"].pop()
    on = Cluster.from_dict(document)
    plan = plans.chosen_plan({"a": "table_wise/HBM_ONLY"}, plans.static("a"), on=on)
    with pytest.raises(FallsShort, match="same number of ranks"):
        judge(plan, "dlrmv4")


def test_every_format_has_a_trainer() -> None:
    """What can be exported can be judged; unknown names get the nearest."""
    assert set(replay.TRAINERS) == set(exports.FORMATS)
    with pytest.raises(BadInput, match="did you mean tzrec"):
        replay.get("tzreck")


WHOLE = "table_wise/CACHING/0."


def together(hbm: str = "80GiB", ratios: tuple[int, int] = (3, 5), **narrow: Any) -> Plan:
    """Two cached tables of 3,000 and 1,000 rows on the first of two ranks."""
    tables = plans.static("a", 3000, **narrow), plans.static("b", 1000)
    choose = {name: f"{WHOLE}{ratio}" for name, ratio in zip("ab", ratios, strict=True)}
    found = (
        plans.plan_of(plans.model(*tables), choose, plans.cluster(1, 2, hbm), seed)
        for seed in range(50)
    )
    return next(plan for plan in found if [t.ranks for t in plan.tables] == [((0,),)] * 2)


def room(plan: Plan) -> int:
    """Bytes that a plan leaves on the first rank."""
    ledger = ledger_of(plan)
    return ledger.hbm[0].room


def test_a_kernel_has_the_mean_of_its_factors_by_rows() -> None:
    """(0.3 · 3,000 + 0.5 · 1,000)/4,000 = 0.35; the export says so, and is not exact."""
    judgement, ran = judge(together(), "torchrec")
    assert [t.cache_ratio for t in ran.tables] == [Fraction(35, 100)] * 2
    assert [(d.table, d.reason, d.runs) for d in judgement.differ] == [
        ("a", "ratio", "7/20"), ("b", "ratio", "7/20"),
    ]  # fmt: skip
    same, _ = judge(together(ratios=(4, 4)), "torchrec")
    assert same.exact


def test_plan_warns_of_other_factors() -> None:
    """``plan`` names the tables whose ratios their kernel does not keep, and no others."""
    (warning,) = cache_warnings(together())
    assert "a (0.3 becomes 0.35), b (0.5 becomes 0.35)" in warning
    assert cache_warnings(together(ratios=(4, 4))) == []


@pytest.mark.parametrize(("field", "value"), [("dtype", "fp16"), ("optimizer", "sgd")])
def test_other_kernels_have_caches_of_their_own(field: str, value: str) -> None:
    """Tables of another type or optimizer keep their factors."""
    judgement, _ = judge(together(**{field: value}), "torchrec")
    assert judgement.exact


def test_what_torchrec_itself_makes_of_the_factors() -> None:
    """``group_tables`` gives the one kernel of the rank the mean that we say."""
    sharding = pytest.importorskip("torchrec.distributed.embedding_sharding")
    types = pytest.importorskip("torchrec.distributed.embedding_types")
    configs = pytest.importorskip("torchrec.modules.embedding_configs")
    tables = [
        types.ShardedEmbeddingTable(
            num_embeddings=rows, embedding_dim=128, name=name, embedding_names=[name],
            feature_names=[name], data_type=configs.DataType.FP32, is_weighted=False,
            pooling=configs.PoolingType.SUM, local_rows=rows, local_cols=128,
            compute_kernel=types.EmbeddingComputeKernel.FUSED_UVM_CACHING,
            fused_params={"cache_load_factor": factor},
        )
        for name, rows, factor in (("a", 3000, 0.3), ("b", 1000, 0.5))
    ]  # fmt: skip
    [[group]] = sharding.group_tables([tables])
    pins, _ = shared(pins_of(together()), together().model)
    assert float(pins["a"].cache_ratio or 0) == pytest.approx(
        group.fused_params["cache_load_factor"]
    )


def test_shards_beside_different_tables_are_named() -> None:
    """Of a column-wise table each shard has the factor of its rank's kernel."""
    model = plans.model(*(plans.static(name, 1000, 256) for name in "abc"))

    def pin(ratio: str, *ranks: int) -> PinSpec:
        return PinSpec(
            mode="CACHING", sharding_type="column_wise", column_width=128,
            cache_ratio=Fraction(ratio), ranks=ranks,
        )  # fmt: skip

    pins = {"a": pin("0.3", 0, 1), "b": pin("0.5", 1, 2), "c": pin("0.5", 2, 3)}
    found, said = shared(pins, model)
    assert {name: each.cache_ratio for name, each in found.items()} == {
        "a": Fraction(3, 10), "b": Fraction(1, 2), "c": Fraction(1, 2),
    }  # fmt: skip
    assert "a (0.3 to 0.4), b (0.4 to 0.5)" in said[0]


def test_rows_are_as_wide_as_the_widest() -> None:
    """Half of 3,000 rows of 64 floats beside a table of 128: 64 more floats for each; refused
    where that is not left."""
    plan = together(ratios=(5, 5), dim=64)
    assert padding(plan) == {0: 1500 * 64 * 4}
    judgement, _ = judge(plan, "torchrec")
    assert "375.0 KiB more than planned on rank 0" in judgement.kept
    large, small = (room(together(f"{n}GiB", (5, 5), dim=64)) for n in (80, 40))
    tight = 40 * 2**30 - (small - 100_000) * 40 * 2**30 // (large - small)
    assert 0 < room(together(f"{tight}B", (5, 5), dim=64)) < 1500 * 64 * 4
    with pytest.raises(FallsShort, match=r"as its widest table: 375\.0 KiB more on rank 0"):
        judge(together(f"{tight}B", (5, 5), dim=64), "torchrec")


TABLES = [plans.static(f"t{i}", dim=128) for i in range(4)]
CHOSEN = {"t0": "column_wise:2/HBM_ONLY", "t1": "table_wise/HBM_ONLY",
          "t2": "table_wise/HBM_ONLY", "t3": "row_wise/HBM_ONLY"}  # fmt: skip


def placed(
    ranks: dict[str, list[int]], chosen: dict[str, str] | None = None, on: Cluster | None = None
) -> Plan:
    """A plan on two machines of two ranks with these ranks."""
    return plans.on_ranks(plans.chosen_plan(chosen or CHOSEN, *TABLES, on=on), ranks)


HOME: dict[str, list[int]] = {"t0": [0, 2], "t1": [0], "t2": [3]}


@pytest.mark.parametrize(
    ("ranks", "differ"),
    [
        ({"t0": [0, 1], "t1": [0], "t2": [3]}, {"t0", "t1", "t2"}),  # one machine, not two
        ({"t0": [0, 0], "t1": [1], "t2": [3]}, {"t0", "t1", "t2"}),  # two shards on a rank
        ({"t0": [0, 2], "t1": [1], "t2": [3]}, {"t0", "t1"}),  # t1 no longer beside t0
    ],
)
def test_company_counts(ranks: dict[str, list[int]], differ: set[str]) -> None:
    """A table differs by rank if other shards are on its rank or machine."""
    found = differences(placed(HOME), placed(ranks))
    assert differ <= {each.table for each in found}
    assert {each.reason for each in found} == {"rank"}


@pytest.mark.parametrize(
    ("option", "reason", "words"),
    [
        ("table_wise/HBM_ONLY", "type", "table_wise"),
        ("column_wise:2/HOST_ONLY", "mode", "HOST_ONLY"),
        ("column_wise:4/HBM_ONLY", "width", "4 shards of 32 columns"),
    ],
)
def test_the_first_reason_is_named(option: str, reason: str, words: str) -> None:
    """Type before mode before width before rank."""
    other = placed({}, {**CHOSEN, "t0": option})
    found = {each.table: each for each in differences(placed(HOME), other)}["t0"]
    assert (found.reason, found.runs) == (reason, words)


def test_unequal_ranks_are_not_exchanged() -> None:
    """On ranks of different memory the same exchange is a difference."""
    document: dict[str, Any] = plans.cluster().to_dict()
    document["machines"][0]["ranks"][1]["hbm"] = "40GiB"
    mixed = Cluster.from_dict(document)
    here, there = (placed(ranks, on=mixed) for ranks in (HOME, {**HOME, "t0": [1, 2], "t1": [1]}))
    assert differences(here, there)


@pytest.mark.parametrize("seed", range(30))
def test_any_exchange_of_like_ranks_is_no_difference(seed: int) -> None:
    """Property: permute machines, ranks within each, and the shards of a table of a random plan."""
    draw = random.Random(seed)
    ranks = {"t0": [draw.randrange(4), draw.randrange(4)], "t1": [draw.randrange(4)],
             "t2": [draw.randrange(4)]}  # fmt: skip
    machines = draw.sample([[0, 1], [2, 3]], 2)
    to = [rank for machine in machines for rank in draw.sample(machine, 2)]
    moved = {n: draw.sample([to[rank] for rank in own], len(own)) for n, own in ranks.items()}
    assert differences(placed(ranks), placed(moved)) == ()
