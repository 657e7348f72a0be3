"""A training step in torch: embedding bags under a small DLRM, sparse gradients, an optimizer.

The MLPs are those of MLPerf EDU's micro-DLRM-DRAM (16-8-8 below, 32-16-1 above the joined
embeddings); rows are updated by torch's SGD, Adagrad and SparseAdam, and by a row-wise Adagrad that
keeps one number per row, as FBGEMM's does, written here in torch operations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from milp_planner.features.calibrate.machine import Lap, Probe
from milp_planner.features.calibrate.steps import StepSpec, StepTable, draw_ids

DENSE, BOTTOM, TOP = 16, (8, 8), (32, 16, 1)
RATE = 1e-9
"""Learning rate: too small to influence the next step."""
EPSILON = 1e-8


def step_probe(spec: StepSpec, storage: Any, device: str, seed: int) -> Probe:
    """One step on new ids, after an untimed one that leaves the caches in a typical state.

    Parts: ``lookup``; ``dense`` (MLPs, joining, their gradients and update); ``update`` (gradients
    of the rows, and the optimizer). Tables and optimizer states are slices of ``storage``.
    """
    step = _Step(spec, storage, device)

    def prepare(number: int) -> Any:
        batches = [step.batch(np.random.default_rng([seed, number, half])) for half in (0, 1)]
        step.run(batches[0], lambda _: None)
        return batches[1]

    return Probe(spec.name, prepare, step.run)


class _Step:
    """Weights, optimizer states and optimizers of one spec."""

    def __init__(self, spec: StepSpec, storage: Any, device: str) -> None:
        import torch

        self.torch, self.spec, self.device = torch, spec, device
        third = storage.numel() // 3
        parts = [storage[i * third : (i + 1) * third] for i in range(3)]
        weights, first, second = (list(_slices(part, spec.tables)) for part in parts)
        self.tables = [each.detach().requires_grad_() for each in weights]
        self.offsets = [
            torch.arange(spec.batch, device=device) * table.pooling for table in spec.tables
        ]
        self.update = UPDATES[spec.optimizer](self.tables, first, second)
        generator = torch.Generator().manual_seed(0)
        top = (BOTTOM[-1] + spec.columns, *TOP)
        self.bottom, self.top = (
            [_layer(a, b, generator, device) for a, b in pairwise(sizes)]
            for sizes in ((DENSE, *BOTTOM), top)
        )
        layers = [value for layer in (*self.bottom, *self.top) for value in layer]
        self.dense = torch.optim.SGD(layers, lr=RATE)

    def batch(self, generator: np.random.Generator) -> Any:
        """Dense features, ids of every table, labels."""
        torch, spec = self.torch, self.spec
        ids = [
            torch.from_numpy(draw_ids(t, spec.batch * t.pooling, generator)).to(self.device)
            for t in spec.tables
        ]
        dense = torch.from_numpy(generator.random((spec.batch, DENSE), np.float32))
        labels = torch.from_numpy(generator.integers(2, size=(spec.batch, 1)).astype(np.float32))
        return dense.to(self.device), ids, labels.to(self.device)

    def run(self, batch: Any, lap: Lap) -> None:
        """Forward, backward, updates."""
        torch, functional = self.torch, self.torch.nn.functional
        dense, ids, labels = batch
        outputs = [
            functional.embedding_bag(each, table, offsets, mode="sum", sparse=True)
            for each, table, offsets in zip(ids, self.tables, self.offsets, strict=True)
        ]
        lap("lookup")
        cut = [each.detach().requires_grad_() for each in outputs]
        joined = torch.cat([through(self.bottom, dense, functional.relu), *cut], dim=1)
        hidden = through(self.top[:-1], joined, functional.relu)
        logits = functional.linear(hidden, *self.top[-1])
        functional.binary_cross_entropy_with_logits(logits, labels).backward()
        self.dense.step()
        self.dense.zero_grad()
        lap("dense")
        torch.autograd.backward(outputs, [each.grad for each in cut])
        self.update()
        for table in self.tables:
            table.grad = None
        lap("update")


def through(layers: list[Any], values: Any, activate: Callable[[Any], Any]) -> Any:
    """Apply the layers, each followed by the activation."""
    from torch.nn import functional

    for weight, bias in layers:
        values = activate(functional.linear(values, weight, bias))
    return values


def _slices(storage: Any, tables: tuple[StepTable, ...]) -> Any:
    start = 0
    for table in tables:
        yield storage[start : start + table.size].view(table.rows, table.dim)
        start += table.size


def _layer(inputs: int, outputs: int, generator: Any, device: str) -> tuple[Any, Any]:
    import torch

    weight = (torch.randn(outputs, inputs, generator=generator) / inputs**0.5).to(device)
    return weight.requires_grad_(), torch.zeros(outputs, device=device, requires_grad=True)


def _sgd(tables: list[Any], _first: list[Any], _second: list[Any]) -> Callable[[], Any]:
    import torch

    return torch.optim.SGD(tables, lr=RATE).step


def _adam(tables: list[Any], first: list[Any], second: list[Any]) -> Callable[[], Any]:
    import torch

    optimizer = torch.optim.SparseAdam(tables, lr=RATE)
    for table, mean, square in zip(tables, first, second, strict=True):
        optimizer.state[table] = {"step": 0, "exp_avg": mean, "exp_avg_sq": square}
    return optimizer.step


def _adagrad(tables: list[Any], first: list[Any], _second: list[Any]) -> Callable[[], Any]:
    import torch

    optimizer = torch.optim.Adagrad(
        [torch.zeros(1)], lr=RATE
    )  # states of its own would take memory
    optimizer.param_groups[0]["params"] = tables
    for table, total in zip(tables, first, strict=True):
        optimizer.state[table] = {"step": torch.tensor(0.0), "sum": total}
    return optimizer.step


def _rowwise_adagrad(tables: list[Any], first: list[Any], _second: list[Any]) -> Callable[[], Any]:
    import torch

    totals = [each.view(-1)[: len(each)] for each in first]

    def step() -> None:
        with torch.no_grad():
            for table, total in zip(tables, totals, strict=True):
                gradient = table.grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                total.index_add_(0, rows, values.square().mean(1))
                scale = total.index_select(0, rows).sqrt_().add_(EPSILON)
                table.index_add_(0, rows, values / scale[:, None], alpha=-RATE)

    return step


UPDATES: dict[str, Callable[[list[Any], list[Any], list[Any]], Callable[[], Any]]] = {
    "sgd": _sgd, "adam": _adam, "adagrad": _adagrad, "rowwise_adagrad": _rowwise_adagrad,
}  # fmt: skip
