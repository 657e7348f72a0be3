"""``check`` on a cluster whose sharding groups are left open."""

from __future__ import annotations

from typing import Any

from milp_planner import check
from milp_planner.features.plan.doubts import doubts
from tests.milp_planner.pricing.build import cluster, model


def test_an_open_division_is_no_problem() -> None:
    """Some division can be priced, so nothing is wrong; warnings are about a single group."""
    place = cluster(2, 2, two_d={})
    assert check(model({}), place) == ()
    assert doubts(model({}), place) == ()
    assert check(model({"optimizer": "adam"}), place) == ()


def test_what_no_division_allows() -> None:
    """Adam with two groups, and a size that does not divide the ranks: a sentence each."""

    def told(**two_d: Any) -> str:
        return str(check(model({"optimizer": "adam"}), cluster(2, 2, two_d=two_d)))

    assert "whose state DMPCollection cannot average" in told(sharding_group_size=2)
    assert "which do not divide the 4 ranks" in told(sharding_group_size=3)
