"""Packing agrees with trying every place of every shard."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations import checker
from formulations.evidence.verify import certifies
from formulations.instance import Instance, Where
from formulations.instance.build import Block
from formulations.instance.file import instance_to_dict
from formulations.proof.packing import Packing
from formulations.proof.prove import prove
from formulations.proof.rows import measures
from tests.formulations.examples import ANY, EVERY, at, built

#: An option: what it puts on every rank, and its shards that choose one.
Option = tuple[int, tuple[int, ...]]


def instance_of(tables: list[list[Option]], ranks: int, of_hbm: bool) -> Instance:
    """Options as costs, or as uses of ``hbm`` whose capacity is 20."""

    def block(where: Where, value: int) -> Block:
        return at(where, 0, hbm=value) if of_hbm else at(where, value)

    found = [{f"o{o}": [block(EVERY, floor), *(block(ANY, item) for item in items)]
              for o, (floor, items) in enumerate(options)} for options in tables]  # fmt: skip
    return built(found, machines=[range(ranks)], hbm=20)


def least_peak(tables: list[list[Option]], ranks: int) -> int:
    """The least load of the fullest rank, over all options and places."""
    best = 10**9
    for choice in itertools.product(*tables):
        items = [item for _, own in choice for item in own]
        for places in itertools.product(range(ranks), repeat=len(items)):
            loads = [sum(floor for floor, _ in choice)] * ranks
            for item, rank in zip(items, places, strict=True):
                loads[rank] += item
            best = min(best, max(loads))
    return best


OPTIONS = st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), max_size=2).map(tuple))


@given(
    tables=st.lists(st.lists(OPTIONS, min_size=1, max_size=2), min_size=1, max_size=3),
    ranks=st.integers(2, 3), limit=st.integers(0, 30),
)  # fmt: skip
def test_refutes_only_what_no_place_allows(
    tables: list[list[Option]], ranks: int, limit: int
) -> None:
    """Packing refutes a limit exactly if it is below the least peak and ranks are nearly full."""
    instance = instance_of(tables, ranks, of_hbm=False)
    packing = Packing(instance, measures(instance))
    keep = np.ones(instance.num_options, dtype=bool)
    least = least_peak(tables, ranks)
    sums = [min(f * ranks + sum(items) for f, items in own) for own in tables]
    full = sum(sums) >= 0.8 * ranks * limit
    expected = "busiest_rank" if full and limit < least else None
    assert packing.refutes(keep, limit) == expected


def test_memory_refutes_without_a_limit() -> None:
    """Three shards of eleven need three ranks of twenty."""
    for ranks, expected in ((2, "hbm"), (3, None)):
        instance = instance_of([[(0, (11,))]] * 3, ranks, of_hbm=True)
        packing = Packing(instance, measures(instance))
        assert packing.refutes(np.ones(3, dtype=bool), None) == expected


def test_only_options_kept_are_packed() -> None:
    """The small option fits, the large one does not."""
    tables: list[list[Option]] = [[(0, (6,)), (0, (11,))], [(0, (11,))], [(0, (11,))]]
    instance = instance_of(tables, 2, of_hbm=True)
    packing = Packing(instance, measures(instance))
    assert packing.refutes(np.asarray([True, True, True, True]), None) is None
    assert packing.refutes(np.asarray([False, True, True, True]), None) == "hbm"


def test_a_certificate_by_packing_is_accepted() -> None:
    """Three shards of six on two ranks: 12 is certified, though their sum fits under 9."""
    instance = instance_of([[(0, (6,))]] * 3, 2, of_hbm=False)
    certificate = prove(instance, 12)
    assert certificate is not None and certificate.target == 12
    assert any("pack" in node for node in certificate.nodes)
    assert certifies(instance, certificate)


def test_many_shards_are_left_to_sums() -> None:
    """Neither 1,800 shards nor 2^30 of one block are tried: each is a level of recursion."""
    many = instance_of([[(0, (6,) * 6)]] * 300, 2, of_hbm=False)
    assert Packing(many, measures(many)).refutes(np.ones(300, dtype=bool), 5400) is None
    huge = built([at(ANY, 1, count=2**30)])
    assert Packing(huge, measures(huge)).refutes(np.ones(1, dtype=bool), 2**29 - 1) is None


def test_a_tree_takes_no_more_steps_than_a_reader_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prover stops splitting before its proof is too long to check, and the proof holds."""
    instance = built([{"fast": at(ANY, 8, hbm=6), "slow": at(ANY, 14, hbm=1)}] * 4, hbm=9)
    monkeypatch.setattr(Packing, "refutes", lambda *_: None)
    whole = prove(instance, 22)
    monkeypatch.setattr("formulations.proof.tree._STEPS", 0)
    short = prove(instance, 22)
    assert whole is not None and len(whole.nodes) > 1 and certifies(instance, whole)
    assert short is not None and len(short.nodes) == 1 and certifies(instance, short)


def test_what_a_reader_takes_is_counted() -> None:
    """Packing counts no fewer steps for a reader than the checker does."""
    sizes = [977 + 31 * i * i % 400 for i in range(12)]
    instance = instance_of([[(0, (size,))] for size in sizes], 5, of_hbm=False)
    packing = Packing(instance, measures(instance))
    limit = -(-sum(sizes) // 5)
    assert packing.refutes(np.ones(12, dtype=bool), limit) == "busiest_rank"
    proof = checker.Proof(
        checker.Instance(instance_to_dict(instance)),
        {"version": 3, "kind": "bound", "target": limit + 1, "vectors": [],
         "nodes": [{"pack": "busiest_rank"}]},
    )  # fmt: skip
    before = proof.meter.left
    assert proof.open_case() is None
    assert 0 < before - proof.meter.left <= packing.spent + 100
