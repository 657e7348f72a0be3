"""Pooling factors measured from batches."""

from __future__ import annotations

import pytest
import torch
from torchrec import KeyedJaggedTensor
from torchrec.distributed.planner.types import ParameterConstraints

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import measured_pooling

from .models import bags, sequences


def batch(lengths: dict[str, list[int]]) -> KeyedJaggedTensor:
    """A batch with so many ids of each feature in each sample."""
    counts = [n for row in lengths.values() for n in row]
    return KeyedJaggedTensor(
        keys=list(lengths),
        values=torch.zeros(sum(counts), dtype=torch.int64),
        lengths=torch.tensor(counts),
    )


def test_means_over_all_samples() -> None:
    """Ids divided by samples over all batches, so that a larger batch counts for more."""
    batches = [
        batch({"tf0": [3, 1, 2], "sf0": [0, 0, 9]}),
        batch({"tf0": [4], "sf0": [1]}),
    ]
    tables = [*bags([(10, 4)]).embedding_bag_configs(), *sequences([(10, 4)]).embedding_configs()]
    found = measured_pooling(batches, tables)
    assert found["t0"].pooling_factors == [10 / 4]
    assert found["s0"].pooling_factors == [10 / 4]


def test_one_factor_a_feature_and_the_rest_is_kept() -> None:
    """Factors follow the order of the table's features; given constraints are copied."""
    [table] = bags([(10, 4)]).embedding_bag_configs()
    table.feature_names = ["b", "a"]
    given = {"t0": ParameterConstraints(sharding_types=["row_wise"]), "x": ParameterConstraints()}
    found = measured_pooling([batch({"a": [1, 1], "b": [5, 6]})], [table], given)
    assert found["t0"].pooling_factors == [5.5, 1.0]
    assert found["t0"].sharding_types == ["row_wise"]
    assert given["t0"].pooling_factors == [1.0], "the given constraint is not changed"
    assert set(found) == {"t0", "x"}


def test_a_feature_without_samples_is_a_sentence() -> None:
    """A table cannot be measured if no batch has its feature."""
    tables = bags([(10, 4)]).embedding_bag_configs()
    with pytest.raises(BadInput, match=r"'t0': no batch has a sample of feature 'tf0'; found: g"):
        measured_pooling([batch({"g": [1]})], tables)
    with pytest.raises(BadInput, match="no features"):
        measured_pooling([], tables)
