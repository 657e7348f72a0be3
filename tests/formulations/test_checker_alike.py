"""Options that nothing in a certificate tells apart: the checker prices one of them."""

from operator import le
from random import Random

import pytest

from formulations import checker
from formulations.instance.file import instance_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.by_hand import Document, block, bound, exactly, instance, option, shard
from tests.formulations.certificates import random_certificate
from tests.formulations.fuzz.generate import generate

PLACES = {"cost", "capacity", "moved_tables", "moved_bytes"}
VECTOR: Document = {"cost": {"total": 5}, "capacity": {"hbm": [2, 0, 0, 0]}}
STAY = option("stay", block([0], shard(0, hbm=5)))


def leaving(many: int) -> Document:
    """Three tables on the first rank, which holds two, that may go at a cost of 2, in many ways."""
    ways = [option(f"go{n}", block("any_rank", shard(2, hbm=n))) for n in range(many)]
    places = [{"name": "hbm", "scope": "rank", "capacity": 10}]
    return instance([[STAY, *ways]] * 3, "total", resources=places)


def proof(document: Document, certificate: Document) -> checker.Proof:
    """The proof of a certificate, read."""
    return checker.Proof(checker.Instance(document), certificate)


def test_by_hand() -> None:
    """Staying is priced at 2·5, going at 5·2, at ranks that are not priced: 30 for three tables,
    more than the 5·1 + 2·10 below a target of 2, and no more than the 5·2 + 2·10 below 3."""
    exactly(leaving(5), bound(2, VECTOR))


def test_many_ways_cost_as_much_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of a vector do not grow with the ways to go, where none lies at what is priced."""
    monkeypatch.setattr(checker, "STEPS_PER_OPTION", 0)

    def steps(ways: int) -> int:
        document = leaving(ways)
        used = []
        for uses in (1, 101):
            certificate = bound(
                2, VECTOR, {"cost": {"total": 1}}, nodes=[{"use": [1] * uses + [0]}]
            )
            one = proof(document, certificate)
            assert one.open_case() is None
            used.append(checker.MOST_STEPS - one.meter.left)
        return used[1] - used[0]

    assert steps(40) == steps(2)


def test_what_is_told_apart_stays_apart() -> None:
    """One way to go stands for those that are no cheaper, but for what a split names, what does not
    move the table, and what costs less where ranks are priced; where items are packed, for none."""

    def left(document: Document, certificate: Document) -> int:
        read, told = proof(document, certificate), {frozenset([1])}
        split = told if "table" in certificate["nodes"][0] else set()
        return len(read._choices("t0", False, split))

    assert left(leaving(5), bound(1, VECTOR)) == 2
    assert left(leaving(5), bound(1, {"capacity": {"hbm": 1}})) == 1
    split = [{"table": 0, "options": [[0, 2, 3, 4, 5], [1]]}, {"use": [0]}, {"use": [0]}]
    assert left(leaving(5), bound(1, VECTOR, nodes=split)) == 3
    assert not proof(leaving(5), bound(1, VECTOR, nodes=[{"use": [0], "pack": "hbm"}])).plain
    for where, cost, ways in (([0], 1, 3), ([0], 3, 2), ("any_rank", 3, 2), ([0], 2, 2)):
        changed = leaving(5)
        changed["tables"][0]["options"][1] = option("go0", block(where, shard(cost, hbm=1)))
        assert left(changed, bound(1, VECTOR)) == ways
    there = leaving(5) | {"current": {"t0": {"option": "go1", "ranks": [[1]]}}}
    assert left(there, bound(1, VECTOR)) == 3
    several = leaving(1)  # the whole of one machine: four ranks of it, or one
    several |= {"machines": [[0], [1, 2, 3, 4]], "ranks": 5}
    several["tables"][0]["options"].append(option("own", block("one_machine", shard(1))))
    assert left(several, bound(1, VECTOR)) == 3


def stands(read: checker.Proof, table: int, one: checker.Choice, other: checker.Choice) -> bool:
    """Whether the first is in no vector dearer, and no split tells it from the second."""
    dearer = any(v.price(table, one) > v.price(table, other) for v in read.vectors)
    told = (
        (one.position in case) != (other.position in case)
        for node, lists in zip(read.nodes, read.lists, strict=True)
        for case in lists
        if table in node.get("tables", [node.get("table")])
    )
    low = all(map(le, [*one.floor, *one.peak], [*other.floor, *other.peak]))
    return low and not dearer and not any(told)


def test_nothing_else_is_proved() -> None:
    """Random certificates of rows of places, on random instances: what closes where options stand
    for others closes option by option, and is true; the checker closes all that does so."""
    closed = fewer = 0
    for number in range(400):
        rng, found = Random(number), generate(number)
        document, truth = instance_to_dict(found), brute_force(found).objective
        for target in (1, 5, 20, 80):
            drawn = random_certificate(rng, document, target)
            drawn["vectors"] = [
                [row for row in v if row["row"] in PLACES] for v in drawn["vectors"]
            ]
            for node in drawn["nodes"]:
                node.pop("pack", None)
            if any("machines" in node for node in drawn["nodes"]):
                continue
            read = proof(document, drawn)
            assert read.plain
            some, every = read._root(merged=True), read._root(merged=False)
            for table, (kept, left) in enumerate(zip(some, every, strict=True)):
                assert all(any(stands(read, table, a, b) for a in kept) for b in left)
            less = sum(map(len, some)) < sum(map(len, every))
            together, singly = read._open_below(some) is None, read._open_below(every) is None
            assert singly or not together
            assert not (together and truth is not None and truth < target)
            assert (read.open_case() is None) == singly
            closed, fewer = closed + together, fewer + less
    assert closed > 100 and fewer > 20, (closed, fewer)
