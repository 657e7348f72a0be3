"""Splits by how many equal tables take some options: by hand, forged, and at random."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from formulations import checker
from formulations.instance import Current
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.patterns.boxes import FUNCTIONS
from formulations.proof.judge import closes
from formulations.result.certificate import certificate_from_dict, certificate_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.by_hand import (
    Document,
    block,
    bound,
    exactly,
    instance,
    on_page,
    option,
    shard,
)
from tests.formulations.certificates import random_certificate
from tests.formulations.forging import checked, judged, mutate
from tests.formulations.fuzz.generate import generate
from tests.formulations.patterns.test_boxes import alike, boxed
from tests.formulations.proof.test_prove import repeated

SPLIT = {"tables": [0, 1, 2], "counted": [0], "most": 1}
VECTORS = {"cost": {"total": 1}}, {"capacity": {"ddr": 1}}


def three(**more: Any) -> Document:
    """Three tables that cost 1 and use 2, or cost 3, where 3 may be used."""
    near = option("near", block("any_rank", shard(1, ddr=2)))
    far = option("far", block("any_rank", shard(3)))
    ddr = [{"name": "ddr", "scope": "machine", "capacity": 3}]
    return instance([[near, far]] * 3, "total", machines=[[0, 1]], resources=ddr, **more)


def counted(target: int = 7, **changes: Any) -> Document:
    """The certificate of docs/proof.md, *What three equal tables take*, with another split."""
    return bound(target, *VECTORS, nodes=[SPLIT | changes, {"use": [0]}, {"use": [1]}])


def test_the_example_of_the_page() -> None:
    """One of three tables is near at most: a count proves 7, where sums of rows prove 6."""
    exactly(three(), counted())
    assert on_page("What three equal tables take") == counted()
    exactly(three(), bound(6, {"cost": {"total": 1}, "capacity": {"ddr": 1}}))


@pytest.mark.parametrize("changes", [
    {"most": 3}, {"most": 9}, {"tables": []}, {"tables": [0, 1, 1]}, {"tables": [0, 0, 0]},
    {"tables": [0, 1, 3]}, {"counted": [2]}, {"counted": []}, {"counted": [1]}, {"tables": [0]},
    {"tables": [0, 1]}, {"most": 0}, {"most": -1}, {"table": 0},
])  # fmt: skip
def test_forged_splits_are_refused(changes: dict[str, Any]) -> None:
    """More than there are, none, one twice, one that is not there, options that are not there, and
    counts that close nothing; by judge and checker."""
    assert not accepted_by_either(three(), counted(**changes))


def accepted_by_either(document: Document, certificate: Document) -> bool:
    """Whether judge or checker accepts a certificate, well formed or not."""
    read = instance_from_dict(document)
    return checked(read, certificate) or judged(read, certificate)


@pytest.mark.parametrize("more", [
    {"pins": [{"table": "t1", "option": "near"}]},
    {"forbidden": [{"table": "t1", "option": "far"}]},
    {"current": {"t1": {"option": "near", "ranks": [[0]]}}},
])  # fmt: skip
def test_tables_that_something_names_are_not_counted(more: dict[str, Any]) -> None:
    """A pin, ``forbidden`` or a place in the plan in production makes a table like no other."""
    assert not accepted_by_either(three(**more), counted())


def test_tables_that_differ_are_not_counted() -> None:
    """In a cost, or in the choices that a split above left them."""
    other = three()
    other["tables"][1]["options"] = [
        option("near", block("any_rank", shard(1, ddr=2))),
        option("far", block("any_rank", shard(4))),
    ]
    assert not accepted_by_either(other, counted())
    apart = [{"table": 0, "options": [[0], [1]]}, SPLIT, SPLIT,
             {"use": [0]}, {"use": [1]}, {"use": [0]}, {"use": [1]}]  # fmt: skip
    assert not accepted_by_either(three(), bound(7, *VECTORS, nodes=apart))


def test_counts_below_counts() -> None:
    """The tables of one case of a split may be counted again: no two of three take *near*, nor may
    they where it is known that one does not."""
    nodes = [{"tables": [0, 1, 2], "counted": [0], "most": 2},
             {"tables": [0, 1], "counted": [0], "most": 1}, {"use": [1]},
             {"use": [0]}, {"use": [1]}]  # fmt: skip
    exactly(three(), bound(7, *VECTORS, nodes=nodes))


def test_boxes_count_equal_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """On random instances of equal tables boxes, which try that first here, split by counts;
    checker and judge accept what they prove, which is never above the optimum, and refuse it
    changed at random to say more."""
    monkeypatch.setattr("formulations.patterns.boxes._WIDE", 1.0)
    splits = exact = 0
    rng = Random(3)
    for seed in range(150):
        found = alike(Random(seed))
        truth = brute_force(found).objective
        proof = boxed(found, truth, FUNCTIONS, 60) if truth else None
        if truth is None or proof is None:
            continue
        assert proof[0] <= truth and closes(found, proof[1])
        document = certificate_to_dict(proof[1])
        assert checked(found, document)
        splits += any("counted" in node for node in document["nodes"])
        exact += proof[0] == truth
        for _ in range(4):
            forged = json.loads(json.dumps(document)) | {"target": truth + 1}
            mutate(rng, forged)
            assert not checked(found, forged)
    assert splits >= 3 and exact >= 20, (splits, exact)


def test_boxes_split_equal_tables_that_something_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the plan in production are not counted, but taken one by one."""
    monkeypatch.setattr("formulations.patterns.boxes._WIDE", 1.0)
    splits = set[str]()
    for seed in range(100):
        found = alike(Random(seed))
        first = found.table_options[:-1].tolist()
        now = tuple(Current(t, option, ((0,),)) for t, option in enumerate(first))
        found = replace(found, current=now)
        truth = brute_force(found).objective
        proof = boxed(found, truth, FUNCTIONS, 60) if truth else None
        if proof is not None:
            assert closes(found, proof[1])
            splits |= {key for node in proof[1].nodes for key in node}
    assert "options" in splits and "counted" not in splits


def test_random_splits_prove_nothing_false() -> None:
    """Of random certificates of equal tables with random counts none says more than the truth, and
    the judge closes none that the checker leaves open; some are true, and accepted."""
    true = 0
    for number in range(150):
        found = generate(number)
        if not 1 <= found.num_tables <= 2 or found.current or found.pins or found.forbidden:
            continue
        found = repeated(found, 3)
        truth, document = brute_force(found).objective, instance_to_dict(found)
        if truth is None:
            continue
        rng, read = Random(number), checker.Instance(document)
        for above in (-3, -1, 0, 1):
            for _ in range(10):
                drawn = random_certificate(rng, document, truth + above)
                said = checker.Proof(read, drawn).open_case() is None
                assert not said or above <= 0
                assert said or not closes(found, certificate_from_dict(drawn))
                true += said and any("counted" in node for node in drawn["nodes"])
    assert true >= 10, true
