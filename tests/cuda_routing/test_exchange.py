"""The exchange with 2 and 4 real processes against one process that holds all keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuda_routing.bucketize import bucketize
from cuda_routing.errors import RoutingError
from cuda_routing.exchange import Received, exchange, group_by_feature, send_back

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("ranks", [2, 4])
def test_processes_equal_one_process(ranks: int, tmp_path: Path) -> None:
    """Keys, lengths, weights, rows and gradients agree, for every rule, with and without dedup."""
    from tests.cuda_routing.exchange_worker import run

    torch.multiprocessing.spawn(run, args=(ranks, str(tmp_path)), nprocs=ranks)
    assert len(list(tmp_path.glob("ok-*"))) == ranks


def test_group_by_feature_by_hand() -> None:
    """Two sources with two features: feature 0 of both first, then feature 1 of both."""
    received = Received(
        torch.tensor([1, 2, 0, 1]), torch.tensor([10, 20, 21, 30]), None, [2, 2], [3, 1], [0, 0]
    )
    lengths, keys, permute = group_by_feature(received, 2)
    assert lengths.tolist() == [1, 0, 2, 1]
    assert keys.tolist() == [10, 20, 21, 30]
    mixed = Received(
        torch.tensor([1, 1, 1, 1]), torch.tensor([10, 20, 11, 21]), None, [2, 2], [2, 2], [0, 0]
    )
    lengths, keys, permute = group_by_feature(mixed, 2)
    assert keys.tolist() == [10, 11, 20, 21]
    assert keys[permute].tolist() == mixed.keys.tolist()


def test_refusals(tmp_path: Path) -> None:
    """Refused are a batch for another number of ranks, arrays, and rows without keys."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        two = bucketize(torch.tensor([1]), torch.tensor([1]), num_features=1, ranks=2)
        with pytest.raises(RoutingError, match="2 ranks, the group has 1"):
            exchange(two)
        with pytest.raises(RoutingError, match="tensors"):
            exchange(bucketize(np.array([1]), np.array([1]), num_features=1, ranks=1))
        one = bucketize(torch.tensor([2]), torch.tensor([1, 2]), num_features=1, ranks=1)
        received = exchange(one)
        assert received.keys.tolist() == [1, 2]
        with pytest.raises(RoutingError, match="3 values"):
            send_back(received, torch.zeros(3, 4))
        with pytest.raises(RoutingError, match="divide"):
            group_by_feature(received, 2)
    finally:
        torch.distributed.destroy_process_group()
