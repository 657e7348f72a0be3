"""The gallery's curves are those of their inputs, and possible."""

import json

import pytest

from benchmarks.frontier import curves


def test_the_stash_curve_is_that_of_the_page() -> None:
    """Model and cluster are the example of docs/hardware.md."""
    model, cluster = curves.inputs("stash")
    assert [table.name for table in model.tables] == ["a", "b", "c"] and cluster.num_ranks == 2


@pytest.mark.parametrize("name", curves.CURVES)
def test_more_never_costs_more(name: str) -> None:
    """Every limit has a point; plans and bounds fall, and no plan is below its bound."""
    points = json.loads(curves.STORED.read_text("utf-8"))["curves"][name]["points"]
    assert [budget for budget, _, _ in points] == curves.CURVES[name][1]
    plans, bounds = [plan for _, plan, _ in points], [bound for _, _, bound in points]
    assert plans == sorted(plans, reverse=True) and bounds == sorted(bounds, reverse=True)
    assert all(bound <= plan for plan, bound in zip(plans, bounds, strict=True))
