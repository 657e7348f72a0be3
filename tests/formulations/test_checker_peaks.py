"""Rows of peaks and splits by a peak in the stand-alone checker: by hand, and forged.

Where docs/proof.md was once ambiguous: the checker does what the page says now.
"""

from copy import deepcopy

import pytest

from formulations import checker
from formulations.errors import InstanceError
from formulations.instance.file import instance_from_dict
from tests.corpus import mistakes
from tests.formulations.by_hand import (
    PHASES,
    TWO,
    Document,
    block,
    bound,
    cut,
    exactly,
    instance,
    on_page,
    option,
    peaks,
    proof,
    proves,
    shard,
    whole,
    worked_example,
)


def uneven() -> tuple[Document, Document]:
    """The instance and certificate of docs/proof.md, *Peaks*: both phases cannot be even."""
    tables = [whole(4, 0), whole(2, 2), whole(2, 2)]
    rows = [
        peaks([[0, 0, 0, 1], [1, 0, 0, 1], [2, 0, 0, 1]], most=1, each=10),
        peaks([[1, 0, 0, 1], [2, 0, 0, 1]], most=1, each=2),
        peaks([[0, 0, 0, 2], [1, 0, 0, 1], [2, 0, 0, 1]]),
    ]
    nodes = [cut("exchange", 3), cut("compute", 5), {"use": [2]}, {"use": [0]}, {"use": [1]}]
    return instance(tables, "step_time", **TWO, **PHASES), proof(8, rows, nodes)


def test_the_example_of_the_page() -> None:
    """Pooled rows prove 6 of 8 where two phases cannot both be even; boxes prove 8."""
    document, certificate = uneven()
    exactly(document, certificate)
    assert on_page("Two phases that cannot both be even") == certificate
    even = {"cost": {"compute": 1, "exchange": 1}}
    assert proves(document, bound(6, even)) and not proves(document, bound(7, even))


def test_large_shards_among_small_ones() -> None:
    """Sums of loads prove 7 of 8; with a small weight for each large shard beside its load, the
    same row proves 8, as the page says."""
    tables = [whole(4)] * 3 + [whole(1)] * 2
    free = instance(tables, "step_time", **TWO, phases=["compute"])
    large = [[0, 0, 0, 1], [1, 0, 0, 1], [2, 0, 0, 1]]
    row = peaks(large, second=[], loads=[1, 0, 0], most=1, times=2)
    certificate = proof(8, [row])
    exactly(free, certificate)
    assert on_page("Large shards among small ones") == certificate
    exactly(free, proof(7, [peaks([], second=[], loads=[1, 0, 0], times=2)]))


def test_loads_in_whole_steps() -> None:
    """Five shards of 3 on two ranks, in steps of 3: a rank's height below 9 has two steps or fewer,
    so that the steps prove 9 where the loads prove 8."""
    free = instance([whole(0, 3)] * 5, "step_time", **TWO, **PHASES)
    rows = [[peaks([], step=3, loads=loads, times=2)] for loads in ([0, 1, 0], [0, 0, 3])]
    assert not proves(free, proof(9, rows[0]))
    exactly(free, proof(8, rows[0]))
    exactly(free, proof(9, [peaks([], step=3, loads=[0, 0, 9], times=2)]))


def test_no_case_may_be_missing() -> None:
    """Each leaf of the example is needed, and so is each cut."""
    document, certificate = uneven()
    for leaf in (2, 3, 4):
        forged = deepcopy(certificate)
        del forged["nodes"][leaf]["use"]
        assert not proves(document, forged)
    for node, at in ((0, 4), (1, 6), (0, 2)):
        forged = deepcopy(certificate)
        forged["nodes"][node]["cuts"] = [at]
        assert not proves(document, forged)


