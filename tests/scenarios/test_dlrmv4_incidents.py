"""The shipped suite ``dlrmv4-incidents``: the plans that ran out of memory are refused."""

from __future__ import annotations

import pytest

from scenarios.batch.assertions import judge
from scenarios.batch.execute import execute
from scenarios.batch.scenario import expand
from scenarios.batch.suite import find_suite
from scenarios.studies.dlrmv4_hot_ids import BURST_ROWS


def test_every_assertion_holds() -> None:
    """Each speaks of some scenario of the suite, and all of them hold."""
    suite, folder = find_suite("dlrmv4-incidents")
    scenarios = [(s.key(), s) for s in expand(suite, folder)]
    records = {key: execute(scenario, key) for key, scenario in scenarios}
    judged = [judge(assertion, scenarios, records) for assertion in suite.assertions]
    assert all(each.scenarios for each in judged)
    assert all(each.holds for each in judged), [each.broken for each in judged]


def test_the_burst_is_the_published_one() -> None:
    """Rows of the three tables on the hot rank: item_id at its tail, the others at the ratio."""
    suite, folder = find_suite("dlrmv4-incidents")
    model, cluster = next(iter(expand(suite, folder))).inputs()
    ids = model.workload.batch_per_rank * 2627
    [ratio] = suite.sweep.peak_skew
    tail = 1 + 6 * (2627 / (ids * 1.0)) ** 0.5  # the default: six standard deviations
    assert cluster.num_ranks == 32
    assert ids * (tail + 2 * ratio) == pytest.approx(BURST_ROWS, rel=0.002)
