"""A batch's figures as one value, and its tables on a terminal."""

import json

from scenarios.batch.info import AssertionInfo, BatchInfo, batch_of, draw_batch
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.scenarios.batch.records import failed, many, proved, record

BROKEN = AssertionInfo("all fit", False, 7, tuple(f"m on c, seed {i}: no plan" for i in range(7)))


def info(**changes: object) -> BatchInfo:
    """Three results of four: a heuristic, a proof, an error."""
    records = [record(objective=12 * 10**9), proved(10 * 10**9), failed(formulation="greedy")]
    return batch_of("suite", "what for", 4, records, [BROKEN])


def test_the_summary_counts() -> None:
    """One row per formulation and objective."""
    found = info()
    assert found.counts == {"optimal": 1, "feasible": 1, "failed": 1}
    assert [(r.series, r.equal, r.worst, r.gap) for r in found.summary] == [
        ("dp", 0, 0.2, 2 / 12),
        ("cpsat", 1, 0.0, 0.0),
        ("greedy", 0, None, None),
    ]
    assert (found.versions, found.finished, found.scenarios) == (("1",), "2026-01-01", 4)


def test_it_is_json() -> None:
    """Strict JSON with every row."""
    text = json.dumps(batch_of("s", "", 50, many(50)).to_dict(), allow_nan=False)
    assert len(json.loads(text)["rows"]) == 50


def test_the_terminal_shows_what_stands_out() -> None:
    """Summary, the error, the first broken scenarios of an assertion, within 100 columns."""
    text = drawn(draw_batch(info()))
    assert "failed: m on c, total, greedy: BadInput" in text
    assert "does not hold: all fit (7 scenarios)" in text and "and 2 more" in text
    assert "not covered" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_gaps_are_certified_by_whoever_can() -> None:
    """A heuristic's gap is measured to the exact row's certificate and shown before the other
    gap."""
    best = proved(10 * 10**9, certified_bound=9 * 10**9)
    found = batch_of("s", "", 2, [record(objective=12 * 10**9), best])
    assert [(r.certified_gap, r.gap) for r in found.summary] == [(3 / 12, 2 / 12), (1 / 10, 0.0)]
    head = drawn(draw_batch(found)).splitlines()[1].split("  ")
    assert head.index("certified gap") < [name.strip() for name in head].index("gap")
