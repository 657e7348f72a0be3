"""Per-feature settings: spread to every feature, checked, and refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_routing.errors import RoutingError
from cuda_routing.features import make_features
from cuda_routing.rules import Rule


def test_single_values_are_spread() -> None:
    """A single rule, block size or batch size applies to all features."""
    found = make_features(3, 12, 4, "continuous", block_sizes=5)
    assert found.rules.tolist() == [0, 0, 0]
    assert found.block_sizes.tolist() == [5, 5, 5]
    assert found.batch_sizes.tolist() == [4, 4, 4]
    assert found.row_starts.tolist() == [0, 4, 8, 12]
    assert (found.count, found.rows, found.renumbers) == (3, 12, True)


def test_block_sizes_of_other_rules_are_ignored() -> None:
    """Only continuous features use a block size."""
    found = make_features(2, 2, 4, [Rule.ROUNDROBIN, 0], block_sizes=[99, 7])
    assert found.block_sizes.tolist() == [0, 7]


def test_arrays_of_codes_are_read() -> None:
    """A NumPy array of dist_type codes gives one rule per feature."""
    found = make_features(3, 3, 2, np.array([1, 2, 3], np.int32))
    assert found.rules.tolist() == [1, 2, 3]
    assert not found.renumbers


def test_one_row_each() -> None:
    """The de-duplicated view has one row per feature."""
    found = make_features(2, 10, 2, 1, batch_sizes=[3, 7]).one_row_each()
    assert found.batch_sizes.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": [1, 2, 1]}, "2 features"),
        ({"rule": "hash"}, "unknown dist_type"),
        ({"rule": [1, 0], "block_sizes": [0, None]}, "feature 1"),
        ({"rule": 0, "block_sizes": [3]}, "2 features"),
        ({"rule": 1, "batch_sizes": [1, 2]}, "add up to 4"),
        ({"rule": 1, "batch_sizes": [5, -1]}, "batch_sizes"),
        ({"rule": 1, "boundaries": [None]}, "2 features"),
        ({"rule": [0, 1], "boundaries": [None, [0, 1, 2, 3]], "block_sizes": 1}, "feature 1"),
        ({"rule": 1, "ranks": 1 << 21}, "ranks"),
    ],
)
def test_refusals(options: dict[str, object], words: str) -> None:
    """The error for each contradiction names the feature or the count."""
    arguments: dict[str, object] = {"num_features": 2, "rows": 4, "ranks": 3}
    with pytest.raises(RoutingError, match=words):
        make_features(**(arguments | options))  # type: ignore[arg-type]
