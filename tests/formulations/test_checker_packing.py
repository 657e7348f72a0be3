"""The stand-alone checker's rules of packing and patterns: leaves that no sum of rows closes, and
errors."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations import checker
from tests.formulations.by_hand import (
    ALL,
    TWO,
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

COST = [{"pack": "busiest_rank"}]
HBM = [{"pack": "hbm"}]


def on_any(*costs: int, name: str = "o") -> Document:
    """An option with one shard of each cost, each on any rank."""
    return option(name, block("any_rank", *map(shard, costs), count=len(costs)))


def test_three_on_two_ranks() -> None:
    """Two of three shards of 6 share a rank: 12, where the rows see no more than 9."""
    document = instance([[on_any(6)]] * 3, **TWO)
    exactly(document, bound(9, ALL))
    exactly(document, bound(12, nodes=COST))


def test_shards_of_a_table() -> None:
    """A count, a run and a block of one machine give several items, equal or different."""
    for where in (
        block("any_rank", shard(6), count=3),
        block("any_rank", shard(6, repeat=2), shard(6), count=3),
        block("any_rank_of_one_machine", shard(6), count=3),
    ):
        exactly(instance([[option("o", where)]], **TWO), bound(12, nodes=COST))
    exactly(instance([[on_any(1, 7, 9, 8)]], **TWO), bound(15, nodes=COST))
    exactly(instance([[on_any(7, 7, 7, 1)]], **TWO), bound(14, nodes=COST))


def test_beside_a_floor() -> None:
    """What lies on every rank narrows the bins; what lies on given ranks is left out."""
    floor = [option("o", block("every_rank", *map(shard, (2, 9, 2, 2))))]
    document = instance([*[[on_any(6)]] * 5, floor])
    exactly(document, bound(14, nodes=COST))
    given = [option("o", block([0], shard(5)))]
    exactly(instance([*[[on_any(6)]] * 3, given], **TWO), bound(12, nodes=COST))
    whole = [option("o", block("one_machine", shard(2), count=2, distinct=False))]
    exactly(instance([*[[on_any(6)]] * 3, whole], **TWO), bound(16, nodes=COST))
    none = [option("o", block("cluster", shard(50)))]
    exactly(instance([*[[on_any(6)]] * 3, none], **TWO), bound(12, nodes=COST))


def test_no_room_beside_the_floors() -> None:
    """Without items, floors alone may exceed the room; without tables nothing does."""
    floor = instance([[option("o", block("every_rank", shard(4)))]])
    exactly(floor, bound(4, nodes=COST))
    exactly(instance([]), bound(0, nodes=COST))
    assert not proves(instance([]), infeasible(nodes=[{}]))


def test_combinations() -> None:
    """Every choice of every table counts: the best is two whole and one in halves, or floors."""
    halves = [on_any(6, name="a"), on_any(4, 4, name="b")]
    exactly(instance([halves] * 3, **TWO), bound(9, ALL))
    exactly(instance([halves] * 3, **TWO), bound(10, nodes=COST))
    spread = [on_any(6), option("c", block("every_rank", shard(5)))]
    exactly(instance([spread] * 3, **TWO), bound(11, nodes=COST))


def test_choices_that_are_left() -> None:
    """What splits removed is not packed; both cases are closed by packing."""
    either = [on_any(6, name="a"), on_any(2, 2, name="b")]
    document = instance([[on_any(6)], [on_any(6)], either], **TWO)
    exactly(document, bound(8, nodes=COST))
    nodes = [{"table": 2, "options": [[0], [1]]}, *COST, *COST]
    exactly(document, bound(8, nodes=nodes))
    only = document | {"forbidden": [{"table": "t2", "option": "b"}]}
    exactly(only, bound(12, nodes=nodes))


def test_resource() -> None:
    """Bins are as large as the largest capacity, in a proof of either kind."""
    tables = [[option("o", block("any_rank", shard(1, hbm=6)))]] * 3
    for capacity, packed in (([11, 9], False), ([11, 12], True)):
        resource = [{"name": "hbm", "scope": "rank", "capacity": capacity}]
        document = instance(tables, resources=resource, **TWO)
        assert proves(document, infeasible(nodes=HBM)) is not packed
        assert proves(document, bound(99, nodes=HBM)) is not packed


def test_step_time() -> None:
    """A shard counts with the sum of its phases, a floor with the least of each."""
    tables = [[option("o", block("any_rank", shard([2, 4])))]] * 3
    document = instance(tables, "step_time", phases=["p", "q"], **TWO)
    exactly(document, bound(12, nodes=[{"pack": "step_time"}]))
    uneven = block("every_rank", shard([3, 1]), shard([1, 3]))
    document = instance([*tables, [option("o", uneven)]], "step_time", phases=["p", "q"], **TWO)
    exactly(document, bound(14, nodes=[{"pack": "step_time"}]))


def test_a_resource_of_that_name() -> None:
    """``busiest_rank`` is the cost in a proof of kind bound, else the resource of that name."""
    tables = [[option("o", block("any_rank", shard(6, busiest_rank=4)))]] * 3
    resource = [{"name": "busiest_rank", "scope": "rank", "capacity": 7}]
    document = instance(tables, resources=resource, **TWO)
    exactly(document, bound(12, nodes=COST))
    assert proves(document, infeasible(nodes=COST))


def test_after_the_vectors() -> None:
    """Packing considers only the options that the vectors of its node have left."""
    big = option("big", block("any_rank", shard(2, hbm=4), count=3))
    hbm = [{"name": "hbm", "scope": "rank", "capacity": 5}]
    document = instance([[on_any(6)], [on_any(6)], [on_any(6), big]], resources=hbm, **TWO)
    exactly(document, bound(10, nodes=COST))
    used = [{"use": [0], "pack": "busiest_rank"}]
    exactly(document, bound(12, {"capacity": {"hbm": 1}}, nodes=used))


@pytest.mark.parametrize(
    ("certificate", "objective"),
    [
        (bound(1, nodes=[{"pack": "total"}]), "total"),
        (bound(1, nodes=[{"pack": "total"}]), "busiest_rank"),
        (bound(1, nodes=[{"pack": "busiest_rank"}]), "total"),
        (bound(1, nodes=[{"pack": "step_time"}]), "busiest_rank"),
        (bound(1, nodes=[{"pack": "busiest_rank"}]), "step_time"),
        (bound(1, nodes=[{"pack": "p"}]), "step_time"),
        (infeasible(nodes=COST), "busiest_rank"),
        (infeasible(nodes=[{"pack": "ddr"}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": "net"}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": "hbm2"}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": None}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": ["hbm"]}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": 0}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": "hbm", "table": 0}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": "hbm", "table": 0, "options": [[0]]}, {}]), "busiest_rank"),
        (infeasible(nodes=[{"pack": "hbm", "table": 0, "machines": [[0]]}, {}]), "busiest_rank"),
    ],
)
def test_malformed(certificate: Document, objective: str) -> None:
    """Names that cannot be packed, values that are no names, and nodes that split are errors."""
    scopes = {"hbm": "rank", "ddr": "machine", "net": "cluster"}
    resources = [{"name": name, "scope": scope, "capacity": 9} for name, scope in scopes.items()]
    document = checker.Instance(instance([[on_any(6)]] * 3, objective, resources=resources, **TWO))
    checker.Proof(document, infeasible(nodes=HBM)).open_case()
    with pytest.raises(checker.Unreadable):
        checker.Proof(document, certificate)


def test_too_many_combinations() -> None:
    """The checker tries 16,384 combinations, but no more; equal options count as one."""

    def tables(many: int) -> list[list[Document]]:
        return [[on_any(2**t, name="a"), on_any(2**t + 2**20, name="b")] for t in range(many)]

    assert proves(instance(tables(14), **TWO), bound(2**21, nodes=COST)) is False
    with pytest.raises(checker.NotChecked, match="too much to pack"):
        proves(instance(tables(15), **TWO), bound(2**21, nodes=COST))
    assert not proves(instance(tables(1) * 30, **TWO), bound(2**27, nodes=COST))


def test_too_many_sizes() -> None:
    """The checker tries 512 different sizes, but no more."""
    for many in (512, 513):
        document = instance([[on_any(*range(1, many + 1))]], **TWO)
        if many == 512:
            assert not proves(document, bound(10**6, nodes=COST))
            continue
        with pytest.raises(checker.NotChecked, match="too much to pack"):
            proves(document, bound(10**6, nodes=COST))


def test_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing stops unchecked if items take too many steps to try, to read or to combine."""
    monkeypatch.setattr(checker, "STEPS_PER_OPTION", 0)
    monkeypatch.setattr(checker, "MOST_STEPS", 10**5)
    costs = [10**6 + 977 * i * i for i in range(60)]
    with pytest.raises(checker.NotChecked, match="takes too long"):
        proves(instance([[on_any(*costs)]]), bound(-(-sum(costs) // 4) + 1, nodes=COST))
    many = [option("o", block("any_rank", shard(2), count=2**52))]
    with pytest.raises(checker.NotChecked, match="takes too long"):
        proves(instance([many]), bound(2**53, nodes=COST))
    either = [on_any(6, name="a"), on_any(7, name="b")]
    monkeypatch.setattr(checker, "MOST_STEPS", 10**4)
    assert proves(instance([either] * 9, **TWO), bound(8, nodes=COST))
    monkeypatch.setattr(checker, "MOST_STEPS", 100)
    with pytest.raises(checker.NotChecked, match="takes too long"):
        proves(instance([either] * 9, **TWO), bound(8, nodes=COST))
    nothing = [option("o", block("any_rank", shard(0), count=2**52))]
    assert not proves(instance([nothing]), bound(1, nodes=COST))


def test_many_items() -> None:
    """A thousand items on a hundred ranks are packed, although no recursion can be that deep."""
    document = instance([[on_any(3)]] * 1000, machines=[list(range(100))])
    exactly(document, bound(30, nodes=COST))
    exactly(instance([[on_any(3)]] * 1001, machines=[list(range(100))]), bound(33, nodes=COST))


def fits(items: list[int], bins: int, room: int) -> bool:
    """Whether items can be put into bins, by trying every bin for every item."""

    def loads(at: int) -> Iterator[tuple[int, ...]]:
        if at == len(items):
            yield (0,) * bins
            return
        for each in {tuple(sorted(each)) for each in loads(at + 1)}:
            yield from (
                (*each[:b], each[b] + items[at], *each[b + 1 :])
                for b in range(bins)
                if each[b] + items[at] <= room
            )

    return room >= 0 and any(True for _ in loads(0))


@given(
    st.lists(st.integers(0, 12) | st.sampled_from([0, 3, 6, 7]), max_size=9),
    st.integers(1, 4),
    st.integers(-1, 4),
)
def test_as_by_brute_force(items: list[int], bins: int, more: int) -> None:
    """Packing closes a leaf exactly where the items cannot be packed."""
    room = max(0, -(-sum(items) // bins) + more)
    tables = [[on_any(item)] for item in items]
    document = instance(tables, machines=[list(range(bins))])
    assert proves(document, bound(room + 1, nodes=COST)) is not fits(items, bins, room)


#: Tables with one shard of 7, 5 or 4, or halves of 2 less on two ranks; whatever one of three ranks
#: holds within 10 weighs 5 or less, but all weigh at least 16.
LARGE = instance(
    [[on_any(cost, name="whole"),
      option("halves", block("any_rank", shard(cost - 2), count=2, distinct=True))]
     for cost in (7, 7, 7, 5, 4)], machines=[[0, 1, 2]],
)  # fmt: skip
WEIGHTS = [[table, option, 0, weight // (1 + option)]
           for table, weight in enumerate((4, 4, 4, 2, 2)) for option in range(2)]  # fmt: skip


def heavy(target: int, **changes: Any) -> Document:
    """A certificate with one row of a pattern."""
    row = {"row": "pattern", "of": "busiest_rank", "most": 5, "weights": WEIGHTS, "times": 1}
    return bound(target) | {"vectors": [[row | changes]], "nodes": [{"use": [0]}]}


def test_what_one_rank_can_hold() -> None:
    """No two shards of 7 lie together below 14, and one beside a 4 needs 11; a lower limit and
    heavier shards prove nothing, unknown or repeated ones and another objective are refused."""
    exactly(LARGE, heavy(11))
    heavier = [[*place, 9 * weight] for *place, weight in WEIGHTS]
    assert not proves(LARGE, heavy(11, most=4)) and not proves(LARGE, heavy(11, weights=heavier))
    for wrong in ({"weights": [*WEIGHTS, WEIGHTS[0]]}, {"weights": [[0, 0, 1, 1]]},
                  {"of": "step_time"}):  # fmt: skip
        with pytest.raises(checker.Unreadable):
            proves(LARGE, heavy(11, **wrong))


@given(st.data())
def test_no_weights_prove_what_is_false(data: st.DataObject) -> None:
    """Whatever stands in a row of a pattern, no target above the optimum is accepted."""
    weights = [[*place, data.draw(st.integers(0, 30))] for *place, _ in WEIGHTS]
    most, times = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 3))
    target = data.draw(st.integers(12, 14))
    assert not proves(LARGE, heavy(target, weights=weights, most=most, times=times))
