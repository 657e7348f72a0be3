"""The workload: an unsigned hash, a step equal to a plain one, updates that reach the tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_routing.rules import splitmix64
from milp_planner.features.calibrate.machine import Load
from milp_planner.features.calibrate.micro_dlrm import SEEDS, SHAPES, MicroDlrm, Shape, hash_ids

torch = pytest.importorskip("torch")
GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def finalise(value: int) -> int:
    """Stafford's mix 13 in Python's unbounded integers."""
    value &= MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


@given(
    st.lists(st.integers(0, MASK), min_size=1, max_size=20),
    st.sampled_from(SEEDS),
    st.integers(1, 2**40),
)
def test_the_hash_is_that_of_unsigned_arithmetic(ids: list[int], seed: int, rows: int) -> None:
    """Over all of uint64, rows equal those computed in unbounded integers."""
    patterns = torch.from_numpy(np.array(ids, dtype=np.uint64).view(np.int64))
    found = hash_ids(patterns, seed, rows).tolist()
    assert found == [finalise(i ^ seed) % rows for i in ids]


def test_the_finaliser_is_splitmix64s() -> None:
    """The second opinion agrees with NumPy's uint64: splitmix64 adds its constant first."""
    keys = np.arange(100, dtype=np.uint64)
    assert [finalise(int(k) + GOLDEN) for k in keys] == splitmix64(keys).tolist()


def small(pooling: int) -> tuple[MicroDlrm, list[object]]:
    """Three features of one table of 50 rows."""
    shape = Shape("small", (50, 50, 50), 4, Load(6, pooling))
    table = torch.rand(50, 4, generator=torch.Generator().manual_seed(1))
    return MicroDlrm(shape, [table] * 3, torch.Generator().manual_seed(2)), [table]


@pytest.mark.parametrize("pooling", [1, 3])
def test_a_forward_step_marks_every_part(pooling: int) -> None:
    """Embedding first, then MLP, concatenation, MLP; nothing is written to the table."""
    model, (table,) = small(pooling)
    before, laps = table.clone(), []
    model.forward(model.inputs(torch.Generator().manual_seed(3)), laps.append)
    assert laps == ["embedding", "mlp", "rest", "mlp"]
    assert torch.equal(table, before)


def test_a_training_step_updates_exactly_the_rows_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a large rate, changed rows are the hashed ones; gradients are autograd's own."""
    import milp_planner.features.calibrate.micro_dlrm as module

    monkeypatch.setattr(module, "RATE", 1.0)
    model, (table,) = small(2)
    dense, ids = model.inputs(torch.Generator().manual_seed(3))
    before = table.clone()
    rows = [hash_ids(raw, seed, 50) for raw, seed in zip(ids, SEEDS, strict=True)]
    weights = [tuple(v.detach().clone() for v in layer) for layer in (*model._bottom, *model._top)]
    model.train((dense, ids), lambda _: None)
    read = set(torch.cat(rows).tolist())
    changed = {i for i in range(50) if not torch.equal(table[i], before[i])}
    assert changed <= read and changed

    leaf = before.clone().requires_grad_()
    hidden = torch.relu(dense @ weights[0][0].T + weights[0][1]) @ weights[1][0].T + weights[1][1]
    bags = [leaf[row].view(6, 2, 4).sum(1) for row in rows]
    out = torch.cat([hidden, *bags], 1)
    for weight, bias in weights[2:4]:
        out = torch.relu(out @ weight.T + bias)
    (out @ weights[4][0].T + weights[4][1]).mean().backward()
    assert torch.allclose(table, before - leaf.grad, atol=1e-6)


def test_shapes_count_their_work() -> None:
    """Bytes as published for the DRAM-bound step; multiply-adds by hand."""
    shape = SHAPES["dram-bound"]
    assert shape.embedding_bytes == 3 * 8192 * 256 * 4
    assert shape.macs == 16 * 8 + 8 * 8 + 776 * 32 + 32 * 16 + 16
    assert SHAPES["dram-bound, 8 ids a bag"].embedding_bytes == 8 * shape.embedding_bytes
    assert SHAPES["cache-resident"].macs == 16 * 8 + 8 * 8 + 72 * 32 + 32 * 16 + 16
