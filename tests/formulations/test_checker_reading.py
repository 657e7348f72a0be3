"""The stand-alone checker refuses what is no instance or certificate, each in its own sentence.

The checker counts steps before it takes them: small certificates that ask for much.
"""

import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from formulations import checker
from tests.corpus import mistakes
from tests.formulations.by_hand import (
    PHASES,
    TWO,
    Document,
    block,
    bound,
    infeasible,
    instance,
    option,
    peaks,
    shard,
    worked_example,
)

HBM = {"name": "hbm", "scope": "rank", "capacity": 9}
ONE = [[option("a", block("any_rank", shard(1)))]]
PIN = {"table": "t0", "option": "a"}
OWN = {"t0": {"option": "a", "ranks": [[0]]}}


def test_what_the_others_change() -> None:
    """The instance that the other tests change can be read, with all its optional fields."""
    more = {"pins": [PIN], "forbidden": [], "current": OWN, "max_moved_tables": 1}
    checker.Instance(instance(ONE, resources=[HBM], **more))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"machines": [[0, 1], [1, 2]]}, "part the ranks"),
        ({"machines": [[0, 1], [3]]}, "part the ranks"),
        ({"machines": [[0, 1], []], "ranks": 2}, "part the ranks"),
        ({"ranks": 5}, "part the ranks"),
        ({"phases": []}, "phases"),
        ({"phases": ["p", "p"]}, "phases"),
        ({"phases": ["p", "q"]}, "one cost a phase"),
        ({"resources": [HBM, HBM]}, "named twice"),
        ({"resources": [HBM | {"capacity": [9, 9]}]}, "one capacity a place"),
        ({"max_moved_tables": 1}, "limits on moves"),
        ({"max_moved_bytes": 1}, "limits on moves"),
        ({"pins": [PIN | {"option": "b"}]}, "name what is not there"),
        ({"forbidden": [PIN | {"table": "t1"}]}, "name what is not there"),
        ({"current": {"t1": OWN["t0"]}}, "name what is not there"),
        ({"pins": [PIN, PIN]}, "nothing is twice"),
        ({"pins": [PIN | {"ranks": [[0], [0]]}]}, "an option needs blocks"),
        ({"pins": [PIN | {"ranks": [[4]]}]}, "an option needs blocks"),
    ],
)
def test_instances(change: Document, sentence: str) -> None:
    """Faults of the instance as a whole are refused."""
    with pytest.raises(checker.Unreadable, match=sentence):
        checker.Instance(instance(ONE) | change)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "needs options"),
        (ONE[0] * 2, "nothing is twice"),
        ([option("a")], "an option needs blocks"),
        ([option("a", block("any_rank"))], "one shard for all"),
        ([option("a", block("any_rank", shard(-1)))], "below 0"),
        ([option("a", block("any_rank", shard(1, ddr=1)))], "unknown resource"),
        ([option("a", block("any_rank", shard(1), shard(2)))], "one shard for all"),
        ([option("a", block("every_rank", shard(1), shard(2)))], "one shard for all"),
        ([option("a", block("one_machine", shard(1), shard(1, repeat=2)))], "one shard"),
        ([option("a", block("any_rank", shard(1), among=[4]))], "different ones in range"),
        ([option("a", block("any_rank", shard(1), among=[1, 1]))], "different ones in range"),
        ([option("a", block("any_rank", shard(1), among=[]))], "different ones in range"),
        ([option("a", block("one_machine", shard(1), among=[2]))], "different ones in range"),
        ([option("a", block([0, 0], shard(1)))], "different ones in range"),
        ([option("a", block([], shard(1)))], "different ones in range"),
        ([option("a", block("cluster", shard(1, hbm=1)))], "on no rank"),
        ([option("a", block("every_rank", shard(1), among=[0]))], "not as its page says"),
        ([option("a", block("cluster", shard(1), among=[0]))], "not as its page says"),
        ([option("a", block("every_rank", shard(1), count=2))], "not as its page says"),
        ([option("a", block([0], shard(1), count=2))], "not as its page says"),
        ([option("a", block("any_rank", shard(1), count=0))], "not as its page says"),
        ([option("a", block("rank", shard(1)))], "not as its page says"),
        ([option("a", block("any_rank", shard(True)))], "not as its page says"),
        ([option("a", block("any_rank", shard(2**53)))], "not as its page says"),
        ([option("a", block("any_rank", shard(1)), g="high")], "not as its page says"),
    ],
)
def test_options(options: list[Document], sentence: str) -> None:
    """Faults of a table's options are refused."""
    with pytest.raises(checker.Unreadable, match=sentence):
        checker.Instance(instance([options], resources=[HBM]))


