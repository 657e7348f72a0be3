"""The public entry point: a batch by hand, dispatch, de-duplication, gradients and refusals."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing.bucketize import bucketize, choose_cpu
from cuda_routing.errors import BackendUnavailable, RoutingError
from cuda_routing.inverse import unbucketize
from cuda_routing.torch_path import _quotient, signed, unsigned_modulo
from tests.corpus import mistakes
from tests.cuda_routing.cases import Case, assert_equal, batches

CPU = ["numpy", "numba", "torch"]


def need(backend: str) -> None:
    """Skip the test if a backend's package is missing."""
    if backend != "numpy":
        pytest.importorskip(backend)


@settings(max_examples=120, deadline=None)
@given(batches(), st.sampled_from(CPU[1:]), st.booleans(), st.booleans(), st.booleans())
def test_backends_agree(
    case: Case, backend: str, weighted: bool, positions: bool, permute: bool
) -> None:
    """Every backend gives what the definition gives, whichever fields are asked for; the others are
    None."""
    need(backend)
    asked = {"weights": case.weights if weighted else None, "positions": positions,
             "permute": permute, **case.call}  # fmt: skip
    found, expected = (
        bucketize(case.lengths, case.keys, backend=each, **asked) for each in (backend, "numpy")
    )
    assert_equal(found, expected)
    assert [expected.weights is None, expected.positions is None, expected.permute is None] == [
        not weighted, not positions, not permute
    ]  # fmt: skip


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**63 - 1))
def test_unsigned_division(u: int, divisor: int) -> None:
    """Unsigned quotient and remainder come out of signed torch arithmetic."""
    torch = pytest.importorskip("torch")
    pattern = torch.tensor([signed(u)])
    quotient = _quotient(pattern, divisor).numpy().view(np.uint64)
    remainder = unsigned_modulo(pattern, divisor).numpy().view(np.uint64)
    assert (int(quotient[0]), int(remainder[0])) == divmod(u, divisor)


@pytest.mark.parametrize("backend", CPU)
def test_no_rows_and_many_ranks(backend: str) -> None:
    """An empty batch and 1,500 ranks work like any other."""
    need(backend)
    empty = bucketize([], [], num_features=3, ranks=5, backend=backend)
    assert (empty.lengths.size, empty.keys.size, empty.permute.size) == (0, 0, 0)
    keys = np.arange(3000, dtype=np.int64)
    wide = bucketize([3000], keys, num_features=1, ranks=1500, backend=backend)
    assert wide.lengths.tolist() == [2] * 1500
    assert wide.keys[:4].tolist() == [0, 1500, 1, 1501]


@pytest.mark.parametrize("backend", CPU)
def test_uint64_keys(backend: str) -> None:
    """uint64 keys keep their type and go where their bits say."""
    need(backend)
    keys = np.array([2**64 - 1, 5, 2**63], dtype=np.uint64)
    found = bucketize([3], keys, num_features=1, ranks=7, rule=2, backend=backend)
    same = bucketize([3], keys.view(np.int64), num_features=1, ranks=7, rule=2, backend="numpy")
    assert found.keys.dtype == np.uint64
    assert found.keys.view(np.int64).tolist() == same.keys.tolist()


@settings(max_examples=60, deadline=None)
@given(batches(), st.sampled_from(CPU))
def test_dedup_sends_each_key_once(case: Case, backend: str) -> None:
    """Each (rank, feature) gets distinct keys, and every input finds its own key."""
    need(backend)
    found = bucketize(case.lengths, case.keys, dedup=True, backend=backend, **case.call)
    plain = bucketize(case.lengths, case.keys, backend="numpy", **case.call)
    np.testing.assert_array_equal(found.keys[found.permute], plain.keys[plain.permute])
    edges = np.concatenate([[0], np.cumsum(found.lengths)])
    assert found.lengths.size == case.features.ranks * case.features.count
    for a, b in pairwise(edges):
        assert np.unique(found.keys[a:b]).size == b - a or case.features.renumbers
    assert found.traffic.keys_after == found.keys.size == edges[-1]
    assert found.traffic.keys_before == case.keys.size
    reference = bucketize(case.lengths, case.keys, dedup=True, backend="numpy", **case.call)
    assert_equal(found, reference)


