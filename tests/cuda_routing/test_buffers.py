"""Recycled memory is reused once nothing refers to it, never earlier and never beyond the limit.

The exchange with 2 and 4 real processes against one process that holds all keys.
"""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

from cuda_routing import buffers
from cuda_routing.bucketize import bucketize
from cuda_routing.buffers import SMALLEST, Pool
from cuda_routing.errors import RoutingError
from cuda_routing.exchange import Received, exchange, group_by_feature, send_back
from cuda_routing.features import make_features
from cuda_routing.oracle import bucketize_numpy
from tests.cuda_routing.cases import assert_equal

BIG = SMALLEST // 8 + 5


def address(array: np.ndarray) -> int:
    """The address at which the array's memory begins."""
    return int(array.__array_interface__["data"][0])


def test_dropped_memory_is_used_again() -> None:
    """The second array gets the first one's memory, with its own type and size."""
    pool = Pool()
    first = pool.empty(BIG, np.int64)
    place = address(first)
    del first
    second = pool.empty(2 * BIG - 9, np.int32)
    assert address(second) == place
    assert (second.dtype, second.shape) == (np.int32, (2 * BIG - 9,))
    second[:] = 3
    assert pool.idle_bytes() == 0


@pytest.mark.parametrize(
    "keep", [lambda a: a[5:], lambda a: a.view(np.uint8), lambda a: a.reshape(1, -1)]
)
def test_views_hold_the_memory(keep: object) -> None:
    """While any view lives, its memory is not handed out again."""
    pool = Pool()
    first = pool.empty(BIG, np.int64)
    place, view = address(first), keep(first)  # type: ignore[operator]
    del first
    assert address(pool.empty(BIG, np.int64)) != place
    del view
    assert pool.idle_bytes() == 2 * 8 * BIG


def test_tensors_hold_the_memory() -> None:
    """A torch tensor made from the array, or a view of that tensor, also keeps the memory."""
    torch = pytest.importorskip("torch")
    pool = Pool()
    tensor = torch.from_numpy(pool.empty(BIG, np.int64))[3:].view(-1)
    tensor.fill_(7)
    other = pool.empty(BIG, np.int64)
    other[:] = 1
    assert bool((tensor == 7).all())
    del tensor
    gc.collect()
    assert pool.idle_bytes() == 8 * BIG


def test_zeros_are_zero_on_used_memory() -> None:
    """Reused memory that held other values is cleared."""
    pool = Pool()
    first = pool.empty(BIG, np.int64)
    first[:] = -1
    place = address(first)
    del first
    second = pool.zeros(BIG, np.int64)
    assert address(second) == place
    assert not second.any()
    assert not pool.zeros(3, np.int64).any()


def test_limit_and_small_arrays() -> None:
    """Idle memory stays within the limit; small arrays are not kept at all."""
    pool = Pool(limit=8 * BIG + 100)
    both = [pool.empty(BIG, np.int64), pool.empty(BIG, np.int64)]
    both.clear()
    assert pool.idle_bytes() == 8 * BIG
    pool.limit = 0
    assert pool.idle_bytes() == 0
    pool = Pool()
    pool.empty(10, np.int64)
    assert pool.idle_bytes() == 0


def test_the_newest_memory_is_kept() -> None:
    """Memory left from an old batch size makes room for that of the new one."""
    pool = Pool(limit=8 * 5 * BIG)
    old = [pool.empty(2 * BIG, np.int64) for _ in range(2)]
    old.clear()
    new = pool.empty(3 * BIG, np.int64)
    place = address(new)
    del new
    assert pool.idle_bytes() <= pool.limit
    assert address(pool.empty(3 * BIG, np.int64)) == place


def test_much_larger_memory_is_not_wasted() -> None:
    """A request far smaller than the idle memory gets memory of its own."""
    pool = Pool()
    large = pool.empty(4 * BIG, np.int64)
    place = address(large)
    del large
    assert address(pool.empty(BIG, np.int64)) != place


def test_threads_never_share() -> None:
    """Many threads that take and drop arrays find only their own values in them."""
    pool, wrong = Pool(), []

    def work(value: int) -> None:
        for _ in range(60):
            array = pool.empty(BIG, np.int64)
            array[:] = value
            if not (array == value).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_kept_across_calls_stay_what_they_were() -> None:
    """Later batches do not overwrite results of earlier ones."""
    numba_path = pytest.importorskip("cuda_routing.numba_path")
    generator = np.random.default_rng(0)
    features = make_features(2, 6, 8, [1, 2])
    kept = []
    for _ in range(6):
        lengths = generator.integers(30_000, 40_000, size=6)
        keys = generator.integers(0, 2**60, size=int(lengths.sum()))
        found = numba_path.bucketize_numba(lengths, keys, features, positions=True, threads=1)
        numba_path.bucketize_numba(lengths, keys[::-1], features, positions=True, threads=1)
        kept.append((lengths, keys, found))
    for lengths, keys, found in kept:
        assert_equal(found, bucketize_numpy(lengths, keys, features, positions=True))


def test_keep_idle_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public switch frees idle memory."""
    monkeypatch.setattr(buffers, "POOL", Pool())
    buffers.POOL.empty(BIG, np.int64)
    assert buffers.POOL.idle_bytes() == 8 * BIG
    buffers.keep_idle(0)
    assert buffers.POOL.idle_bytes() == 0


def test_default_limit_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the memory, at most 4 GiB; 512 MiB if its size is unknown."""
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 20}
    monkeypatch.setattr(buffers.os, "sysconf", pages.__getitem__)
    assert buffers.default_limit() == 512 << 20
    pages["SC_PHYS_PAGES"] = 1 << 28
    assert buffers.default_limit() == 4 << 30
    monkeypatch.delattr(buffers.os, "sysconf")
    assert buffers.default_limit() == 512 << 20


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
