"""The shipped suite ``catalogue``, shortened to one unit of counted work per model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scenarios.batch.execute import execute
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.suite import find_suite

LARGE = {"distemb-large", "distemb-jumbo", "distemb-colossal", "torchrec-production"}
"""Models whose first plans take longer than a test should."""


@pytest.mark.slow
@pytest.mark.parametrize("scenario", expand(*find_suite("catalogue")), ids=lambda s: s.model)
def test_every_model_has_a_plan(scenario: Scenario) -> None:
    """The plan passes the check and has a bound that a certificate proves."""
    if scenario.model in LARGE:
        pytest.skip("planned by the suite itself: milp-planner batch catalogue")
    asked = scenario.asked.model_copy(update={"work_limit": 1.0, "time_limit": 300.0})
    short = replace(scenario, asked=asked)
    record = execute(short, short.key())
    assert record["error"] is None
    assert record["status"] in ("optimal", "feasible"), record["note"]
    assert 0 < record["certified_bound"] <= record["objective"]
