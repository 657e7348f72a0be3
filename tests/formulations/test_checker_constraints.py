"""The stand-alone checker's plan check by hand: each constraint, and a plan that breaks it."""

import json
from pathlib import Path

import pytest

from formulations import checker
from tests.formulations.by_hand import (
    Document,
    block,
    bound,
    exactly,
    infeasible,
    instance,
    option,
    proves,
    shard,
)
from tests.formulations.test_checker_plan import example

HBM = {"name": "hbm", "scope": "rank", "capacity": 9}


def plan(*ranks: list[list[int]]) -> Document:
    """Tables ``t0`` and so on, each with option ``a``."""
    return {f"t{i}": {"option": "a", "ranks": each} for i, each in enumerate(ranks)}


def kept(document: Document, tables: Document) -> bool:
    """Whether the plan keeps all constraints."""
    try:
        checker.check_plan(checker.Instance(document), tables)
    except checker.Refuted:
        return False
    return True


@pytest.mark.parametrize(
    ("where", "good", "bad"),
    [
        (block("any_rank", shard(1)), [3], [[], [4], [0, 1]]),
        (block("any_rank", shard(1), among=[0, 1]), [1], [[2]]),
        (block("any_rank", shard(1), count=2, distinct=True), [0, 3], [[1, 1], [0]]),
        (block("any_rank", shard(1), count=2), [1, 1], [[1], [1, 1, 1]]),
        (block("every_rank", shard(1)), [0, 1, 2, 3], [[0, 1, 2], [0, 0, 1, 2], [1, 0, 2, 3]]),
        (block([2, 0], shard(1)), [2, 0], [[0, 2], [2]]),
        (block("any_rank_of_one_machine", shard(1), count=2), [2, 3], [[1, 2], [2]]),
        (block("one_machine", shard(1)), [2, 3], [[1, 2], [2], [3, 2]]),
        (block("one_machine", shard(1), count=2), [2, 3, 0, 1], [[0, 1, 0, 1], [0, 1]]),
        (block("one_machine", shard(1), count=2, distinct=False), [0, 1, 0, 1], [[0, 1]]),
        (block("cluster", shard(1), count=2), [], [[0], [0, 1]]),
    ],
)
def test_places(where: Document, good: list[int], bad: list[list[int]]) -> None:
    """A plan is accepted with a block where it may lie, and refused with it elsewhere."""
    document = instance([[option("a", where)]])
    assert kept(document, plan([good]))
    assert not any(kept(document, plan([ranks])) for ranks in bad)
    assert not kept(document, plan([good, good]))
    assert not kept(document, plan([]))


def test_capacities() -> None:
    """Two shards of 5 exceed a capacity of 9, of a rank, a machine or the cluster."""
    tables = [[option("a", block("any_rank", shard(1, hbm=5)))]] * 2
    for scope, apart in (("rank", [1]), ("machine", [2]), ("cluster", None)):
        document = instance(tables, resources=[HBM | {"scope": scope}])
        assert not kept(document, plan([[0]], [[0]]))
        assert (
            kept(document, plan([[0]], [apart]))
            if apart
            else not kept(document, plan([[0]], [[3]]))
        )


def test_fusion() -> None:
    """Options of a group stand at one level."""
    tables = [[option("a", block("any_rank", shard(1)), g=level)] for level in (0, 0, 1)]
    assert kept(instance(tables[:2]), plan([[0]], [[0]]))
    assert not kept(instance(tables), plan([[0]], [[0]], [[0]]))


def test_moves() -> None:
    """A change of ranks moves all bytes of the table; a change of their order moves nothing."""
    two = block("any_rank", shard(1, move_bytes=3), count=2)
    current = {"t0": {"option": "a", "ranks": [[0, 1]]}}
    for limits in ({"max_moved_tables": 0}, {"max_moved_bytes": 5}):
        document = instance([[option("a", two)]], current=current, **limits)
        assert kept(document, plan([[1, 0]]))
        assert not kept(document, plan([[1, 1]]))
    document = instance([[option("a", two)]], current=current, max_moved_bytes=6)
    assert kept(document, plan([[1, 1]]))
    current["t0"]["option"] = "gone"
    document = instance([[option("a", two)]], current=current, max_moved_tables=0)
    assert not kept(document, plan([[0, 1]]))


