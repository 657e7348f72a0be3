"""Today's plan on the Instance of its model."""

from fractions import Fraction

import pytest

from formulations import check
from milp_planner.inputs.constraints import PinSpec
from milp_planner.start.mapping import start_on
from tests.milp_planner.pricing.build import cluster, model


@pytest.mark.parametrize("fusion", ["honoured", "free"])
def test_cached_tables_are_judged_at_the_factor_of_their_kernel(fusion: str) -> None:
    """Row-wise 0.3 and 0.5 of as many rows run at 0.4, which is no violation; with ``fusion: free``
    they keep their own."""
    today = {
        name: PinSpec(mode="CACHING", sharding_type="row_wise", cache_ratio=Fraction(ratio))
        for name, ratio in (("t0", "0.3"), ("t1", "0.5"))
    }
    start = start_on(today, model({}, {}, fusion=fusion), cluster(1, 2), "step_time")
    options = start.compiled.options
    ratios = [options.choices[o].ratio for o in start.placement.options.tolist()]
    runs = ["0.4", "0.4"] if fusion == "honoured" else ["0.3", "0.5"]
    assert ratios == [Fraction(ratio) for ratio in runs]
    assert check(start.compiled.instance, start.placement).feasible
