"""The uniform proposer: every table the same kind of option."""

from __future__ import annotations

from formulations import Block, InstanceBuilder, Objective, Settings, Shard, Status, Where, solve
from formulations.baselines.partition.proposals import option_kind
from tests.formulations.examples import two_modes


def kinds(names_costs: list[list[tuple[str, int]]]) -> InstanceBuilder:
    """Tables with row-wise options of the given names and costs on one rank."""
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 99)], Objective.BUSIEST_RANK)
    for index, options in enumerate(names_costs):
        builder.add_table(f"t{index}")
        for name, cost in options:
            builder.add_option(name, [Block(Where.EVERY_RANK, [Shard({"hbm": 1}, (cost,))])])
    return builder


def test_best_of_each_kind() -> None:
    """Kinds that every table has are compared, each table at its best option of that kind."""
    instance = kinds(
        [
            [("rw/fused", 5), ("rw/uvm", 3), ("cw:8/fused", 1)],
            [("rw/fused", 4), ("tw/fused", 1), ("cw:4/fused", 2)],
        ]
    ).build()
    outcome = solve(instance, "uniform", Settings(certificate=False))
    assert outcome.placement is not None
    chosen = [instance.option_names[o] for o in outcome.placement.options]
    assert chosen == ["cw:8/fused", "cw:4/fused"]
    assert outcome.detail["proposed"] == 2


def test_no_common_kind_finds_nothing() -> None:
    """Where no kind is shared by all tables nothing is proposed; that is no proof."""
    instance = kinds([[("a", 1)], [("b", 1)]]).build()
    outcome = solve(instance, "uniform", Settings(certificate=False))
    assert (outcome.status, outcome.detail["proposed"]) == (Status.UNKNOWN, 0)


def test_headline_case_is_out_of_reach() -> None:
    """One of each mode is no uniform plan: found nothing, and says that it proves nothing."""
    outcome = solve(two_modes(), "uniform", Settings(certificate=False))
    assert outcome.status == Status.UNKNOWN
    assert "proves nothing" in outcome.note


def test_empty_model() -> None:
    """No table: the empty plan."""
    empty = kinds([]).build()
    assert solve(empty, "uniform", Settings(certificate=False)).objective == 0


def test_kind_is_the_name_before_a_separator() -> None:
    """The sharding type of names that our pricing and the TorchRec import write."""
    assert option_kind("column_wise:16/HBM_ONLY") == "column_wise"
    assert option_kind("row_wise/CACHING/0.3") == "row_wise"
    assert option_kind("plain") == "plain"
