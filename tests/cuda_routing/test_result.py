"""The arithmetic of the result object."""

from __future__ import annotations

import numpy as np

from cuda_routing.result import Bucketized, Traffic


def test_saved_share() -> None:
    """Ten lookups that become four keys save 60%; with nothing to send, nothing is saved."""
    assert Traffic(10, 4, 80, 32).saved == 0.6
    assert Traffic(0, 0, 0, 0).saved == 0.0


def test_keys_per_rank() -> None:
    """Lengths of two ranks and three rows are added up by rank."""
    found = Bucketized(np.array([1, 2, 3, 0, 0, 1]), np.zeros(7), None, None, None, 2)
    assert found.keys_per_rank().tolist() == [6, 1]
