"""Bytes that a simulated plan fills, against those it reserves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milp_planner import plan
from milp_planner.features.simulate import table as simulated_table
from milp_planner.features.simulate.places import MemoryInfo
from milp_planner.features.simulate.plan import simulate_plan
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan

DYNAMIC = {"kind": "dynamicemb", "dim": 16, "pooling_factor": 8, "optimizer": "adam",
           "access": {"kind": "zipf", "alpha": 0.5}}  # fmt: skip
ARRAY = {"dim": 64, "pooling_factor": 3}
TABLES = [
    {"name": "hybrid", "rows": 20_000, **DYNAMIC,
     "constraints": {"modes": "HYBRID", "cache_ratios": [0.4]}},
    {"name": "cache", "rows": 30_000, **DYNAMIC,
     "constraints": {"modes": "CACHING", "cache_ratios": [0.2]}},
    {"name": "host", "rows": 5_000, **DYNAMIC, "constraints": {"modes": "HOST_ONLY"}},
    {"name": "columns", "rows": 5_000, **ARRAY, "constraints": {"sharding_types": "column_wise"}},
    {"name": "rows", "rows": 5_003, **ARRAY, "constraints": {"sharding_types": "table_row_wise"}},
]  # fmt: skip


def planned(
    tables: list[dict[str, Any]], hbm: str = "80GiB", machines: int = 2, **workload: Any
) -> Plan:
    """A plan for machines of two ranks."""
    work = {"batch_per_rank": 64, "fusion": "free", **workload}
    model = Model.from_dict({"name": "m", "workload": work, "tables": tables})
    links = {"intra_machine": "450GB/s", "inter_machine": "50GB/s"}
    cluster = {"name": "c", "profile": "a10", "machines": machines, "ranks_per_machine": 2,
               "hbm": hbm, "ddr": "2TB", "interconnect": links}  # fmt: skip
    return plan(model, Cluster.from_dict(cluster), formulation="greedy")


def memory(found: Plan, **traces: np.ndarray) -> tuple[MemoryInfo, MemoryInfo]:
    """HBM and DDR."""
    hbm, ddr = simulate_plan(found, 4, 1, traces).memory
    return hbm, ddr


def test_a_trace_of_known_rows_fills_what_they_take() -> None:
    """100 ids repeated: rows with Adam's state, 21 bytes per slot, 4 per bucket, ids, lengths and
    offsets of the bags, outputs."""
    table = {"name": "t", "rows": 4096, **DYNAMIC, "access": "unknown",
             "constraints": {"modes": "HYBRID", "cache_ratios": [0.5]}}  # fmt: skip
    found = planned([table], machines=1)
    hbm, ddr = memory(found, t=np.arange(2 * 64 * 8 * 8) % 100)
    rows, slots = 50 * 3 * 16 * 4, 2048 * 21 + 4 * (1 + 1024 // 128)
    buffers = 2 * 64 * 8 * 8 + 2 * 2 * 64 * 16 + 2 * 64 * 16 * 4
    assert hbm.simulated == (rows + slots + buffers,) * 2
    worst = 2 * 8 * round(6 * 8**0.5 * 512**0.5)  # ids of six standard deviations, in two batches
    assert hbm.predicted == pytest.approx((1024 * 3 * 16 * 4 + slots + buffers + worst,) * 2, abs=9)
    assert (ddr.simulated, ddr.predicted) == ((0,), (2 * 1024 * 3 * 16 * 4,))


def test_arrays_are_filled_as_reserved() -> None:
    """A TorchRec table is allocated whole: both agree except for the ids of the fullest step."""
    found = planned(TABLES[3:])
    hbm, ddr = memory(found)
    assert hbm.simulated == pytest.approx(hbm.predicted, rel=0.01)
    assert (ddr.simulated, ddr.predicted) == ((0, 0), (0, 0))


@pytest.mark.parametrize("buffers", ["additive", "largest_collective"])
def test_nothing_overflows_what_the_plan_reserves(buffers: str) -> None:
    """With all modes together, every rank and machine holds its rows within the reserved bytes."""
    found = planned(TABLES, buffers=buffers)
    assert found.verdict is not None
    for info in memory(found):
        assert all(s <= p for s, p in zip(info.simulated, info.predicted, strict=True))
        assert min(info.simulated) > 0.6 * min(info.predicted)
        assert info.simulated[info.fullest] == max(info.simulated)


def test_what_a_storage_model_leaves_out_shows() -> None:
    """TorchEasyRec does not count keys of host rows, so the simulated HBM exceeds its
    prediction."""
    found = planned(TABLES[:3], storage_model="torcheasyrec")
    hbm, _ = memory(found)
    assert all(s > p for s, p in zip(hbm.simulated, hbm.predicted, strict=True))


def test_without_hbm_everything_is_in_ddr() -> None:
    """On a cluster of processors, all bytes are in DDR."""
    hbm, ddr = memory(planned(TABLES[2:4], hbm="0GiB"))
    assert set(hbm.simulated) == set(hbm.predicted) == {0}
    assert ddr.simulated == pytest.approx(ddr.predicted, rel=0.1)


def test_a_sample_holds_no_more_than_the_slots_it_stands_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample's whole sets of 32 slots, scaled up, do not overflow an array's cache."""
    monkeypatch.setattr(simulated_table, "MAX_ROWS", 10_000)
    cache = {"modes": "CACHING", "cache_ratios": [0.1], "sharding_types": "table_wise"}
    table = {"name": "t", "rows": 1_000_000, "dim": 128, "pooling_factor": 8, "constraints": cache}
    found = planned([table], machines=1)
    row = simulate_plan(found, 2).tables[0]
    assert row.sampled < 0.02
    assert row.held == row.growth[-1] == row.predicted_slots == 100_000
    hbm, _ = memory(found)
    assert hbm.simulated == hbm.predicted


