"""``check`` of a cluster whose sharding groups are left open."""

from __future__ import annotations

from typing import Any

from milp_planner import check
from milp_planner.features.plan.doubts import doubts
from tests.milp_planner.pricing.build import cluster, model


def test_an_open_division_is_no_problem() -> None:
    """Some division can be priced: nothing is wrong, and one group is judged for doubts."""
    place = cluster(2, 2, two_d={})
    assert check(model({}), place) == ()
    assert doubts(model({}), place) == ()
    assert check(model({"optimizer": "adam"}), place) == ()


def test_what_no_division_allows() -> None:
    """Adam with two groups, a size that does not divide: a sentence each."""

    def told(**two_d: Any) -> str:
        return str(check(model({"optimizer": "adam"}), cluster(2, 2, two_d=two_d)))

    assert "whose state DMPCollection cannot average" in told(sharding_group_size=2)
    assert "which do not divide the 4 ranks" in told(sharding_group_size=3)
