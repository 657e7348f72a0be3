"""KeyedJaggedTensors bucketized: against TorchRec, FBGEMM's operator and the definition."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing.errors import RoutingError
from cuda_routing.kjt import bucketize_kjt
from cuda_routing.rules import Rule
from tests.cuda_routing.cases import Case, batches, by_hand
from tests.cuda_routing.test_oracle import plain_owner

torch = pytest.importorskip("torch")
pytest.importorskip("torchrec")
from torchrec.distributed.embedding_sharding import bucketize_kjt_before_all2all  # noqa: E402
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor  # noqa: E402


def kjt_of(case: Case) -> Any:
    """The batch as a trainer holds it, with a batch size for each feature."""
    names = [f"f{t}" for t in range(case.features.count)]
    return KeyedJaggedTensor(
        keys=names,
        values=torch.from_numpy(case.keys),
        lengths=torch.from_numpy(case.lengths),
        weights=torch.from_numpy(case.weights),
        stride_per_key_per_rank=[[int(size)] for size in case.features.batch_sizes],
    )


def assert_same(found: Any, expected: Any) -> None:
    """Features, values, lengths, weights and batch sizes of two KeyedJaggedTensors are equal."""
    assert found.keys() == expected.keys()
    assert found.stride_per_key() == expected.stride_per_key()
    for name in ("values", "lengths", "weights"):
        left, right = getattr(found, name)(), getattr(expected, name)()
        assert left.dtype == right.dtype, name
        np.testing.assert_array_equal(left.numpy(), right.numpy(), err_msg=name)


@settings(max_examples=60, deadline=None)
@given(batches())
def test_roundrobin_equals_torchrec(case: Case) -> None:
    """Roundrobin is TorchRec's call with blocks of one that keep their ids."""
    batch = kjt_of(case)
    ones = torch.ones(case.features.count, dtype=torch.int64)
    theirs, permute = bucketize_kjt_before_all2all(
        batch, case.features.ranks, ones, output_permute=True, keep_original_indices=True
    )
    ours = bucketize_kjt(batch, ranks=case.features.ranks)
    assert_same(ours.kjt, theirs)
    np.testing.assert_array_equal(ours.unbucketize_permute.numpy(), permute.numpy())


@settings(max_examples=60, deadline=None)
@given(batches())
def test_blocks_equal_torchrec(case: Case) -> None:
    """Continuous is TorchRec's call with the same block sizes, out-of-range ids included."""
    batch, blocks = kjt_of(case), [1 + 7 * t for t in range(case.features.count)]
    theirs, permute = bucketize_kjt_before_all2all(
        batch, case.features.ranks, torch.tensor(blocks), output_permute=True
    )
    ours = bucketize_kjt(
        batch, ranks=case.features.ranks, rule="continuous", block_sizes=blocks, backend="numba"
    )
    assert_same(ours.kjt, theirs)
    np.testing.assert_array_equal(ours.unbucketize_permute.numpy(), permute.numpy())


def assert_operators(batch: Any, ranks: int, blocks: list[int], whole: list[bool] | None,
                     edges: Any = None, **options: Any) -> None:  # fmt: skip
    """Ours are the lengths, keys, weights, places and permutation of FBGEMM's operator."""
    lengths, values = batch.lengths(), batch.values()
    sizes = torch.tensor(batch.stride_per_key(), dtype=lengths.dtype)
    theirs = torch.ops.fbgemm.block_bucketize_sparse_features(
        lengths, values, True, True, torch.tensor(blocks, dtype=values.dtype), ranks,
        batch.weights(), sizes, int(sizes.max()),
        edges and [torch.tensor(edge, dtype=values.dtype) for edge in edges], False, None,
        None if whole is None else torch.tensor(whole),
    )  # fmt: skip
    ours = bucketize_kjt(batch, ranks=ranks, positions=True, boundaries=edges, **options)
    found = (ours.kjt.lengths(), ours.kjt.values(), ours.kjt.weights(), ours.positions,
             ours.unbucketize_permute)  # fmt: skip
    for left, right in zip(found, theirs, strict=True):
        np.testing.assert_array_equal(left.numpy(), right.numpy())


