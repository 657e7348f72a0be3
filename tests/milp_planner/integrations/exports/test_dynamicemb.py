"""dynamicemb's table options: what the runtime would make of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from milp_planner.errors import BadInput
from milp_planner.integrations.exports import dynamicemb
from milp_planner.pricing.storage import runtime_value_bytes

from . import plans

PAIR = (plans.dynamic("d", 5000, optimizer="adam"), plans.dynamic("e", 70_001, optimizer="adam"))


@pytest.mark.parametrize("seed", range(25))
def test_runtime_layout_is_the_plans(seed: int) -> None:
    """Put through the runtime's rule for fused groups, the options give the plan's modes back.

    The rule: s = Σ local_hbm / Σ value bytes over a group; s ≥ 1 is HBM_ONLY, else caching makes
    CACHING, and without it s > 0 is HYBRID and s = 0 HOST_ONLY.
    """
    plan = plans.random_plan(seed)
    document = dynamicemb.document(plan)
    for group in document["groups"]:
        total = hbm = 0
        for name in group["tables"]:
            table, entry = plan.model.table(name), document["tables"][name]["dynamicemb_options"]
            row = runtime_value_bytes(table.dim, table.element_bytes, table.optimizer)
            total += entry["max_capacity"] * row
            hbm += entry["local_hbm_for_values"]
            assert entry["caching"] == group["caching"]
            assert entry["max_capacity"] * plan.cluster.num_ranks >= table.rows
            assert entry["max_capacity"] % table.bucket_capacity == 0
        mode = _layout(total, hbm, group["caching"])
        assert {plan.table(name).mode for name in group["tables"]} == {mode}
        # Each table's bytes are rounded up to a whole one.
        assert 0 <= hbm - Fraction(group["cache_ratio"]) * total < len(group["tables"])


def _layout(total: int, hbm: int, caching: bool) -> str:
    if total <= hbm:
        return "HBM_ONLY"
    if caching:
        assert hbm > 0
        return "CACHING"
    return "HYBRID" if hbm else "HOST_ONLY"


def test_by_hand() -> None:
    """5,000 rows of 64 floats with Adam on 4 ranks, cached to 3/10.

    1,250 rows a rank, up to 10 buckets of 128: 1,280 rows of 768 bytes; 3/10 of 983,040 bytes.
    """
    plan = plans.chosen_plan(
        {"d": "row_wise/CACHING/0.3/roundrobin", "e": "row_wise/CACHING/0.3/roundrobin"}, *PAIR
    )
    document = dynamicemb.document(plan)
    options = document["tables"]["d"]["dynamicemb_options"]
    assert options["max_capacity"] == 1280
    assert options["local_hbm_for_values"] == 294_912
    assert options["global_hbm_for_values"] == 4 * 294_912
    assert options["caching"] is True and options["dist_type"] == "roundrobin"
    assert [group["tables"] for group in document["groups"]] == [["d", "e"]]


def test_rule_that_dynamicemb_lacks() -> None:
    """A plan with this project's own routing rule cannot be told to dynamicemb."""
    plan = plans.chosen_plan({}, plans.dynamic("d", dist_types=["hash_independent"]))
    with pytest.raises(BadInput, match="hash_independent, which dynamicemb does not have"):
        dynamicemb.write(plan)
