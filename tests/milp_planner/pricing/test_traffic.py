"""Ids, outputs and distinct rows of a step."""

from __future__ import annotations

import pytest

from milp_planner.pricing.job import traffic_of
from tests.milp_planner.pricing.build import model


def test_pooled_outputs_are_bags() -> None:
    """512 samples, 3 features: 3.5 ids per bag give whole bags, 0.25 ids a quarter of them."""
    shared = {"num_features": 3, "pooling_factor": 3.5}
    found = traffic_of(model(shared, {"pooling_factor": 0.25}), 8, False)
    assert found.ids.tolist() == [512 * 10.5, 128]
    assert found.outputs.tolist() == [512 * 3, 128]


def test_sequences_return_every_id() -> None:
    """A sequence's outputs are its ids."""
    found = traffic_of(model({"output": "sequence", "sequence_length": 20}), 8, False)
    assert found.ids.tolist() == found.outputs.tolist() == [10_240]


def test_deduplication_drops_repeats_of_sequences_only() -> None:
    """2.4% of a sequence's ids remain; a pooled table keeps all of its ids."""
    seq = {"output": "sequence", "sequence_length": 20, "access": {"kind": "unknown",
           "unique_fraction": 0.024}}  # fmt: skip
    found = traffic_of(model(seq, {"pooling_factor": 20}, dedup=True), 8, False)
    assert found.ids.tolist() == [pytest.approx(245.76), 10_240]
    assert found.outputs[0] == found.ids[0]
    assert found.raw_ids.tolist() == [10_240, 10_240]
    assert found.dedup_lookups.tolist() == [10_240, 0]


def test_distinct_rows_of_the_global_batch() -> None:
    """8 ranks draw 4,096 ids of 1,000 equally popular rows: 1000 · (1 − 0.999^4096); only if asked
    for."""
    assert traffic_of(model({}), 8, False).distinct.tolist() == [0.0]
    found = traffic_of(model({}), 8, True).distinct
    assert found[0] == pytest.approx(1000 * (1 - 0.999**4096))
