"""What a trainer runs of a plan: price, memory, differences, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs import Cluster
from milp_planner.integrations import exports, replay
from milp_planner.integrations.replay.judge import judge
from milp_planner.plans.placement import Plan
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


def test_what_does_not_fit_by_our_ledger_is_refused() -> None:
    """Five tables of one price by the trainer's count, on four ranks: the smallest joins the
    largest, and both return long sequences."""
    tables = [
        plans.static(name, rows, 512, output="sequence", sequence_length=length)
        for name, rows, length in (
            ("a", 9000, 4000.0), ("b", 8000, 1.0), ("c", 7000, 1.0), ("d", 6000, 1.0),
            ("e", 5000, 4000.0),
        )
    ]  # fmt: skip
    whole = dict.fromkeys("abcde", "table_wise/HBM_ONLY")
    plan = plans.plan_of(plans.model(*tables), whole, plans.cluster(1, 4, "8GiB"))
    plan = plans.on_ranks(plan, {"a": [0], "b": [2], "c": [2], "d": [2], "e": [1]})
    with pytest.raises(FallsShort, match=r"does not fit: .*rank 0"):
        judge(plan, "dlrmv4")


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
