"""The same workload under other key encodings: what must not change, and what may.

A workload is which of its items each lookup asks for. An encoding gives every item a key: dense,
shifted, strided, hashed to 63 bits; in 32 or 64 bits, signed or unsigned, an array or a tensor.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuda_routing.bucketize import bucketize
from cuda_routing.rules import Rule, block_size_of, owners, splitmix64

ITEMS, LOOKUPS, BAGS = 5_000, 40_000, 500
HASHED = (Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT)
ENCODINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda items: items,
    "shifted": lambda items: items + 1_000_003,
    "strided": lambda items: items * 64,
    "negative": lambda items: -5 - items,
    "hashed": lambda items: (splitmix64(items) >> np.uint64(1)).astype(np.int64),
}


@pytest.fixture(scope="module")
def items() -> np.ndarray:
    """The items of a batch of two features, the first ones the most popular."""
    generator = np.random.default_rng(3)
    return np.minimum(generator.geometric(0.001, LOOKUPS), ITEMS) - 1


def routed(keys: Any, ranks: int, rule: Rule, **options: Any) -> Any:
    """Two features of equal bags, with the block size of a table of a million rows."""
    lengths: Any = np.full(BAGS, LOOKUPS // BAGS, np.int64)
    if not isinstance(keys, np.ndarray):
        import torch

        lengths = torch.from_numpy(lengths)
    return bucketize(
        lengths, keys, num_features=2, ranks=ranks, rule=rule,
        block_sizes=block_size_of(1 << 20, ranks), **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", list(ENCODINGS))
def test_deduplication_saves_the_same(name: str, items: np.ndarray) -> None:
    """Which items repeat does not depend on how their keys are encoded."""
    dense = routed(items, 7, Rule.HASH_ROUNDROBIN, dedup=True)
    found = routed(ENCODINGS[name](items), 7, Rule.HASH_ROUNDROBIN, dedup=True)
    assert found.traffic == dense.traffic
    assert found.lengths.sum() == dense.lengths.sum()


@pytest.mark.parametrize("rule", HASHED)
@pytest.mark.parametrize("name", list(ENCODINGS))
def test_hashed_rules_spread_every_encoding(name: str, rule: Rule) -> None:
    """Even lookups stay even under a hash: max/mean below 1.15 on 8 ranks, whatever the keys."""
    keys = ENCODINGS[name](np.arange(ITEMS))
    loads = np.bincount(owners(keys, 8, rule), minlength=8)
    assert loads.max() / loads.mean() < 1.15


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_arrays_and_tensors(backend: str, width: type, items: np.ndarray) -> None:
    """A tensor is routed as the array of the same numbers, on every path."""
    torch = pytest.importorskip("torch")
    if backend == "numba":
        pytest.importorskip("numba")
    keys = ENCODINGS["strided"](items).astype(width)
    array = routed(keys, 12, Rule.HASH_ROUNDROBIN, backend="numpy", dynamicemb_int32=True)
    tensor = routed(
        torch.from_numpy(keys), 12, Rule.HASH_ROUNDROBIN, backend=backend, dynamicemb_int32=True
    )
    for field in ("lengths", "keys", "permute"):
        np.testing.assert_array_equal(
            getattr(array, field), getattr(tensor, field).numpy(), err_msg=field
        )
