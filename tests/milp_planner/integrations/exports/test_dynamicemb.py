"""dynamicemb's table options, and how the runtime would read them."""

import json
from fractions import Fraction
from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.integrations.exports import dynamicemb
from milp_planner.pricing.storage import runtime_value_bytes
from tests.corpus import mistakes

from . import plans

PAIR = (plans.dynamic("d", 5000, optimizer="adam"), plans.dynamic("e", 70_001, optimizer="adam"))


@pytest.mark.parametrize("seed", range(25))
def test_runtime_layout_is_the_plans(seed: int) -> None:
    """By the runtime's rule for fused groups, the options give the plan's modes.

    The rule: s = Σ local_hbm / Σ value bytes over a group; s ≥ 1 is HBM_ONLY; otherwise, with
    caching it is CACHING, and without it s > 0 is HYBRID and s = 0 HOST_ONLY.
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
        # Each table's bytes are rounded up to a whole byte.
        assert 0 <= hbm - Fraction(group["cache_ratio"]) * total < len(group["tables"])


def _layout(total: int, hbm: int, caching: bool) -> str:
    if total <= hbm:
        return "HBM_ONLY"
    if caching:
        assert hbm > 0
        return "CACHING"
    return "HYBRID" if hbm else "HOST_ONLY"


CACHED = dict.fromkeys(("d", "e"), "row_wise/CACHING/0.3/roundrobin")


def test_by_hand() -> None:
    """5,000 rows of 64 floats with Adam on 4 ranks, 3/10 cached.

    1,250 rows per rank, rounded up to 10 buckets of 128, are 1,280 rows of 768 bytes; 3/10 of
    983,040 bytes.
    """
    document = dynamicemb.document(plans.chosen_plan(CACHED, *PAIR))
    options = document["tables"]["d"]["dynamicemb_options"]
    assert options["max_capacity"] == 1280
    assert options["local_hbm_for_values"] == 294_912
    assert options["global_hbm_for_values"] == 4 * 294_912
    assert options["caching"] is True and options["dist_type"] == "roundrobin"
    assert [group["tables"] for group in document["groups"]] == [["d", "e"]]
    assert options["score_strategy"] == "TIMESTAMP"


def test_a_compound_score_strategy_is_a_list_in_its_order() -> None:
    """dynamicemb takes a tuple, whose order is that of the words in checkpoints."""
    compound = plans.dynamic("d", 5000, score_strategy="lfu+timestamp")
    document = dynamicemb.document(plans.chosen_plan({}, compound))
    assert document["tables"]["d"]["dynamicemb_options"]["score_strategy"] == ["LFU", "TIMESTAMP"]


def _changed(**changes: Any) -> str:
    document = dynamicemb.document(plans.chosen_plan(CACHED, *PAIR))
    document["tables"]["d"]["dynamicemb_options"].update(changes)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("changes", "sentence"), mistakes(__file__, "options the runtime would not honour")
)
def test_options_the_runtime_would_not_honour(changes: dict[str, Any], sentence: str) -> None:
    """Illegal values, and shares that differ inside a fused group, are errors."""
    with pytest.raises(BadInput, match=sentence):
        dynamicemb.read(_changed(**changes), plans.model(*PAIR))


def test_share_finer_than_the_grid() -> None:
    """A share that is no ratio with a denominator up to 100 is an error and is not rounded."""
    model = plans.model(PAIR[0])
    document = json.loads(_changed(local_hbm_for_values=300_000))
    del document["tables"]["e"]
    with pytest.raises(BadInput, match="625/2048 is finer than 1/100"):
        dynamicemb.read(json.dumps(document), model)


def test_another_routing_rule_unfuses() -> None:
    """Tables with different grouped keys may have different shares."""
    text = _changed(local_hbm_for_values=98_304, dist_type="continuous")
    assert dynamicemb.read(text, plans.model(*PAIR))["d"].cache_ratio == Fraction(1, 10)


def test_what_belongs_elsewhere() -> None:
    """Tables that the model lacks, or that it holds in TorchRec, are errors; a plan with this
    project's own routing rule cannot be expressed for dynamicemb."""
    with pytest.raises(BadInput, match="unknown table 'd'"):
        dynamicemb.read(_changed(), plans.model(plans.dynamic("x")))
    with pytest.raises(BadInput, match="TorchRec table"):
        dynamicemb.read(_changed(), plans.model(plans.static("d"), plans.static("e")))
    plan = plans.chosen_plan({}, plans.dynamic("d", dist_types=["hash_independent"]))
    with pytest.raises(BadInput, match="hash_independent, which dynamicemb does not have"):
        dynamicemb.write(plan)
