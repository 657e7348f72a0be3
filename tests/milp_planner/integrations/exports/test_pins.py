"""Pins: what a plan fixes, and models that carry it."""

from __future__ import annotations

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.problems import one_of
from milp_planner.integrations.exports import known, proper_ratio, with_pins
from milp_planner.pricing import price

from . import plans


@pytest.mark.parametrize("seed", range(4))
def test_pinned_model_leaves_only_the_plan(seed: int) -> None:
    """A model pinned to a plan leaves every table only the plan's option."""
    plan = plans.random_plan(seed)
    pinned = with_pins(plan.model, plans.pins_of(plan))
    options = price(pinned, plan.cluster)
    for index, placed in enumerate(plan.tables):
        left = [options.choices[o] for o in options.of(index)]
        assert left
        for choice in left:
            assert (choice.sharding, choice.mode, choice.ratio, choice.dist_type) == (
                placed.sharding_type, placed.mode, placed.cache_ratio, placed.dist_type,
            )  # fmt: skip
            assert choice.columns == placed.column_shards


def test_unknown_table_has_a_nearest_name() -> None:
    """A misspelt table is an error that names the nearest one."""
    model = plans.model(plans.static("user"), plans.static("item"))
    with pytest.raises(
        BadInput, match=r"unknown table 'usr'; allowed: user, item; did you mean user"
    ):
        known(model, "usr", "here")
    with pytest.raises(BadInput, match="pins"):
        with_pins(model, {"usr": PinSpec()})


def test_unknown_table_of_a_large_model() -> None:
    """If a model has many tables, the error does not list them all."""
    model = plans.model(*(plans.static(f"t{i}") for i in range(50)))
    with pytest.raises(BadInput, match=r"the model has 50 tables\); did you mean t1"):
        known(model, "tt1", "here")


def test_values_outside_a_list() -> None:
    """A word that is not allowed is refused with the nearest one."""
    with pytest.raises(BadInput, match="did you mean uvm"):
        one_of("uvn", ("hbm", "uvm"), "x")
    with pytest.raises(BadInput, match="found 3"):
        one_of(3, ("hbm",), "x")


@pytest.mark.parametrize("bad", [0, 1, -0.5, "1.5", "half", True, None, "1/0"])
def test_ratio_must_be_proper(bad: object) -> None:
    """Cache ratios lie strictly between 0 and 1."""
    with pytest.raises(BadInput, match="allowed"):
        proper_ratio(bad, "x")
    assert proper_ratio("1/3", "x") == plans.third()
