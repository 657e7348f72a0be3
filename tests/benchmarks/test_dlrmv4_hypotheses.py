"""Facts held against hypotheses: intervals by hand, what they share, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.dlrmv4.facts import Fact, Facts
from benchmarks.dlrmv4.hypotheses import (
    NO_LIMIT,
    Counts,
    Interval,
    RankBytes,
    common,
    explains,
    rank_of,
    weigh,
)
from milp_planner.errors import BadInput
from milp_planner.plans.ledger import ledger_of
from tests.milp_planner.pricing.build import cluster, model

FACT: dict[str, Any] = {
    "name": "f", "source": "s", "layout": "l", "ranks": 8, "cap": 1000, "outcome": "ok",
    "batch": 512, "codec": "stock", "dedup": False,
}  # fmt: skip
SEQUENCE: dict[str, Any] = {"rows": 9000, "dim": 128, "output": "sequence", "sequence_length": 20}


def rank(need: int, encoding: int = 0) -> RankBytes:
    """A rank that needs so much when it sends, the codec's part among it."""
    return RankBytes({"forward_send": {"output": need - encoding, "encoding": encoding}}, 1.0)


@pytest.mark.parametrize(
    ("fields", "low", "high"),
    [
        ({}, 0, 400),  # 1000 - 600
        ({"outcome": "out of memory"}, 201, NO_LIMIT),  # 1000 - 800, and more
        ({"used": [700, 900]}, 0, 300),  # 700 - 800 to 900 - 600
        ({"used": 950}, 150, 350),
        # the encoding of 100 asks for 50: 1000 - 700 - 50, and before it 500 at least fit
        ({"outcome": "out of memory", "request": 50}, 251, 500),
    ],
)
def test_intervals_by_hand(fields: dict[str, Any], low: int, high: int) -> None:
    """With 600 to 800 bytes of embeddings of 1000."""
    fact = Fact.from_dict(FACT | fields)
    assert explains(fact, rank(600, 100), rank(800, 100)) == Interval(low, high)


@given(st.lists(st.tuples(st.integers(-5, 20), st.integers(-5, 20)), min_size=1, max_size=6))
def test_the_common_values_lie_in_as_many_intervals_as_any(pairs: list[tuple[int, int]]) -> None:
    """By trying every value from 0: no value lies in more, and both ends lie in as many."""
    intervals = [Interval(*pair) for pair in pairs]

    def covers(value: int) -> int:
        return sum(low <= value <= high for low, high in intervals)

    found = common(intervals)
    most = max(covers(value) for value in range(22))
    assert covers(found.low) == most
    assert 0 <= found.low <= found.high
    assert most == 0 or covers(found.high) == most


def facts(*each: dict[str, Any], **assume: Any) -> Facts:
    """Facts about a sequence table that is row-wise on eight ranks."""
    return Facts.from_dict(
        {
            "model": "m",
            "layouts": {"l": {"others": "row_wise"}, "cut": {"t0": "column_wise:2"}},
            "assume": {
                "copies": [1, 2],
                "encoding": {"stock": [1.5], "low_memory": [0.5]},
                **assume,
            },
            "facts": [FACT | fact for fact in each],
        }
    )


def test_the_ledgers_hypothesis_is_the_ledger() -> None:
    """Two copies and the codec's own factor are what the ledger counts on the fullest rank."""
    import milp_planner

    read = model(SEQUENCE, exchange_dtype="fp16", dedup=False)
    data = read.to_dict()
    data["tables"][0]["constraints"] = {"sharding_types": ["row_wise"], "modes": "HBM_ONLY"}
    plan = milp_planner.plan(type(read).from_dict(data), cluster(), formulation="greedy")
    ledger = ledger_of(plan)
    fact = Fact.from_dict(FACT)
    found = rank_of(read, fact, {"others": "row_wise"}).bytes(Counts(2, 1.5))
    outside = sum(n for name, n in ledger.hbm[0].entries.items() if name in ("batch", "context"))
    assert found.need == max(ledger.hbm[0].moments.values()) - outside


def test_one_fact_too_many_refutes() -> None:
    """Peaks of the same rank that differ by a MiB cannot both be met: one refutes, by the MiB."""
    mib = 2**20
    read = model(SEQUENCE, exchange_dtype="fp16")
    found = weigh(
        facts(
            {"name": "a", "cap": 10**12, "used": 10**9},
            {"name": "b", "cap": 10**12, "used": 10**9},
            {"name": "c", "cap": 10**12, "used": 10**9 + mib},
        ),
        read,
    )
    for verdict in found.verdicts:
        assert verdict.refuted_by == ("c",)
        assert [each.missed_by for each in verdict.judgements] == [0, 0, mib]
        assert verdict.outside.low == verdict.outside.high
    assert f"{found.chosen.outside.high // mib}MiB" in found.yaml


def test_without_an_upper_end_the_least_is_reserved() -> None:
    """Facts of death alone say how much there was at least."""
    read = model(SEQUENCE, exchange_dtype="fp16")
    found = weigh(facts({"outcome": "out of memory", "cap": 10**12}), read)
    assert found.chosen.outside.high == NO_LIMIT
    assert f"{found.chosen.outside.low // 2**20}MiB" in found.yaml


def test_layouts_are_tried() -> None:
    """Where it is not known which layout ran, each is a hypothesis of its own."""
    read = model(SEQUENCE, exchange_dtype="fp16")
    asked = facts({"layout": "unsure", "cap": 10**12}, layouts={"unsure": ["l", "cut"]})
    names = [each.hypothesis for each in weigh(asked, read).verdicts]
    assert len(names) == 4
    assert sum("unsure: cut" in name for name in names) == 2


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ({"layout": "x"}, "found 'x'; allowed: l, cut"),
        ({"request": 5}, "needs the outcome: out of memory"),
        ({"used": 5, "outcome": "out of memory"}, "needs the outcome: ok"),
        ({"used": [9, 5]}, "in order"),
        ({"rows": "-3"}, "rows"),
        ({"codec": "other"}, "stock"),
    ],
)
def test_bad_facts(fact: dict[str, Any], words: str) -> None:
    """One sentence that says what is allowed."""
    with pytest.raises(BadInput, match=words):
        facts(fact)


@pytest.mark.parametrize(
    "assume",
    [
        {"copies": []}, {"copies": [0]}, {"encoding": {"stock": []}}, {"layouts": {"l2": []}},
        {"encoding": {"stock": [-1.0]}}, {"layouts": {"unsure": ["x"]}},
    ],
)  # fmt: skip
def test_bad_assumptions(assume: dict[str, Any]) -> None:
    """Nothing to try, and what cannot be, are refused."""
    with pytest.raises(BadInput, match="allowed"):
        facts({}, **assume)


def test_what_the_model_does_not_offer() -> None:
    """An unknown table, a sharding that it does not offer, and rows without a row-wise table."""
    read = model(SEQUENCE, exchange_dtype="fp16")
    fact = Fact.from_dict(FACT)
    with pytest.raises(BadInput, match="has no table 'x'"):
        rank_of(read, fact, {"x": "row_wise"})
    with pytest.raises(BadInput, match="does not offer"):
        rank_of(read, fact, {"t0": "column_wise:77"})
    with pytest.raises(BadInput, match="row-wise sequence table"):
        rank_of(read, fact, {"t0": "column_wise:2"}).bytes(Counts(2, 1.5), 7)