def test_objectives() -> None:
    """Shards on no rank count in the total alone."""
    uneven = block("every_rank", *(shard(c) for c in ([1, 4], [3, 0], [1, 1], [1, 1])))
    tables = [[option("a", block("cluster", shard([5, 5]), count=2))], [option("a", uneven)]]
    found = checker.check_plan(
        checker.Instance(instance(tables, phases=["p", "q"])), plan([[]], [[0, 1, 2, 3]])
    )
    assert found == {"total": 32, "busiest_rank": 5, "step_time": 7}


def test_prices_of_machines() -> None:
    """A block that surely covers a machine adds its least shard there to that machine's row."""
    uneven = block("every_rank", shard(0), shard(0), shard(1), shard(4))
    tables = [[option("a", block("any_rank", shard(6), among=[2, 3]))],
              [option("a", block("one_machine", shard(5), shard(2)))],
              [option("a", uneven)]]  # fmt: skip
    row = {"largest_cost": {"busiest_rank": [[0, 1, 1]]}}
    exactly(instance(tables), bound(7, row))
    tables[1] = [option("a", block("one_machine", shard(5), shard(2), among=[1]))]
    exactly(instance(tables), bound(9, row))


def test_no_place_is_no_machine() -> None:
    """A split by machine that leaves out one of an option's two machines proves nothing."""
    tables = [[option("a", block("one_machine", shard(5)))]]
    half = [{"table": 0, "machines": [[0], []]}, {"use": [0]}, {}]
    row = {"cost": {"busiest_rank": [1, 1, 0, 0]}}
    assert not proves(instance(tables), bound(5, row, nodes=half) | {"target": 6})


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file, three files, an outcome alone, another format, a folder: a sentence each."""
    document, outcome = example()
    other = tmp_path / "x.json"
    other.write_text(json.dumps({"format": "x", "instance": document, "outcome": outcome}))
    for arguments, said in (
        ([], "give plan.json"), ([str(other)] * 3, "give plan.json"),
        ([str(other)], "no plan.json"), ([str(tmp_path)], "no regular file"),
    ):  # fmt: skip
        assert checker.main(arguments) == 2
        assert said in capsys.readouterr().err
    other.write_text("[]")
    assert checker.main([str(other)]) == 2


def test_prices_are_the_least() -> None:
    """A shard is priced at its cheapest place, so a row of other places proves nothing false."""
    three = [[option("a", block("any_rank_of_one_machine", shard(5)))]] * 3
    assert not proves(instance(three), bound(6, {"cost": {"busiest_rank": [1, 1, 0, 0]}}))
    apart = [[option("a", block("one_machine", shard(5), among=[q]))] for q in (0, 1)]
    for row in ([0, 1, 0], [0, 1]):
        largest = {"largest_cost": {"busiest_rank": [row]}}
        assert not proves(instance(apart), bound(6, largest))
        assert not proves(instance(apart[:1]), bound(6, largest))
    nowhere = [[option("a", block("cluster", shard(5)))]]
    assert not proves(instance(nowhere), bound(1))
    two = [[option("a", block("any_rank", shard(5)), block("any_rank", shard(4)))]]
    exactly(instance(two), bound(5))


def test_levels_at_their_largest() -> None:
    """The right-hand side counts the level with the largest sum of multipliers."""
    tables = [
        [option("a", block([0], shard(x)), g=0), option("b", block([0], shard(y)), g=1)]
        for x, y in ((1, 9), (9, 1))
    ]
    row = {"cost": {"busiest_rank": [1, 0, 0, 0]}, "fusion": {"g": [[0, 0, 8], [1, 1, 2]]}}
    exactly(instance(tables), bound(4, row))


def test_what_stays_does_not_move() -> None:
    """A table's current option pays nothing for moves."""
    stay = [[option("a", block([0], shard(1, move_bytes=3)))]]
    current = {"t0": {"option": "a", "ranks": [[0]]}}
    for key in ("moved_tables", "moved_bytes"):
        document = instance(stay, current=current, **{f"max_{key}": 0})
        assert not proves(document, infeasible({key: 1}))


