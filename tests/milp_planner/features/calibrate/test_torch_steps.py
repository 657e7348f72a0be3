"""A training step in torch: its parts, its gradients, its optimizers."""

from typing import Any

import numpy as np
import pytest

from milp_planner.features.calibrate.machine import measure
from milp_planner.features.calibrate.steps import StepSpec, StepTable

torch = pytest.importorskip("torch")
from milp_planner.features.calibrate import torch_steps  # noqa: E402
from milp_planner.features.calibrate.torch_steps import UPDATES, step_probe  # noqa: E402

TABLES = (StepTable(50, 8, 3, 0.0), StepTable(30, 4, 1, 0.9))


def storage() -> Any:
    """Memory for two tables with two states each."""
    return torch.full((3 * 1000,), 0.01)


@pytest.mark.parametrize("optimizer", list(UPDATES))
def test_a_step_runs_in_three_parts(optimizer: str) -> None:
    """Lookup, dense and update make up the whole step, on a clock that ticks once per reading."""
    ticks = iter(range(10**6))
    probe = step_probe(StepSpec(TABLES, 6, optimizer), storage(), "cpu", 0)
    sample = measure([probe], 2, lambda: float(next(ticks)))[probe.name]
    assert set(sample.parts) == {"lookup", "dense", "update"}


def dense_update(optimizer: str, table: Any, gradient: Any, state: Any, rate: float) -> Any:
    """The table after one step, by the optimizers' formulas on dense arrays."""
    touched = (gradient != 0).any(1)
    moved = gradient
    if optimizer == "adagrad":
        moved = gradient / (np.sqrt(state + gradient**2) + 1e-10)
    elif optimizer == "rowwise_adagrad":
        totals = state.reshape(-1)[: len(table)] + (gradient**2).mean(1)
        moved = gradient / (np.sqrt(totals) + 1e-8)[:, None]
    elif optimizer == "adam":
        mean, square = 0.9 * state + 0.1 * gradient, 0.999 * state + 0.001 * gradient**2
        moved = mean / 0.1 / (np.sqrt(square) / 0.001**0.5 + 1e-8)
    return np.where(touched[:, None], table - rate * moved, table)


@pytest.mark.parametrize("optimizer", list(UPDATES))
def test_rows_move_as_the_optimizer_says(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With states of 0.01, one step equals the dense formulas, and only looked-up rows move."""
    monkeypatch.setattr(torch_steps, "RATE", 0.1)
    torch.manual_seed(0)
    weights = torch.randn(20, 4, dtype=torch.float64)
    states = [torch.full((20, 4), 0.01, dtype=torch.float64) for _ in range(2)]
    table = weights.clone().requires_grad_()
    update = UPDATES[optimizer]([table], [states[0].clone()], [states[1].clone()])
    ids = torch.tensor([3, 3, 7, 0])
    out = torch.nn.functional.embedding_bag(
        ids, table, torch.tensor([0, 2]), mode="sum", sparse=True
    )
    factors = torch.randn_like(out)
    out.backward(factors)
    gradient = np.zeros((20, 4))
    np.add.at(gradient, ids.numpy(), factors.numpy()[[0, 0, 1, 1]])
    update()
    expected = dense_update(optimizer, weights.numpy(), gradient, states[0].numpy(), 0.1)
    np.testing.assert_allclose(table.detach().numpy(), expected, rtol=1e-6, atol=1e-9)