def test_dedup_by_hand() -> None:
    """Of five lookups two distinct keys are sent, which saves 60%; the same key in two features is
    two rows, and is sent twice."""
    found = bucketize([3, 2], [6, 3, 6, 3, 6], num_features=1, ranks=2, dedup=True)
    assert found.keys.tolist() == [6, 3]
    assert found.lengths.tolist() == [1, 1]
    assert found.permute.tolist() == [0, 1, 0, 1, 0]
    assert found.traffic.saved == pytest.approx(0.6)
    assert found.traffic.bytes_before - found.traffic.bytes_after == 24
    apart = bucketize([1, 1], [5, 5], num_features=2, ranks=1, dedup=True)
    assert (apart.keys.tolist(), apart.lengths.tolist()) == ([5, 5], [1, 1])


def test_tensors_come_back_as_tensors() -> None:
    """CPU tensors take the fast path and come back as tensors of the same types."""
    torch = pytest.importorskip("torch")
    lengths, keys = torch.tensor([2, 1], dtype=torch.int32), torch.tensor([5, 2, 7])
    for backend in ("auto", "numba", "torch"):
        found = bucketize(lengths, keys, num_features=1, ranks=2, backend=backend)
        assert found.lengths.dtype is torch.int32
        assert found.keys.tolist() == [2, 5, 7]
        assert found.permute.tolist() == [1, 0, 2]


@pytest.mark.parametrize("backend", ["auto", "numba", "torch"])
def test_gradients_flow_through_weights(backend: str) -> None:
    """Each weight gets the gradient of its moved copy."""
    torch = pytest.importorskip("torch")
    weights = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = bucketize(torch.tensor([3]), torch.tensor([1, 2, 5]), num_features=1, ranks=2,
                      weights=weights, permute=False, backend=backend)  # fmt: skip
    assert found.permute is None
    assert found.weights.tolist() == [2.0, 1.0, 3.0]
    (found.weights * torch.tensor([10.0, 20.0, 30.0])).sum().backward()
    assert weights.grad.tolist() == [20.0, 10.0, 30.0]


def test_gradients_of_shared_rows_add_up() -> None:
    """A row that several lookups share collects all their gradients."""
    torch = pytest.importorskip("torch")
    found = bucketize(torch.tensor([4]), torch.tensor([8, 3, 8, 8]), num_features=1, ranks=2,
                      dedup=True)  # fmt: skip
    rows = torch.ones(2, 3, requires_grad=True)
    unbucketize(rows, found.permute).sum().backward()
    assert rows.grad.tolist() == [[3.0] * 3, [1.0] * 3]


def test_auto_leaves_small_batches_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few keys do not wait for the compiler; a large batch does."""
    monkeypatch.delitem(sys.modules, "cuda_routing.numba_path", raising=False)
    monkeypatch.setitem(choose_cpu.__globals__, "have_numba", lambda: True)
    assert choose_cpu("auto", 10) == "numpy"
    assert choose_cpu("auto", 1 << 20) == "numba"


def test_forced_backends_that_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forced backend that cannot run says which package is missing."""
    monkeypatch.setitem(choose_cpu.__globals__, "have_numba", lambda: False)
    with pytest.raises(BackendUnavailable, match="pip install"):
        bucketize([1], [1], num_features=1, ranks=1, backend="numba")
    with pytest.raises(BackendUnavailable, match="CUDA device"):
        bucketize([1], [1], num_features=1, ranks=1, backend="cuda")


@pytest.mark.parametrize(("arguments", "words"), mistakes(__file__, "refusals"))
def test_refusals(arguments: dict[str, object], words: str) -> None:
    """The error names each wrong argument."""
    options: dict[str, object] = {"lengths": [3], "keys": [1, 2, 3], "num_features": 1, "ranks": 2}
    with pytest.raises(RoutingError, match=words):
        bucketize(**(options | arguments))  # type: ignore[arg-type]


def test_import_needs_numpy_only() -> None:
    """Importing the package loads neither torch nor numba nor matplotlib."""
    code = (
        "import sys, cuda_routing; "
        "print([m for m in ('torch', 'numba', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