class TestRow:
    """What a row of peaks adds up, without any split."""

    def test_floors_count_for_all_phases(self) -> None:
        """Floors of 3 and 2 below a shard of 4 and 1: 10, without any weight."""
        tables = [whole(4, 1), [option("all", block("every_rank", shard([3, 2])))]]
        free = instance(tables, "step_time", **TWO, **PHASES)
        exactly(free, proof(10, [peaks([[0, 0, 0, 1]], most=1, each=9)]))

    def test_what_is_above_the_floor(self) -> None:
        """An uneven every_rank block: floor 1, and 4 above it on one rank."""
        parts = block("every_rank", shard([5, 0]), shard([1, 0]))
        tables = [[option("parts", parts)], whole(4, 0)]
        free = instance(tables, "step_time", **TWO, **PHASES)
        row = peaks([[0, 0, 0, 1], [1, 0, 0, 1]], most=2, each=2)
        exactly(free, proof(5, [row]))

    def test_several_shards_of_a_block_on_one_rank(self) -> None:
        """Four halves of 3 on two ranks, two of them together: 6; each alone if distinct: 3."""
        for distinct, ranks, best in ((False, 2, 6), (True, 4, 3)):
            parts = block("any_rank", shard([3, 0]), count=4, distinct=distinct)
            machines = {"machines": [list(range(ranks))]}
            free = instance([[option("parts", parts)]], "step_time", **machines, **PHASES)
            exactly(free, proof(best, [peaks([[0, 0, 0, 1]], most=4, each=3)]))

    def test_blocks_of_an_option_add_up(self) -> None:
        """One option of two blocks: a rank may hold a shard of each."""
        blocks = block("any_rank", shard([3, 0])), block("any_rank", shard([3, 0]))
        free = instance([[option("both", *blocks)]], "step_time", **TWO, **PHASES)
        exactly(free, proof(3, [peaks([[0, 0, 0, 1], [0, 0, 1, 1]], most=2, each=3)]))

    def test_one_option_of_a_table(self) -> None:
        """A rank holds shards of one option of a table only, so it weighs 1 at most."""
        table = [option("a", block("any_rank", shard([2, 0]))),
                 option("b", block("any_rank", shard([2, 0])))]  # fmt: skip
        free = instance([table, whole(2, 0)], "step_time", **TWO, **PHASES)
        row = peaks([[0, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1]], most=2, each=2)
        exactly(free, proof(2, [row]))

    def test_loads_in_the_second_set_are_rounded_down(self) -> None:
        """With steps of 2, shards of 3 take one step, so that three steps hold three of them."""
        tables = [whole(0, 3)] * 4
        free = instance(tables, "step_time", **TWO, **PHASES)
        weights = [[t, 0, 0, 1] for t in range(4)]
        exactly(free, proof(6, [peaks(weights, each=3)]))
        exactly(free, proof(4, [peaks(weights, each=2, step=2)]))

    def test_one_set_only(self) -> None:
        """The second set may be empty; its phases then count as floors only."""
        free = instance([whole(4, 1)] * 2, "step_time", **TWO, **PHASES)
        weights = [[0, 0, 0, 1], [1, 0, 0, 1]]
        both = {"first": ["exchange", "compute"], "second": []}
        exactly(free, proof(5, [peaks(weights, each=5, most=2, **both)]))
        exactly(free, proof(5, [peaks(weights, each=4, most=2, second=[])]))

    def test_a_rank_that_may_hold_more_than_the_row_says(self) -> None:
        """With most 0 nothing is proved, although the same weights prove 3."""
        free = instance([whole(2, 0)] * 3, "step_time", **TWO, **PHASES)
        weights = [[t, 0, 0, 1] for t in range(3)]
        exactly(free, proof(3, [peaks(weights, most=3)]))
        assert not proves(free, proof(3, [peaks(weights, most=0)]))

    def test_other_rows_of_the_vector_count_beside_it(self) -> None:
        """Memory for one of two cheap shards only, priced in the same vector."""
        table = [option("fast", block("any_rank", shard([2, 0], hbm=1))),
                 option("slow", block("any_rank", shard([4, 0])))]  # fmt: skip
        hbm = [{"name": "hbm", "scope": "rank", "capacity": [1, 0]}]
        free = instance([table] * 2, "step_time", resources=hbm, **TWO, **PHASES)
        weights = [[t, o, 0, 1 + o] for t in range(2) for o in range(2)]
        row = peaks(weights, each=1, most=4)
        memory = {"row": "capacity", "of": "hbm", "times": 1}
        certificate = proof(3, [row])
        assert not proves(free, certificate)
        certificate["vectors"][0].append(memory)
        exactly(free, certificate)


@pytest.mark.parametrize("change", mistakes(__file__, "malformed rows"))
def test_malformed_rows(change: Document) -> None:
    """A row that is not as the page says is an error."""
    document, certificate = uneven()
    certificate["vectors"][2][0] |= change
    with pytest.raises(checker.Unreadable):
        proves(document, certificate)


@pytest.mark.parametrize("change", mistakes(__file__, "malformed splits"))
def test_malformed_splits(change: Document) -> None:
    """A split by a peak that is not as the page says is an error; so is a case without a node."""
    document, certificate = uneven()
    certificate["nodes"][0] |= change
    with pytest.raises(checker.Unreadable):
        proves(document, certificate)


