"""The same workload under other key encodings: what must not change, and what may.

A workload is which of its items each lookup asks for. An encoding gives every item a key: dense,
shifted, strided, hashed to 63 bits; in 32 or 64 bits, signed or unsigned, an array or a tensor.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuda_routing.balance import balance
from cuda_routing.bucketize import bucketize
from cuda_routing.distributions import sample
from cuda_routing.inverse import restore, unbucketize
from cuda_routing.rules import Rule, block_size_of, local_keys, owners, splitmix64

ITEMS, LOOKUPS, BAGS = 5_000, 40_000, 500
HASHED = (Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT)
ENCODINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda items: items,
    "shifted": lambda items: items + 1_000_003,
    "strided": lambda items: items * 64,
    "negative": lambda items: -5 - items,
    "hashed": lambda items: (splitmix64(items) >> np.uint64(1)).astype(np.int64),
}
NARROW = ("dense", "shifted", "strided", "negative")


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


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("name", list(ENCODINGS))
def test_every_lookup_arrives_and_comes_back(name: str, rule: Rule, items: np.ndarray) -> None:
    """Under any encoding each bag keeps its length, and rows return to the lookups that asked."""
    keys = ENCODINGS[name](items)
    found = routed(keys, 7, rule)
    assert found.lengths.reshape(7, -1).sum(0).tolist() == [LOOKUPS // BAGS] * BAGS
    sent = np.empty(LOOKUPS, np.int64)
    sent[found.permute] = items
    np.testing.assert_array_equal(unbucketize(sent, found.permute), items)
    if rule is not Rule.CONTINUOUS:
        _, back = restore(found, rule, num_features=2)
        np.testing.assert_array_equal(back, keys)


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


def test_roundrobin_spreads_only_some() -> None:
    """Dense keys are even under roundrobin; a stride that ranks divide sends all to one rank."""
    spread = {
        name: balance(sample(ENCODINGS[name](np.arange(ITEMS))), 8, "roundrobin").max_over_mean
        for name in ("dense", "shifted", "strided")
    }
    assert spread == {
        "dense": pytest.approx(1.0),
        "shifted": pytest.approx(1.0),
        "strided": pytest.approx(8.0),
    }


@pytest.mark.parametrize("ranks", [1, 3, 7, 8, 12, 64])
@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("name", NARROW)
def test_width_and_sign_of_the_type(name: str, rule: Rule, ranks: int, items: np.ndarray) -> None:
    """int32 and int64, signed and unsigned, have the same owners where the definition says so."""
    keys = ENCODINGS[name](items)
    block = block_size_of(1 << 20, ranks)

    def owned(array: np.ndarray, runtime: bool = False) -> np.ndarray:
        return owners(array, ranks, rule, block_size=block, dynamicemb_int32=runtime)

    wide, narrow = owned(keys), owned(keys.astype(np.int32))
    np.testing.assert_array_equal(wide, owned(keys.astype(np.uint64)))
    np.testing.assert_array_equal(narrow, owned(keys.astype(np.uint32)))
    zero_extended = owned(keys.astype(np.int64) & 0xFFFFFFFF)
    np.testing.assert_array_equal(narrow, zero_extended)
    runtime = owned(keys.astype(np.int32), True)
    power_of_two = ranks & (ranks - 1) == 0
    if rule is Rule.HASH_ROUNDROBIN and not power_of_two:
        assert (runtime != narrow).any()
    else:
        np.testing.assert_array_equal(runtime, narrow)
    np.testing.assert_array_equal(wide, owned(keys, True))


@pytest.mark.parametrize("rule", list(Rule))
def test_local_keys_of_a_narrow_type(rule: Rule, items: np.ndarray) -> None:
    """A key inside the table gets the same local key in either width."""
    wide = local_keys(items, 7, rule, block_size=1000)
    narrow = local_keys(items.astype(np.int32), 7, rule, block_size=1000)
    assert narrow.dtype == np.int32
    np.testing.assert_array_equal(wide, narrow)


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