def test_a_table_twice() -> None:
    """Two tables of one name are refused."""
    document = instance(ONE * 2)
    document["tables"][1]["name"] = "t0"
    with pytest.raises(checker.Unreadable, match="nothing is twice"):
        checker.Instance(document)


@pytest.mark.parametrize("change", mistakes(__file__, "trees"))
def test_trees(change: Document) -> None:
    """A certificate is refused whose nodes are no tree or name something that does not exist."""
    document, certificate = worked_example()
    with pytest.raises(checker.Unreadable):
        checker.Proof(checker.Instance(document), certificate | change).open_case()


@pytest.mark.parametrize("row", mistakes(__file__, "rows"))
def test_rows(row: Document) -> None:
    """Rows that the instance does not have, and values that are no multipliers, are refused."""
    net = {"name": "net", "scope": "cluster", "capacity": 9}
    document = checker.Instance(instance(ONE, resources=[HBM, net]))
    checker.Proof(document, bound(1) | {"vectors": [[]]})
    with pytest.raises(checker.Unreadable):
        checker.Proof(document, bound(1) | {"vectors": [[row]]})


def test_nodes_out_of_order() -> None:
    """A node must not come before the split that it is a case of."""
    document, certificate = worked_example()
    split = {"table": 0, "options": [[0], [1]]}
    for nodes in ([{}, split, {}], [{}, {}, split], [split, {}, {}, split, {}]):
        with pytest.raises(checker.Unreadable, match="comes before"):
            checker.Proof(checker.Instance(document), certificate | {"nodes": nodes})


