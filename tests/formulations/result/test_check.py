"""The solver-free check, against sums done by hand."""

from dataclasses import replace

import numpy as np
import pytest

from formulations import Objective, Placement, check
from formulations.instance import Current, Instance, Pin
from tests.formulations.examples import every_kind, two_modes


def place(
    instance: Instance, ranks: list[list[list[int]]], options: list[int] | None = None
) -> Placement:
    """A placement from plain lists; by default the first option of every table."""
    chosen = instance.table_options[:-1] if options is None else np.asarray(options)
    return Placement(
        chosen.astype(np.int64), [[np.asarray(b, dtype=np.int64) for b in t] for t in ranks]
    )


GOOD = [[[0, 1, 2, 3]], [[0, 0]], [[2, 3]], [[1, 0]], [[3, 1]], [[]]]


def test_loads_and_objectives_of_every_kind_of_place() -> None:
    """Costs and uses of all six kinds land where a hand calculation puts them."""
    verdict = check(every_kind(), place(every_kind(), GOOD))
    assert verdict.feasible, verdict.violations
    assert verdict.loads is not None
    assert verdict.loads.cost.tolist() == [[8, 11], [2, 11], [6, 2], [14, 1]]
    assert verdict.loads.unplaced_cost.tolist() == [200, 0]
    hbm, ddr, links = (u.tolist() for u in verdict.loads.use)
    assert hbm == [57, 17, 11, 9]
    assert ddr == [10, 115]
    assert links == [8]
    assert verdict.objectives == {"total": 255, "busiest_rank": 19, "step_time": 25}


@pytest.mark.parametrize(
    ("table", "ranks", "says"),
    [
        (0, [0, 1, 2], "all ranks in order"),
        (1, [0], "1 ranks for 2 shards"),
        (1, [0, 4], "not all in 0…3"),
        (2, [1, 2], "whole machines"),
        (2, [0, 1, 2, 3], "2 machines where 1"),
        (3, [1, 2], "one machine"),
        (3, [1, 1], "different ranks"),
        (4, [1, 3], "differ from its list"),
        (5, [0], "no ranks"),
    ],
)
def test_misplaced_shards_are_named(table: int, ranks: list[int], says: str) -> None:
    """A block on ranks its kind of place does not allow is a violation that says why."""
    lists = [*GOOD]
    lists[table] = [ranks]
    verdict = check(every_kind(), place(every_kind(), lists))
    assert not verdict.feasible
    assert says in verdict.violations[0]
    assert verdict.objectives == {}


def test_capacity_is_exact_to_the_byte() -> None:
    """A use equal to the capacity passes; one byte less capacity is one violation naming it."""
    plan = [[[0]], [[0]]]
    mixed = [0, 3]
    exact = two_modes(hbm=12, ddr=12)
    assert check(exact, place(exact, plan, mixed)).feasible
    short = two_modes(hbm=11, ddr=12)
    verdict = check(short, place(short, plan, mixed))
    assert verdict.violations == ("hbm of rank 0: 12 used, 11 there, 1 too much",)


def test_fusion_needs_one_level_a_group() -> None:
    """Two tables of one group at different levels are a violation; at one level they are not."""
    base = two_modes(100, 100)
    fused = replace(
        base,
        fusion_groups=("g",),
        option_group=np.asarray([0, 0, 0, -1]),
        option_level=np.asarray([1, 2, 2, 0]),
    )
    plan = [[[0]], [[0]]]
    assert "levels [1, 2]" in check(fused, place(fused, plan, [0, 2])).violations[0]
    assert check(fused, place(fused, plan, [1, 2])).feasible
    assert check(fused, place(fused, plan, [0, 3])).feasible


def test_pins_and_forbidden_options() -> None:
    """A pinned table elsewhere, or a forbidden option, is a violation."""
    base = two_modes(100, 100)
    plan = [[[0]], [[0]]]
    pinned = replace(base, pins=(Pin(0, 1, ((0,),)),))
    assert not check(pinned, place(pinned, plan, [0, 2])).feasible
    assert check(pinned, place(pinned, plan, [1, 2])).feasible
    forbidden = replace(base, forbidden=((1, 2),))
    assert not check(forbidden, place(forbidden, plan, [0, 2])).feasible


def test_pinned_ranks_compare_as_multisets() -> None:
    """The same ranks in another order honour a pin; other ranks do not."""
    instance = replace(every_kind(), pins=(Pin(1, 1, ((1, 0),)),))
    lists = [*GOOD]
    lists[1] = [[0, 1]]
    assert check(instance, place(instance, lists)).feasible
    assert "pinned ranks" in check(instance, place(instance, GOOD)).violations[0]


def test_moves_count_tables_and_bytes() -> None:
    """A table moves when its option or multiset of ranks changes; absent tables are free."""
    instance = every_kind()
    instance = replace(
        instance,
        shard_move=np.full_like(instance.shard_move, 10),
        current=(Current(1, 1, ((1, 0),)), Current(3, 3, ((2, 3),))),
        max_moved_tables=1,
        max_moved_bytes=30,
    )
    lists = [*GOOD]
    lists[1] = [[0, 1]]  # stays; table 3 moves: two shards, 20 bytes
    assert check(instance, place(instance, lists)).feasible
    moved = check(instance, place(instance, GOOD)).violations
    assert moved == ("2 tables move, 1 may", "40 bytes move, 30 may")


def test_objective_names_are_those_of_the_instance() -> None:
    """Every objective of the same phases is computed; a pipelined step has phases of its own."""
    verdict = check(every_kind(), place(every_kind(), GOOD))
    assert set(verdict.objectives) == {"total", "busiest_rank", "step_time"}
    pipelined = replace(every_kind(), objective=Objective.PIPELINED_STEP, hidden=(5, 11))
    # peaks of 14 and 11, by the first test
    assert check(pipelined, place(pipelined, GOOD)).objectives == {"pipelined_step": 9}


def test_every_malformed_table_is_named() -> None:
    """The second and the fifth table are on ranks that they cannot take: two sentences, by name."""
    lists = [*GOOD]
    lists[1], lists[4] = [[0]], [[1, 3]]
    violations = check(every_kind(), place(every_kind(), lists)).violations
    assert len(violations) == 2
    assert violations[0].startswith("table 'any', option 'cw': ")
    assert violations[1].startswith("table 'listed', option 'list': ")


def test_a_foreign_option_does_not_hide_what_follows() -> None:
    """An option of another table is one sentence, and later tables are still looked at."""
    lists = [*GOOD]
    lists[4] = [[1, 3]]
    violations = check(every_kind(), place(every_kind(), lists, [0, 0, 2, 3, 4, 5])).violations
    assert [text.partition(":")[0].partition(",")[0] for text in violations] == [
        "table 'any'", "table 'listed'"]  # fmt: skip


def test_ranks_of_every_table_are_needed() -> None:
    """Six options, but ranks of five tables: a violation, not an exception."""
    verdict = check(every_kind(), place(every_kind(), GOOD[:5]))
    assert verdict.violations == (
        "the placement has options of 6 and ranks of 5 tables, the instance 6 tables",
    )


def test_a_capacity_of_the_cluster_has_no_place() -> None:
    """Three shards of 4 links where 9 are there: the sentence names no place."""
    instance = every_kind()
    counts = instance.block_count.copy()
    counts[-1] = 3
    verdict = check(replace(instance, block_count=counts), place(instance, GOOD))
    assert verdict.violations == ("links of cluster: 12 used, 9 there, 3 too much",)
