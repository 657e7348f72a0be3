"""The CPU's probes: the ids they draw, the calls they make, and errors for missing parts."""

import sys
from collections.abc import Iterator

import pytest

from milp_planner.errors import BadInput, MissingExtra
from milp_planner.features.calibrate.machine import (
    Load,
    available_memory,
    last_level_cache,
    measure,
)
from milp_planner.features.calibrate.result import measurement_plan
from milp_planner.features.calibrate.run import find_machine

torch = pytest.importorskip("torch")
from milp_planner.features.calibrate import torch_machine  # noqa: E402


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch_machine.TorchMachine]:
    """A machine with tiers of 64 KB and 4 MB and small batches."""
    monkeypatch.setattr(torch_machine, "LAUNCHES", 2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small work on many threads mostly waits
    yield torch_machine.TorchMachine(2**16, 2**22, Load(32, 4), 0)
    torch.set_num_threads(threads)


def test_every_probe_of_the_plan_runs(machine: torch_machine.TorchMachine) -> None:
    """One round of all probes on the real torch, with a clock that ticks once per reading."""
    ticks = iter(range(10**6))
    plan = measurement_plan(machine, True)
    samples = measure(plan.probes, 1, lambda: float(next(ticks)))
    assert len(samples) == len(plan.probes)
    assert all(sample.median > 0 for sample in samples.values())
    assert set(samples["lookup training dim=256"].parts) == {"forward", "backward"}


@pytest.mark.parametrize("hit", [0.25, 0.9])
def test_ids_fall_on_the_near_rows_with_the_stated_share(
    machine: torch_machine.TorchMachine, hit: float
) -> None:
    """CACHING by chance (±5 standard errors), HYBRID exactly."""
    ids = torch.cat([machine._mixed_ids(n, hit, 64) for n in range(50)])
    hot = 2**16 // 4 // 64
    expected = hit + (1 - hit) / 64  # the near region is one 64th of the far one
    error = (expected * (1 - expected) / len(ids)) ** 0.5
    assert abs(float((ids < hot).float().mean()) - expected) < 5 * error
    near, far = machine.lookup("HYBRID", hit, 64).prepare(0)
    assert len(near) == round(32 * hit) * 4
    assert len(near) + len(far) == 32 * 4


def test_fresh_ids_every_round_and_the_same_every_time(
    machine: torch_machine.TorchMachine,
) -> None:
    """Each round has new ids, as repeated ones would be cached; a seed repeats all batches."""
    probe = machine.lookup("HOST_ONLY", 0.0, 64)
    (_, first), (_, second), (_, again) = (probe.prepare(n) for n in (0, 1, 0))
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def test_priced_bytes_are_ids_rows_and_outputs() -> None:
    """2 bags of 3 ids of 8 floats: 48 of ids, 192 read, 64 written."""
    assert Load(2, 3).priced_bytes(8) == 6 * 8 + 6 * 32 + 2 * 32


def test_what_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU, too little memory, no torch."""
    if not torch.cuda.is_available():
        with pytest.raises(BadInput, match="torch sees no CUDA device"):
            find_machine("cuda", quick=True, threads=None, seed=0)
    monkeypatch.setattr(torch_machine, "available_memory", lambda: 10**8)
    with pytest.raises(BadInput, match=r"needs \d+\.\d GB of free memory, 0\.1 GB are free"):
        find_machine("cpu", quick=True, threads=None, seed=0)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'milp-planner\[routing\]'"):
        find_machine("cpu", quick=True, threads=None, seed=0)


def test_a_guest_does_not_count_on_all_of_its_hosts_cache() -> None:
    """A quarter of a cache of one's own; of the 480 MiB that a small guest sees, 8 MiB, and the
    far table leaves it most of its memory."""
    sizes = torch_machine.sizes
    assert sizes(32 * 2**20, 2**35, quick=False) == (8 * 2**20, 2_048_000_000)
    assert sizes(2**20, 2**35, quick=True) == (2**18, 512_000_000)
    assert sizes(480 * 2**20, 2**40, quick=True) == (8 * 2**20, 16 * 480 * 2**20)
    assert sizes(480 * 2**20, 2**33, quick=True) == (8 * 2**20, 2**31)


def test_memory_and_cache_are_plausible() -> None:
    """If the system reports both, memory is larger than the cache."""
    cache, free = last_level_cache(), available_memory()
    if cache is None or free is None:
        pytest.skip("this system tells neither")
    assert 2**15 < cache < free