def test_steps_of_the_whole_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes and vectors of a certificate share one limit of steps."""
    document, certificate = worked_example()
    instance_read = checker.Instance(document)

    def left(change: Document) -> int:
        proof = checker.Proof(instance_read, certificate | change)
        proof.open_case()
        return proof.meter.left

    most = checker.STEPS_PER_OPTION * len(instance_read.allowed)
    full = checker.MOST_STEPS + most
    packs = {"nodes": [{"pack": "hbm"}]}
    both = {"nodes": [{"table": 0, "options": [[0], [1]]}, {"pack": "hbm"}, {"pack": "hbm"}]}
    many = {"nodes": [{"use": [0] * 1000}]}
    vectors = {"vectors": certificate["vectors"] * 1000}
    for change in (packs, both, many, vectors):
        monkeypatch.setattr(checker, "MOST_STEPS", 0)
        monkeypatch.setattr(checker, "STEPS_PER_OPTION", 10**6)
        used = 8 * 10**6 - left(change)
        monkeypatch.setattr(checker, "STEPS_PER_OPTION", 0)
        monkeypatch.setattr(checker, "MOST_STEPS", used)
        assert left(change) == 0
        monkeypatch.setattr(checker, "MOST_STEPS", used - 1)
        with pytest.raises(checker.NotChecked, match="takes too long"):
            left(change)
    assert full == 5 * 10**7 + 100 * 8


def test_no_memory_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An outcome that needs too much memory is neither checked nor refuted: exit code 3."""
    document, _ = worked_example()
    (tmp_path / "i.json").write_text(json.dumps(document))

    def none_left(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(checker, "check", none_left)
    assert checker.main([str(tmp_path / "i.json"), str(tmp_path / "i.json")]) == 3


def test_no_costs_without_a_target() -> None:
    """Without a target costs have no limit, so a row of costs is refused."""
    document = checker.Instance(instance(ONE))
    row = {"row": "cost", "of": "busiest_rank", "times": 1}
    with pytest.raises(checker.Unreadable):
        checker.Proof(document, infeasible() | {"vectors": [[row]]})


def test_total_has_no_largest_shard() -> None:
    """Under ``total`` costs may be negative, so a largest-shard row is refused."""
    document = checker.Instance(instance(ONE, "total"))
    row = {"row": "largest_cost", "of": "total", "table": 0, "times": 1}
    with pytest.raises(checker.Unreadable):
        checker.Proof(document, bound(1) | {"vectors": [[row]]})


#: Steps that the forged certificates may take here, lines of the checker for each of them and for
#: each byte of the certificate, and bytes of memory.
STEPS, LINES, MEMORY = 20_000, 40, 16 * 2**20


def two(*shards: Document, count: int | None = None, tables: int = 2) -> Document:
    """Equal tables of one block on any of two ranks, in two phases."""
    one = option("o", block("any_rank", *shards, **({} if count is None else {"count": count})))
    return instance([[one]] * tables, "step_time", **TWO, **PHASES)


def pattern(weights: list[list[int]], **more: Any) -> Document:
    """A pattern of the step time."""
    return {"row": "pattern", "of": "step_time", "most": 4, "times": 1, "weights": weights} | more


def proof(target: int, *rows: Document, times: int = 1, **node: Any) -> Document:
    """A certificate with one node that uses one vector, again and again."""
    node = {"use": [0] * times, **node}
    return bound(target) | {"vectors": [list(rows)], "nodes": [node]}


MANY = [shard([0, 0], repeat=1, move_bytes=n) for n in range(3000)]
FORGED = {
    "steps of peaks": (two(shard([2 * 10**7] * 2)), proof(8 * 10**7, peaks([[0, 0, 0, 1]]))),
    "weights of peaks": (
        two(shard([9, 9])), proof(10**9, peaks([[0, 0, 0, 1]], most=2**20 - 1, step=10**5)),
    ),
    "entries of peaks": (
        two(*MANY, count=len(MANY)), proof(9, peaks([[0, 0, i, 1] for i in range(len(MANY))])),
    ),
    "shards of peaks": (
        two(shard([0, 0]), count=2**40), proof(9, peaks([[0, 0, 0, 1]], most=2**20 - 1)),
    ),
    "peaks again": (two(shard([1, 1])), proof(4, peaks([[0, 0, 0, 1]]), times=20_000)),
    "weights of patterns": (
        two(shard([9, 9])), proof(9, *[pattern([], most=2**20 - 1) for _ in range(100)]),
    ),
    "long numbers": (
        two(shard([9, 9])), proof(10**4000, pattern([[0, 0, 0, 1]], most=2**20 - 1)),
    ),
    "shards of patterns": (two(shard([0, 0]), count=2**40), proof(9, pattern([[0, 0, 0, 1]]))),
    "tables of patterns": (
        two(shard([0, 0]), tables=2000), proof(9, *[pattern([]) for _ in range(50)]),
    ),
    "long multipliers": (
        two(shard([0, 0]), tables=2000),
        proof(9, {"row": "cost", "of": "compute", "times": 10**4000}, times=20),
    ),
    "largest shards": (
        two(shard([0, 0]), tables=2000),
        proof(9, *[{"row": "largest_cost", "of": "compute", "times": 1, "table": t}
                   for t in range(2000)]),
    ),
    "cuts": (
        two(shard([1, 1])),
        bound(4) | {"vectors": [], "nodes": [
            {"peak": ["compute"], "cuts": list(range(9000))}, *[{}] * 9001]},
    ),
    "shards of packing": (two(shard([1, 0]), count=2**40), proof(9, times=0, pack="step_time")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_nothing_is_done_uncounted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a certificate asks for beyond the limit is neither computed nor kept."""
    document, certificate = FORGED[name]
    read = checker.Instance(document)
    counted(monkeypatch, certificate, lambda: checker.Proof(read, certificate).open_case())


def counted(patch: pytest.MonkeyPatch, given: Document, act: Callable[[], object]) -> None:
    """Assert that an act on what is given ends at the limit, with little done and kept."""
    patch.setattr(checker, "MOST_STEPS", STEPS)
    patch.setattr(checker, "STEPS_PER_OPTION", 0)
    patch.setattr(checker, "READ_STEPS", STEPS)
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_code.co_filename == checker.__file__ else None

    before = sys.gettrace()
    tracemalloc.start()
    sys.settrace(trace)
    try:
        with pytest.raises(checker.NotChecked, match="takes too long"):
            act()
    finally:
        sys.settrace(before)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert memory < MEMORY
    assert lines < LINES * (STEPS + len(json.dumps(given)))


WIDE = {"ranks": 2000, "machines": [list(range(2000))]}


def wide(*blocks: Document, resources: int = 0, **more: Any) -> Document:
    """A table with an option for each block, on many ranks."""
    own = [{"name": f"r{i}", "scope": "rank", "capacity": 9} for i in range(resources)]
    options = [option(f"o{i}", each) for i, each in enumerate(blocks)]
    return instance([options], **WIDE, resources=own, **more)


INSTANCES = {
    "ranks of blocks": wide(*[block("any_rank", shard([1])) for _ in range(2000)]),
    "capacities of ranks": wide(block("any_rank", shard([1])), resources=400),
    "uses of shards": instance(
        [[option("o", block("any_rank", *[shard([n % 2]) for n in range(2000)], count=2000))]],
        resources=[{"name": f"r{i}", "scope": "cluster", "capacity": 9} for i in range(400)], **TWO,
    ),
    "kinds of ranks": instance(
        [[option("o", block("any_rank", *[shard([n % 2]) for n in range(99)], count=99))]],
        resources=[{"name": "r", "scope": "rank", "capacity": list(range(2000))}], **WIDE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSTANCES)
def test_reading_an_instance_is_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a small file of many ranks, resources or shards would make large is refused first."""
    document = INSTANCES[name]
    counted(monkeypatch, document, lambda: checker.Instance(document))


def test_judging_a_plan_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of 2,000 unequal shards on a list of ranks: each looks at all the ranks left."""
    shards = [shard([n % 2]) for n in range(2000)]
    document = wide(block(list(range(2000)), *shards))
    read = checker.Instance(document)
    plan = {"t0": {"option": "o0", "ranks": [list(range(2000))]}}
    read.meter.left = STEPS
    counted(monkeypatch, document, lambda: checker.check_plan(read, plan))


MANY = {
    "one shard": block("any_rank", shard([1])),
    "two shards": block("any_rank", shard([1]), among=list(range(100)), count=2, distinct=True),
    "shards that differ": block(
        "any_rank", *map(shard, ([1], [2], [3])), among=list(range(20)), count=3
    ),
    "too many ways": block("any_rank", shard([1]), count=3),
    "machines": block("one_machine", shard([1])),
}


@pytest.mark.parametrize("name", MANY)
def test_what_must_move_is_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option for each way of 50 to lie on 2,000 ranks."""
    document = wide(*[MANY[name]] * 50)
    counted(monkeypatch, document, lambda: checker.leaving(document, "bytes", [0], True))


def test_ways_to_lie_share_their_blocks() -> None:
    """Three shards, two of them equal, lie on three of four ranks in 12 ways, which are made of 8
    blocks; a file of them, in which nothing is shared, says the same."""
    lies = block("any_rank", shard(1, 7), shard(2, 5, repeat=2), count=3, distinct=True)
    question = checker.leaving(instance([[option("o", lies)]]), "bytes", [0], True)
    shared, alone = map(checker.Instance, (question, json.loads(json.dumps(question))))
    assert (len(shared.blocks), len(alone.blocks)) == (8, 36)
    assert shared.fingerprint == alone.fingerprint
    for one, other in zip(shared.tables["t0"], alone.tables["t0"], strict=True):
        assert [b.sites for b in one.blocks] == [b.sites for b in other.blocks]
