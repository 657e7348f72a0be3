"""A training step in torch: embedding bags under a small DLRM, gradients, an optimizer.

The MLPs are those of MLPerf EDU's micro-DLRM-DRAM (16-8-8 below, 32-16-1 above the joined
embeddings). The tables are torch's, or FBGEMM's (``fused_tables.py``). Torch's rows get sparse
gradients and are updated by its SGD, Adagrad and SparseAdam, and by a row-wise Adagrad that keeps
one number per row, as FBGEMM's does, written here in torch operations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from milp_planner.features.calibrate.device_clock import DeviceClock
from milp_planner.features.calibrate.machine import ON_DEVICE, Lap, Probe
from milp_planner.features.calibrate.steps import StepSpec, StepTable, draw_ids

DENSE, BOTTOM, TOP = 16, (8, 8), (32, 16, 1)
RATE = 1e-9
"""Learning rate: too small to influence the next step."""
EPSILON = 1e-8
PARTS = ("lookup", "dense", "update")
ALIGNED = 64
"""Elements to whose multiples memory is cut: FBGEMM reads 16 bytes at once."""


def step_probe(
    spec: StepSpec, storage: Any, device: str, seed: int, tables: type[TorchTables] | None = None
) -> Probe:
    """One step on new ids, after one that leaves the caches in a typical state.

    Parts: ``lookup``; ``dense`` (MLPs, joining, their gradients and update); ``update`` (gradients
    of the rows, and the optimizer); for fused tables, of the first step, the device's seconds of
    each. Tables and optimizer states are slices of ``storage``; ``tables`` is the class that keeps
    them, torch's by default.
    """
    step = _Step(spec, (tables or TorchTables)(spec, storage, device), device)
    clock = DeviceClock(device)

    def prepare(number: int) -> Any:
        return [step.batch([seed, number, half]) for half in (0, 1)]

    def before(batches: Any) -> dict[str, float]:
        clock.start()
        step.run(batches[0], clock.lap)
        seconds = clock.stop()
        return {ON_DEVICE + part: seconds[part] for part in PARTS if step.tables.fused}

    return Probe(spec.name, prepare, lambda batches, lap: step.run(batches[1], lap), beside=before)


class TorchTables:
    """Weights, optimizer states and optimizer of a spec's tables: torch's embedding bags, one after
    another."""

    fused = False
    """Whether one call does the work of all tables; the device's seconds are then measured, too."""

    def __init__(self, spec: StepSpec, storage: Any, device: str) -> None:
        import torch

        self.torch = torch
        weights, first, second = (list(_slices(part, spec.tables)) for part in thirds(storage))
        self.weights = [each.detach().requires_grad_() for each in weights]
        self.offsets = [
            torch.arange(spec.batch, device=device) * table.pooling for table in spec.tables
        ]
        self.step = UPDATES[spec.optimizer](self.weights, first, second)

    def inputs(self, ids: list[Any]) -> list[Any]:
        """The ids."""
        return ids

    def lookup(self, inputs: list[Any]) -> list[Any]:
        """The output of every table."""
        return [
            self.torch.nn.functional.embedding_bag(ids, table, offsets, mode="sum", sparse=True)
            for ids, table, offsets in zip(inputs, self.weights, self.offsets, strict=True)
        ]

    def update(self, outputs: list[Any], gradients: list[Any]) -> None:
        """Sparse gradients, then the optimizer."""
        self.torch.autograd.backward(outputs, gradients)
        self.step()
        for table in self.weights:
            table.grad = None


class _Step:
    """Tables and MLPs of one spec."""

    def __init__(self, spec: StepSpec, tables: TorchTables, device: str) -> None:
        import torch

        self.torch, self.spec, self.device, self.tables = torch, spec, device, tables
        generator = torch.Generator().manual_seed(0)
        top = (BOTTOM[-1] + spec.columns, *TOP)
        self.bottom, self.top = (
            [_layer(a, b, generator, device) for a, b in pairwise(sizes)]
            for sizes in ((DENSE, *BOTTOM), top)
        )
        layers = [value for layer in (*self.bottom, *self.top) for value in layer]
        self.dense = torch.optim.SGD(layers, lr=RATE)

    def batch(self, seed: list[int]) -> Any:
        """Dense features, the tables' inputs, labels."""
        torch, spec = self.torch, self.spec
        drawn = Drawn(seed, self.device)
        ids = [draw_ids(t, spec.batch * t.pooling, drawn, torch) for t in spec.tables]
        generator = np.random.default_rng(seed)
        dense = torch.from_numpy(generator.random((spec.batch, DENSE), np.float32))
        labels = torch.from_numpy(generator.integers(2, size=(spec.batch, 1)).astype(np.float32))
        return dense.to(self.device), self.tables.inputs(ids), labels.to(self.device)

    def run(self, batch: Any, lap: Lap) -> None:
        """Forward, backward, updates."""
        torch, functional = self.torch, self.torch.nn.functional
        dense, inputs, labels = batch
        outputs = self.tables.lookup(inputs)
        lap("lookup")
        cut = [each.detach().requires_grad_() for each in outputs]
        joined = torch.cat([through(self.bottom, dense, functional.relu), *cut], dim=1)
        hidden = through(self.top[:-1], joined, functional.relu)
        logits = functional.linear(hidden, *self.top[-1])
        functional.binary_cross_entropy_with_logits(logits, labels).backward()
        self.dense.step()
        self.dense.zero_grad()
        lap("dense")
        self.tables.update(outputs, [each.grad for each in cut])
        lap("update")


class Drawn:
    """Uniform random numbers drawn on the device."""

    def __init__(self, seed: list[int], device: str) -> None:
        import torch

        self.torch, self.device = torch, device
        number = int(np.random.default_rng(seed).integers(2**62))
        self.generator = torch.Generator(device).manual_seed(number)

    def random(self, count: int, /) -> Any:
        """``count`` float64 numbers of [0, 1)."""
        torch = self.torch
        return torch.rand(count, dtype=torch.float64, device=self.device, generator=self.generator)


def thirds(storage: Any) -> list[Any]:
    """Memory for weights, and for the first and second optimizer state."""
    third = storage.numel() // 3 // ALIGNED * ALIGNED
    return [storage[i * third : (i + 1) * third] for i in range(3)]


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