@settings(max_examples=60, deadline=None)
@given(batches(), st.data())
def test_features_of_both_rules_equal_the_operator(case: Case, data: st.DataObject) -> None:
    """Blocks and roundrobin in one batch."""
    count, batch = case.features.count, kjt_of(case)
    whole = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    blocks, names = [1 if kept else 5 + t for t, kept in enumerate(whole)], batch.keys()
    assert_operators(
        batch, case.features.ranks, blocks, whole,
        rule={n: "continuous" for n, kept in zip(names, whole, strict=True) if not kept},
        block_sizes=dict(zip(names, blocks, strict=True)),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(batches())
def test_custom_boundaries_equal_the_operator(case: Case) -> None:
    """For keys of either sign inside and beyond them."""
    ranks, count = case.features.ranks, case.features.count
    edges = [np.cumsum([0, *[(3 * r + t) % 5 for r in range(ranks)]]).tolist()
             for t in range(count)]  # fmt: skip
    inside = replace(case, keys=np.abs(case.keys % (3 * ranks)))
    assert_operators(kjt_of(inside), ranks, [1] * count, None, edges, rule="continuous")


@settings(max_examples=60, deadline=None)
@given(batches())
def test_every_rule_equals_the_definition(case: Case) -> None:
    """Hashed rules, custom boundaries and int32 keys equal plain Python, feature by feature."""
    expected = by_hand(case, lambda i, row: plain_owner(case, i, row))
    options = {k: case.call[k] for k in ("block_sizes", "boundaries", "dynamicemb_int32")}
    ours = bucketize_kjt(
        kjt_of(case), ranks=case.features.ranks, rule=case.call["rule"], positions=True, **options
    )
    found = {"lengths": ours.kjt.lengths(), "keys": ours.kjt.values(),
             "weights": ours.kjt.weights(), "positions": ours.positions,
             "permute": ours.unbucketize_permute}  # fmt: skip
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name].numpy(), array, err_msg=name)


def small(**more: Any) -> Any:
    """Two features of two samples."""
    return KeyedJaggedTensor(
        keys=["a", "b"], values=torch.tensor([4, 7, 9, 2, 3, 6]),
        lengths=torch.tensor([2, 0, 1, 3]), **more,
    )  # fmt: skip


def test_one_stride_for_all_features_stays_one() -> None:
    """Equal batch sizes stay equal, with the features repeated for each rank."""
    found = bucketize_kjt(small(), ranks=2, rule=Rule.ROUNDROBIN)
    assert found.kjt.keys() == ["a", "b", "a", "b"]
    assert found.kjt.stride() == 2
    assert not found.kjt.variable_stride_per_key()
    assert found.kjt.values().tolist() == [4, 2, 6, 7, 9, 3]
    assert found.kjt.lengths().tolist() == [1, 0, 0, 2, 1, 0, 1, 1]
    assert found.kjt.values()[found.unbucketize_permute].tolist() == [4, 7, 9, 2, 3, 6]
    assert found.positions is None
    assert bucketize_kjt(small(), ranks=2, permute=False).unbucketize_permute is None


def test_gradients_flow_through_the_weights() -> None:
    """Each input weight gets the gradient of the place it moved to."""
    weights = torch.ones(6, requires_grad=True)
    found = bucketize_kjt(small(weights=weights), ranks=2)
    (found.kjt.weights() * torch.arange(6.0)).sum().backward()
    assert weights.grad.tolist() == found.unbucketize_permute.tolist()


def test_int32_keys_follow_the_runtime_unless_told_otherwise() -> None:
    """On three ranks dynamicemb's hash sends some int32 keys elsewhere than int64 ones."""
    keys = torch.arange(50)
    options: dict[str, Any] = {"ranks": 3, "rule": "hash_roundrobin"}
    one = {"keys": ["f"], "lengths": torch.ones(50, dtype=torch.int64)}
    wide = bucketize_kjt(KeyedJaggedTensor(values=keys, **one), **options)
    narrow = bucketize_kjt(KeyedJaggedTensor(values=keys.int(), **one), **options)
    plain = bucketize_kjt(
        KeyedJaggedTensor(values=keys.int(), **one), dynamicemb_int32=False, **options
    )
    assert narrow.kjt.values().tolist() != wide.kjt.values().tolist()
    assert plain.kjt.values().tolist() == wide.kjt.values().tolist()


def test_unknown_features_are_named() -> None:
    """A rule for a feature that does not exist is refused with the nearest name."""
    batch = KeyedJaggedTensor(
        keys=["user", "item"], values=torch.tensor([1, 2]), lengths=torch.tensor([1, 1])
    )
    with pytest.raises(RoutingError, match=r"rule names feature 'items'.*did you mean 'item'"):
        bucketize_kjt(batch, ranks=2, rule={"items": "continuous"})
    empty = KeyedJaggedTensor(keys=[], values=torch.tensor([]), lengths=torch.tensor([]))
    with pytest.raises(RoutingError, match="nothing to route"):
        bucketize_kjt(empty, ranks=2)
