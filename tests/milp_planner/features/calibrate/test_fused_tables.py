"""FBGEMM's tables in a step, on the CPU."""

import sys
from typing import Any

import numpy as np
import pytest

from milp_planner.features.calibrate.machine import measure
from milp_planner.features.calibrate.steps import StepSpec, StepTable, draw_ids

torch = pytest.importorskip("torch")
pytest.importorskip("fbgemm_gpu.split_table_batched_embeddings_ops_training")
from milp_planner.features.calibrate import fused_tables, torch_steps  # noqa: E402
from milp_planner.features.calibrate.device_clock import DeviceClock  # noqa: E402
from milp_planner.features.calibrate.fused_tables import FusedTables, fbgemm_version  # noqa: E402
from milp_planner.features.calibrate.torch_steps import (  # noqa: E402
    Drawn,
    TorchTables,
    step_probe,
    thirds,
)

TABLES = (StepTable(50, 8, 3, 0.0), StepTable(30, 4, 1, 0.9))
ON_CPU = ("sgd", "adagrad", "rowwise_adagrad")
"""Optimizers that FBGEMM has on a CPU."""


def storage() -> Any:
    """Memory for two tables with two states each, weights all different."""
    memory = torch.full((3 * 1024,), 0.01)
    memory[:1024] = torch.arange(1024) / 1024
    return memory


def drawn(spec: StepSpec) -> list[Any]:
    """Ids of every table."""
    numbers = Drawn([1, 2], "cpu")
    return [draw_ids(t, spec.batch * t.pooling, numbers, torch) for t in spec.tables]


@pytest.mark.parametrize("optimizer", ON_CPU)
def test_rows_are_looked_up_and_move_as_torchs_do(
    optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs, and weights after a step, are those of torch's tables on the same memory."""
    for module in (fused_tables, torch_steps):
        monkeypatch.setattr(module, "RATE", 0.1)
    spec = StepSpec(TABLES, 6, optimizer)
    ids, left = drawn(spec), []
    for kind in (TorchTables, FusedTables):
        memory = storage()
        tables = kind(spec, memory, "cpu")
        outputs = tables.lookup(tables.inputs(ids))
        left.append([torch.cat(outputs, dim=1).detach().clone()])
        tables.update(outputs, [torch.ones_like(each) for each in outputs])
        left[-1].append(thirds(memory)[0].detach())
    np.testing.assert_allclose(left[1][0], left[0][0], rtol=1e-6)
    np.testing.assert_allclose(left[1][1], left[0][1], rtol=1e-5)
    assert (left[1][1] != thirds(storage())[0]).any()


def test_a_step_has_the_devices_seconds_beside_its_own() -> None:
    """Three parts, and the device's of each, which are no part of the step's time."""
    probe = step_probe(StepSpec(TABLES, 6, "sgd"), storage(), "cpu", 0, FusedTables)
    ticks = iter(range(10**6))
    sample = measure([probe], 2, lambda: float(next(ticks)))[probe.name]
    parts = {"lookup", "dense", "update"}
    assert set(sample.parts) == parts | {f"device {part}" for part in parts}
    assert sample.median == 4  # readings of the clock from start to end


def test_memory_is_cut_where_fbgemm_may_read() -> None:
    """Every third begins at a multiple of 64 elements."""
    whole = torch.zeros(1000)
    starts = [part.storage_offset() for part in thirds(whole)]
    assert [start % 64 for start in starts] == [0, 0, 0] and starts[1] > 0


def test_the_version_is_told_or_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version where a row can be looked up; otherwise an ImportError with the reason."""
    assert fbgemm_version("cpu")[0].isdigit()
    monkeypatch.setitem(sys.modules, "fbgemm_gpu", None)
    with pytest.raises(ImportError, match="fbgemm_gpu"):
        fbgemm_version("cpu")


def test_laps_of_the_clock_are_by_name() -> None:
    """What has no name is not kept; on a CPU host and device are one."""
    clock = DeviceClock("cpu")
    clock.start()
    for part in ("one", "", "two"):
        clock.lap(part)
    found = clock.stop()
    assert set(found) == {"one", "host one", "two", "host two"}
    assert found["one"] == found["host one"] > 0