STORED = [
    {"name": "drive", "rows": 100_000, "dim": 64, "pooling_factor": 4, "optimizer": "adam",
     "constraints": {"modes": "SSD", "sharding_types": "row_wise", "cache_ratios": [0.2]}},
    {"name": "host", "rows": 50_000, "dim": 64, "pooling_factor": 4,
     "key_value": {"virtual": True, "optimizer_in_rows": True},
     "constraints": {"modes": "CACHING", "sharding_types": "row_wise", "cache_ratios": [0.2]}},
]  # fmt: skip


def on_drives(storage_model: str = "runtime") -> Plan:
    """A table on SSD and a virtual table in host memory, on one machine of two ranks."""
    workload = {"batch_per_rank": 256, "ssd_step_ms": 100, "storage_model": storage_model}
    model = Model.from_dict({"name": "m", "workload": workload, "tables": STORED})
    cluster = {"name": "c", "profile": "a10", "machines": 1, "ranks_per_machine": 2,
               "hbm": "80GiB", "ddr": "64GiB", "ssd": {"size": "3TB", "bandwidth": "16GB/s"},
               "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip
    return plan(model, Cluster.from_dict(cluster), formulation="greedy")


def test_rows_on_ssd_are_not_bytes_of_ddr() -> None:
    """Worked by hand: 8 bytes of key a row on SSD; in DDR two buffers for evicted rows, the write
    buffer, and the virtual table's rows with their state (4 bytes in 16) and 32 bytes each."""
    hbm, ddr, ssd = simulate_plan(on_drives(), 4, 1).memory
    assert [(m.memory, m.place) for m in (hbm, ddr, ssd)] == [
        ("HBM", "rank"), ("DDR", "machine"), ("SSD", "machine"),
    ]  # fmt: skip
    row, drive_slots, host_slots = 64 * 4, 9_984, 4_992  # a fifth of a rank's rows in sets of 32
    buffers = 2 * 2 * (drive_slots * (row + 12) + host_slots * (row + 16 + 12))
    assert ssd.simulated == ssd.predicted == (100_000 * (row + 8),)
    hosted = 2 * 2 * 2**30 + 50_000 * (row + 16 + 32)
    assert ddr.simulated == ddr.predicted == (buffers + hosted,)
    assert hbm.simulated == pytest.approx(hbm.predicted, rel=0.01)


def test_the_memory_of_a_store_is_the_runtimes() -> None:
    """TorchRec's planner counts no DDR; the simulated bytes are those that FBGEMM allocates."""
    real = simulate_plan(on_drives(), 4, 1).memory
    counted = simulate_plan(on_drives("torcheasyrec"), 4, 1).memory
    assert counted[1].predicted == (0,)
    assert counted[1].simulated == real[1].simulated
    assert counted[2].simulated == real[2].simulated