@pytest.mark.parametrize("kind", ["infeasible", "busiest_rank", "total"])
def test_for_step_time_and_bounds_only(kind: str) -> None:
    """Neither a proof of infeasibility nor another objective has rows or splits of peaks."""
    for part in ("vectors", "nodes"):
        document, certificate = uneven()
        if kind == "infeasible":
            certificate["kind"] = kind
            del certificate["target"]
        else:
            document["objective"] = kind
        if part == "vectors":
            certificate["nodes"] = [{}]
        else:
            certificate["vectors"] = []
            for node in certificate["nodes"]:
                node.pop("use", None)
        with pytest.raises(checker.Unreadable):
            proves(document, certificate)


def test_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that takes long is given up, not closed."""
    document, certificate = uneven()
    certificate["vectors"][2][0]["most"] = 2**20 - 1
    monkeypatch.setattr(checker, "MOST_STEPS", 10**6)
    with pytest.raises(checker.NotChecked):
        proves(document, certificate)


def on_every(*costs: list[int]) -> list[Document]:
    """Options on every rank with these costs in two phases."""
    return [
        option(f"o{i}", block("every_rank", shard(cost)), **({"g": 1} if i else {}))
        for i, cost in enumerate(costs)
    ]


def test_least_sum_of_floors() -> None:
    """Under step_time the least floor of a table is that of one option, over both phases."""
    tables = [on_every([9, 1], [1, 9]), on_every([5, 5])]
    document = instance(tables, "step_time", phases=["p", "q"], **TWO)
    exactly(document, bound(20, nodes=[{}]))  # the sums of least floors: 1 + 1 + 10 = 12


def test_numbers() -> None:
    """Multipliers and targets may be large; numbers that count or name something may not."""
    document = instance([on_every([1], [2])], **TWO)
    cost = {"row": "cost", "of": "busiest_rank", "times": 10**4299}
    fusion = {"row": "fusion", "of": "g", "table": 0, "times": 1}
    for row in (cost, cost | {"at": 1}, fusion | {"level": 7}, fusion | {"level": 1 - 2**53}):
        assert proves(document, bound(1) | {"vectors": [[row]], "nodes": [{"use": [0]}]})
    for row in (cost | {"at": 2**53}, fusion | {"level": 2**53}, fusion | {"level": 1, "of": "h"}):
        with pytest.raises(checker.Unreadable):
            proves(document, bound(1) | {"vectors": [[row]]})


def test_at_of_the_only_one() -> None:
    """Under total, and for a resource of the cluster, the only place may be named: 0."""
    net = {"name": "net", "scope": "cluster", "capacity": 9}
    document = instance([on_every([3])], "total", resources=[net], **TWO)
    row = {"row": "cost", "of": "total", "times": 1}
    for at in ({}, {"at": 0}):
        exactly(document, bound(6, nodes=[{"use": [0]}]) | {"vectors": [[row | at]]})
    for kind in (row, {"row": "capacity", "of": "net", "times": 1}):
        proves(document, bound(1) | {"vectors": [[kind | {"at": 0}]]})
        with pytest.raises(checker.Unreadable):
            proves(document, bound(1) | {"vectors": [[kind | {"at": 1}]]})


def test_nodes_breadth_first() -> None:
    """Children follow in the order of the nodes that split, not directly after each of them."""
    document, certificate = worked_example()
    first, second, third = [
        {"table": t, "options": [[0], [1]] if t == 0 else [[1], [0]]} for t in range(3)
    ]
    both, one = {"use": [0, 1]}, {"use": [1]}
    broad = [first, second, both, both, third, both, one]
    deep = [first, second, both, third, both, one, both]
    assert proves(document, certificate | {"nodes": broad})
    assert not proves(document, certificate | {"nodes": deep})


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({"forbidden": [{"table": "t0", "option": "o1"}] * 2}, True),
        ({"resources": [{"name": "hbm", "scope": "rank", "capacity": -1}]}, False),
        ({"resources": [{"name": "hbm", "scope": "rank", "capacity": 0}]}, True),
        ({"machines": [[0, 0]]}, False),
    ],
)
def test_instances(change: Document, good: bool) -> None:
    """Checker and product agree on what may repeat in an instance, and on what may be below 0."""
    document = instance([on_every([1], [2])], **TWO) | {"name": "n"} | change
    if good:
        checker.Instance(document)
        instance_from_dict(document)
        return
    with pytest.raises(checker.Unreadable):
        checker.Instance(document)
    with pytest.raises(InstanceError):
        instance_from_dict(document)


def test_sums_below_62_bits() -> None:
    """Costs or uses that add up to 2^62 or more are refused, as the product refuses them."""
    for count, good in ((2**11 - 1, True), (2**11, False)):
        dear = option("o", block("any_rank", shard(2**51), count=count))
        document = instance([[dear]], **TWO)
        if good:
            checker.Instance(document)
            continue
        with pytest.raises(checker.Unreadable, match="add up"):
            checker.Instance(document)
