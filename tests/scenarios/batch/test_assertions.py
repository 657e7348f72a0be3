"""Assertions: each kind can hold and can be broken."""

from typing import Any

import pytest

from milp_planner.errors import BadInput
from scenarios.batch.assertions import check_assertions, judge, matches
from scenarios.batch.scenario import expand
from scenarios.batch.suite import Assertion, Where
from tests.scenarios.batch.small import record, suite

TASK = ("k", expand(suite())[0])


@pytest.mark.parametrize(
    ("asserted", "found", "reason"),
    [
        ({"fits": True}, {}, None),
        ({"fits": True}, {"status": "feasible"}, None),
        ({"fits": True}, {"status": "infeasible"}, "no plan: infeasible"),
        ({"fits": True}, {"status": "failed"}, "no plan: failed"),
        ({"fits": False}, {"status": "infeasible"}, None),
        ({"fits": False}, {"status": "unknown"}, "not proved infeasible"),
        ({"optimal": True}, {}, None),
        ({"optimal": True}, {"status": "feasible"}, "not proved optimal"),
        ({"hbm_headroom": 25}, {}, None),
        ({"hbm_headroom": "25.5%"}, {}, "25.0% of HBM free, below 25.5%"),
        ({"hbm_used": ["53%", "63%"]}, {"hbm_used": 0.575}, None),
        ({"hbm_used": ["53%", "63%"]}, {"hbm_used": 0.635}, "63.5% of HBM in use, not 53% to 63%"),
        ({"hbm_used": ["53%", "63%"]}, {"hbm_used": 0.525}, "52.5% of HBM in use"),
        ({"hbm_used": ["53%", "63%"]}, {}, "not stored"),
        ({"ddr_headroom": 51}, {}, "50.0% of DDR free"),
        ({"ddr_headroom": 51}, {"headroom": {"hbm": 0.25}}, None),
        ({"modes": {"t": "CACHING"}}, {"modes": {"t": "CACHING", "u": "HYBRID"}}, None),
        ({"modes": {"t": "CACHING"}}, {"modes": {"t": "HYBRID"}}, "t is HYBRID, not CACHING"),
        ({"modes": {"t": "CACHING"}}, {}, "t is in no mode that is stored, not CACHING"),
        ({"max_gap": 0}, {}, None),
        ({"max_gap": "1%"}, {"gap": 0.02}, "the gap is 2.00%"),
        ({"max_gap": "1%"}, {"gap": None}, "no bound"),
        ({"max_milliseconds": 2}, {}, None),
        ({"max_milliseconds": 1.5}, {}, "2.000 ms, above 1.5 ms"),
    ],
)
def test_checks(asserted: dict[str, Any], found: dict[str, Any], reason: str | None) -> None:
    """An assertion that holds says nothing; a broken one says why."""
    assertion = Assertion.from_dict({"name": "a", **asserted})
    judged = judge(assertion, [TASK], {"k": record("k", **found)})
    assert judged.holds is (reason is None)
    assert all(str(reason) in sentence for sentence in judged.broken)


def test_what_was_not_run_is_not_decided() -> None:
    """After an interruption, an assertion about scenarios that were not run neither holds nor is
    broken."""
    assertion = Assertion.from_dict({"name": "a", "fits": True})
    found = judge(assertion, [TASK], {})
    assert found.holds is None and found.missing == 1 and not found.broken


def test_where_selects() -> None:
    """Values are compared in the units of the sweep, and all fields must match."""
    chosen = [
        s for s in expand(suite())
        if matches(Where.from_dict({"hbm": "0.03125GiB", "formulation": "cpsat"}), s)
    ]  # fmt: skip
    assert [(dict(s.axes)["hbm"], s.asked.formulation) for s in chosen] == [(2**25, "cpsat")]
    assert not any(matches(Where.from_dict({"batch": 1}), s) for s in expand(suite()))


def test_an_assertion_about_nothing_is_refused() -> None:
    """An assertion that matches no scenario must not pass for one that holds."""
    nothing = Assertion.from_dict({"name": "a", "fits": True, "where": {"seed": 9}})
    with pytest.raises(BadInput, match="matches no scenario"):
        check_assertions([nothing], expand(suite()))