def test_a_fixed_block_needs_all_its_ranks() -> None:
    """Shards on given ranks have no place where one of the ranks is too small."""
    for where in (block([0, 1], shard(0, hbm=5)), block("every_rank", shard(0, hbm=5))):
        for small, proved in ((4, True), (5, False)):
            hbm = HBM | {"capacity": [9, small, 9, 9]}
            document = instance([[option("a", where)]], resources=[hbm])
            assert proves(document, infeasible()) is proved


def test_all_that_covers_every_rank() -> None:
    """A list of all ranks puts at least its least shard on each; a shorter list does not."""
    for ranks, least in (([3, 1, 0, 2], 3), ([3, 1, 0], 0)):
        listed = [option("a", block(ranks, *map(shard, (5, 3, 4, 6)[: len(ranks)])))]
        row = {"largest_cost": {"busiest_rank": [[0, 1]]}}
        for vectors in ([], [row]):
            tables = [[option("a", block("any_rank", shard(7)))], listed]
            exactly(instance(tables), bound(7 + least, *vectors))


def test_distinct_shards_that_differ() -> None:
    """Two different shards that must be on distinct ranks need two ranks with room."""
    two = block("any_rank", shard(0, hbm=1), shard(0, hbm=2), count=2, distinct=True)
    for second, proved in ((0, True), (1, False)):
        hbm = HBM | {"capacity": [9, second, 0, 0]}
        assert proves(instance([[option("a", two)]], resources=[hbm]), infeasible()) is proved


def test_room_of_a_machine() -> None:
    """Three shards of 5 that only the second machine holds: 15 on its two ranks."""
    tables = [[option("a", block("any_rank", shard(5, ddr=5)))]] * 3
    ddr = {"name": "ddr", "scope": "machine", "capacity": [4, 20]}
    exactly(instance(tables, resources=[ddr]), bound(8, {"cost": {"busiest_rank": [0, 0, 1, 1]}}))


def test_on_no_rank() -> None:
    """Shards on no rank may be called distinct, and a pin gives them no ranks."""
    where = block("cluster", shard(1), count=9, distinct=True)
    pins = [{"table": "t0", "option": "a", "ranks": [[]]}]
    for document in (instance([[option("a", where)]]), instance([[option("a", where)]], pins=pins)):
        assert kept(document, plan([[]]))
        assert not proves(document, infeasible())


@pytest.mark.parametrize(
    "blocks",
    [
        [block("any_rank", shard(5)), block("any_rank", shard(4))],
        [block("cluster", shard(9)), block("any_rank", shard(5))],
        [block("one_machine", shard(5)), block("any_rank", shard(4))],
        [block("any_rank_of_one_machine", shard(5), shard(4), count=2)],
    ],
)
def test_home(blocks: list[Document]) -> None:
    """A split by machine fixes the first block that chooses one, beside 3 on every machine."""
    beside = option("b", *(block([rank], shard(3)) for rank in (0, 1)))
    document = instance([[option("a", *blocks)], [beside]], machines=[[0], [1]])
    rows = [{"cost": {"busiest_rank": row}} for row in ([1, 0], [0, 1])]
    nodes = [{"table": 0, "machines": [[0], [1]]}, {"use": [0]}, {"use": [1]}]
    least = 12 if blocks[0]["where"] == "any_rank_of_one_machine" else 8
    exactly(document, bound(least, *rows, nodes=nodes))
