"""Assertions: each kind can hold and can be broken."""

from typing import Any

import pytest

from milp_planner.errors import BadInput
from scenarios.batch.assertions import check_assertions, judge, matches
from scenarios.batch.scenario import expand
from scenarios.batch.suite import Assertion, Where
from tests.corpus import mistakes
from tests.scenarios.batch.small import record, suite

TASK = ("k", expand(suite())[0])


@pytest.mark.parametrize(("asserted", "found", "reason"), mistakes(__file__, "checks"))
def test_checks(asserted: dict[str, Any], found: dict[str, Any], reason: str | None) -> None:
    """An assertion that holds says nothing; a broken one says why."""
    assertion = Assertion.from_dict({"name": "a", **asserted})
    judged = judge(assertion, [TASK], {"k": record("k", **found)})
    assert judged.holds is (reason is None)
    assert all(str(reason) in sentence for sentence in judged.broken)


def test_what_was_not_run_is_not_decided() -> None:
    """Interrupted, an assertion about scenarios not run neither holds nor is broken."""
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
