"""The GPU path's host side, over the shim and over a stand-in for CUDA's driver."""

import ctypes
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing import cuda_path
from cuda_routing.bucketize import bucketize
from cuda_routing.cuda_path import bucketize_with
from cuda_routing.driver import Driver, Module
from cuda_routing.errors import BackendUnavailable
from cuda_routing.features import make_features
from cuda_routing.launch import Batch
from cuda_routing.oracle import bucketize_numpy
from tests.cuda_routing.cases import Case, assert_equal, batches
from tests.cuda_routing.shim.host import SMALL, compile_kernels

torch = pytest.importorskip("torch")

STREAM = 0x5EED


class ShimKernels:
    """Kernels behind the stand-in driver, with CPU tensors as device memory."""

    geometry = SMALL
    capture = False

    def __init__(self, key_bits: int, length_bits: int) -> None:
        library = ctypes.CDLL(str(compile_kernels(key_bits, length_bits)))
        self.module = Module(Driver(library), b"cubin", multiprocessors=3)
        self.zeros = torch.zeros(2, dtype=torch.int32)
        self.launched: list[str] = []

    def launch(
        self, kernel: str, grid: int, threads: int, shared: int, batch: Batch, cooperative: bool
    ) -> None:
        """Launch through the driver's functions."""
        self.launched.append(kernel)
        self.module.launch(kernel, (grid, threads, shared), batch, STREAM, cooperative=cooperative)

    def most_blocks_at_once(self, shared: int) -> int:
        """Two blocks on each of three multiprocessors."""
        return self.module.resident_blocks("bucketize_once", SMALL.block, shared)

    def barrier(self) -> Any:
        """Return the one barrier of the only stream."""
        return self.zeros

    def capturing(self) -> bool:
        """Whether a graph is being captured, as the test sets it."""
        return self.capture


def kernels_for(case: Case) -> ShimKernels:
    """Kernels for this batch's types."""
    return ShimKernels(8 * case.keys.dtype.itemsize, 8 * case.lengths.dtype.itemsize)


@settings(max_examples=100, deadline=None)
@given(batches(), st.booleans(), st.booleans())
def test_equals_numpy(case: Case, extras: bool, permute: bool) -> None:
    """Allocation, launch arguments and both paths together give the NumPy result."""
    found = bucketize_with(
        kernels_for(case), torch.from_numpy(case.lengths), torch.from_numpy(case.keys),
        case.features, weights=torch.from_numpy(case.weights) if extras else None,
        positions=extras, permute=permute,
    )  # fmt: skip
    expected = bucketize_numpy(
        case.lengths, case.keys, case.features, weights=case.weights if extras else None,
        positions=extras, permute=permute,
    )  # fmt: skip
    assert_equal(found, expected)


@pytest.mark.parametrize(("keys", "kernels"), [(300, ["bucketize_once"]), (400, 3), (0, 0)])
def test_small_batches_take_one_launch(keys: int, kernels: Any) -> None:
    """Of six resident blocks of 128 keys, half hold 300 keys but not 400; no keys no launch."""
    shim = ShimKernels(64, 64)
    lengths, values = torch.tensor([keys]), torch.arange(keys)
    bucketize_with(shim, lengths, values, make_features(1, 1, 4, 1))
    assert shim.launched == kernels or len(shim.launched) == kernels


def test_weights_of_other_types_follow_the_permutation() -> None:
    """Weights of a type that the kernels do not move are moved by index, in their own type."""
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    found = bucketize_with(
        ShimKernels(64, 64), torch.tensor([3]), torch.tensor([1, 2, 3]), make_features(1, 1, 2, 1),
        weights=weights, permute=False,
    )  # fmt: skip
    assert found.weights.dtype is torch.float64
    assert found.weights.tolist() == [2.0, 1.0, 3.0]
    assert found.permute is None


def test_launches_use_the_given_stream() -> None:
    """The stream handle reaches the driver."""
    shim = ShimKernels(64, 64)
    bucketize_with(shim, torch.tensor([5]), torch.arange(5), make_features(1, 1, 2, 1))
    shim.module.driver.library.fake_last_stream.restype = ctypes.c_uint64
    assert shim.module.driver.library.fake_last_stream() == STREAM


def test_two_thousand_ranks_ask_for_more_shared_memory() -> None:
    """More than 48 KB of shared memory is requested first, else the driver refuses the launch."""
    keys = np.arange(300)
    features = make_features(1, 1, 2048, 1)
    tensors = torch.tensor([300]), torch.from_numpy(keys)
    for once in (False, True):
        found = bucketize_with(ShimKernels(64, 64), *tensors, features, once=once)
        assert_equal(found, bucketize_numpy(np.array([300]), keys, features))


def test_tables_of_captured_graphs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule tables are dropped after many others, unless a graph reads them."""
    monkeypatch.setattr(cuda_path, "REMEMBERED_TABLES", 2)
    monkeypatch.setattr(cuda_path, "_TABLES", OrderedDict())
    monkeypatch.setattr(cuda_path, "_CAPTURED", {})
    shim = ShimKernels(64, 64)
    for ranks in range(1, 6):
        shim.capture = ranks == 2
        bucketize_with(shim, torch.tensor([5]), torch.arange(5), make_features(1, 1, ranks, 1))
    assert [key[1] for key in cuda_path._TABLES] == [4, 5]
    assert [key[1] for key in cuda_path._CAPTURED] == [2]


def test_driver_failures_are_named() -> None:
    """A failing driver call is reported with its function and error name."""
    shim = ShimKernels(64, 64)
    with pytest.raises(RuntimeError, match="cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND"):
        shim.module.function("no_such_kernel", 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_no_driver_is_one_sentence() -> None:
    """Without a driver, the error says that the CPU path works."""
    with pytest.raises(BackendUnavailable, match="CPU path needs none"):
        Driver()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@settings(max_examples=100, deadline=None)
@given(batches(longest=5000), st.booleans())
def test_on_a_gpu(case: Case, once: bool) -> None:
    """The real kernels on a real device equal the NumPy definition."""
    from cuda_routing.cuda_path import device_kernels

    kernels = device_kernels(0, 8 * case.keys.dtype.itemsize, 8 * case.lengths.dtype.itemsize)
    tensors = torch.from_numpy(case.lengths).cuda(), torch.from_numpy(case.keys).cuda()
    weights = torch.from_numpy(case.weights).cuda()
    found = bucketize_with(kernels, *tensors, case.features, weights=weights, positions=True,
                           once=once or None)  # fmt: skip
    expected = bucketize_numpy(
        case.lengths, case.keys, case.features, weights=case.weights, positions=True
    )
    for name in ("lengths", "keys", "weights", "positions", "permute"):
        np.testing.assert_array_equal(getattr(found, name).cpu().numpy(), getattr(expected, name))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("keys", [10_000, 3_000_000])
def test_graph_capture(keys: int) -> None:
    """A captured call replays on new keys, on the one-launch path and the tiled path."""
    lengths = torch.tensor([keys], device="cuda")
    values = torch.arange(keys, device="cuda")
    bucketize(lengths, values, num_features=1, ranks=8)  # uploads the tables
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = bucketize(lengths, values, num_features=1, ranks=8)
    values.copy_(torch.arange(keys, device="cuda").flip(0))
    for _ in range(3):
        graph.replay()
    expected = bucketize(lengths.cpu(), values.cpu(), num_features=1, ranks=8)
    assert torch.equal(found.keys.cpu(), expected.keys)
    assert torch.equal(found.lengths.cpu(), expected.lengths)
