"""Which formulation ``auto`` picks."""

from __future__ import annotations

from formulations.auto import placement_variables
from formulations.build import Block, InstanceBuilder, Shard
from formulations.instance import Instance, Where
from formulations.settings import Settings
from formulations.solve import solve


def _instance(where: Where, tables: int = 3) -> Instance:
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    for table in range(tables):
        builder.add_table(f"t{table}")
        builder.add_option("o", [Block(where, [Shard({"hbm": 1}, [5])])])
        builder.add_option("worse", [Block(where, [Shard({"hbm": 1}, [6])])])
    return builder.build()


def test_counts_places_of_options_worth_keeping() -> None:
    """Three tables with one undominated option each: 4 ranks, or 2 machines, to choose from."""
    assert placement_variables(_instance(Where.EVERY_RANK)) == 0
    assert placement_variables(_instance(Where.ANY_RANK)) == 12
    assert placement_variables(_instance(Where.ONE_MACHINE)) == 6


def test_small_instances_are_solved_exactly() -> None:
    """Three shards of cost 5 on four ranks: proved at 5, under the name the caller asked for."""
    outcome = solve(_instance(Where.ANY_RANK), "auto", Settings(workers=1, time_limit=20))
    assert outcome.status == "optimal"
    assert outcome.objective == 5
    assert outcome.formulation == "auto"
    assert outcome.solver == "CP-SAT"
