"""The shipped suite ``modes``: its assertions about the law of the tiers hold."""

from __future__ import annotations

from scenarios.batch.assertions import judge, matches
from scenarios.batch.execute import execute
from scenarios.batch.scenario import expand
from scenarios.batch.suite import Where, find_suite


def test_caching_gives_way_to_hybrid_as_ddr_tightens() -> None:
    """On the A10 with its own HBM: CACHING, HYBRID, no plan; each proved."""
    suite, folder = find_suite("modes")
    law = Where.from_dict({"hbm": "23028MiB", "cost_model": "law"})
    chosen = [(s.key(), s) for s in expand(suite, folder) if matches(law, s)]
    assert len(chosen) == 5
    records = {key: execute(scenario, key) for key, scenario in chosen}
    judged = [judge(assertion, chosen, records) for assertion in suite.assertions]
    spoken = [each for each in judged if each.scenarios]
    assert len(spoken) == 3
    assert all(each.holds for each in spoken), [each.broken for each in spoken]
