"""The calibration workload: two small DLRMs that differ only in where their embeddings live.

Both have a bottom MLP 16-8-8 and a top MLP 32-16-1 over the concatenated features. One reads two
tables that any cache holds, the other one table of 2 GB through three hash seeds: run as a pair,
they show where the bottleneck moves. After MLPerf EDU's micro-DLRM-DRAM; the code is our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cuda_routing.torch_path import mix64, signed, unsigned_modulo
from milp_planner.features.calibrate.machine import ELEMENT, Lap, Load, Sample
from milp_planner.files import Facts

SEEDS = (0xA5A5A5A5, 0x5A5A5A5A, 0xC3C3C3C3)
"""One hash seed a feature."""
ID_SPACE = 50_000_000
"""Raw ids lie in [0, ID_SPACE)."""
DENSE, BOTTOM, TOP = 16, (8, 8), (32, 16, 1)
SMALL = 100_000
"""A table of more rows is a part of the machine's large one."""
RATE = 1e-6
"""Learning rate: updates are written, values stay."""


@dataclass(frozen=True)
class Shape:
    """One model of the pair."""

    name: str
    rows: tuple[int, ...]
    """Rows of each feature's table; features of equal rows share one table."""
    dim: int
    """Floats a row."""
    load: Load
    """Samples of a step, ids a feature and sample."""
    hashed: bool = True
    """Whether a step hashes raw ids to rows; else its ids are rows already."""

    @property
    def small(self) -> bool:
        """Whether its tables are made for the cache."""
        return max(self.rows) <= SMALL

    @property
    def macs(self) -> int:
        """Multiply-adds of both MLPs for one sample."""
        bottom = (DENSE, *BOTTOM)
        top = (BOTTOM[-1] + len(self.rows) * self.dim, *TOP)
        return sum(a * b for layers in (bottom, top) for a, b in pairwise(layers))

    @property
    def flops(self) -> int:
        """Floating-point operations of a forward step's MLPs."""
        return 2 * self.macs * self.load.bags

    @property
    def embedding_bytes(self) -> int:
        """Bytes of the rows a forward step reads."""
        return len(self.rows) * self.load.rows_bytes(self.dim)

    @property
    def bytes(self) -> int:
        """Bytes of a forward step: rows read and weights once."""
        return self.embedding_bytes + self.macs * ELEMENT


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("cache-resident", (943, 1682), 32, Load(8192, 1)),
        Shape("dram-bound", (2_000_000,) * 3, 256, Load(8192, 1)),
        Shape("dram-bound, 8 ids a bag", (2_000_000,) * 3, 256, Load(8192, 8)),
    )
}
"""The pair as published, and the second with 8 ids a bag (MLPerf's DLRM-DCNv2 has 214 ids in 26
features, 8.2 each), which keeps its MLPs and reads 8 times the rows."""


def hash_ids(ids: Any, seed: int, rows: int) -> Any:
    """Row of each id: a 64-bit finaliser of id xor seed, modulo the rows; int64 tensor.

    Stafford's mix 13. torch has no unsigned 64-bit arithmetic: products wrap alike, shifts and the
    modulo are written out for unsigned numbers, so the result is that of uint64.

    References
    ----------
    D. Stafford, "Better bit mixing", 2011 (the finaliser of SplitMix64).
    """
    return unsigned_modulo(mix64(ids ^ signed(seed)), rows)


class MicroDlrm:
    """Weights, forward step and training step of one shape.

    Parameters
    ----------
    shape : Shape
    tables : sequence of tensor
        One a feature, ``[rows, dim]``; where the model's embeddings live.
    generator : torch.Generator
        Of the MLP weights, which do not change the time of a step.
    """

    def __init__(self, shape: Shape, tables: list[Any], generator: Any) -> None:
        import torch

        device = tables[0].device
        self.shape, self.tables = shape, tables
        self.offsets = torch.arange(shape.load.bags, device=device) * shape.load.pooling

        def layers(sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
            return [
                tuple(
                    values.to(device).requires_grad_()
                    for values in (torch.randn(b, a, generator=generator) / a**0.5, torch.zeros(b))
                )
                for a, b in pairwise(sizes)
            ]

        self._bottom = layers((DENSE, *BOTTOM))
        self._top = layers((BOTTOM[-1] + len(shape.rows) * shape.dim, *TOP))

    def inputs(self, generator: Any) -> tuple[Any, list[Any]]:
        """A fresh batch: dense features [bags, 16] and raw ids of each feature."""
        import torch

        load, device = self.shape.load, self.offsets.device
        dense = torch.randn(load.bags, DENSE, generator=generator).to(device)
        ids = [
            torch.randint(ID_SPACE, (load.ids,), generator=generator).to(device)
            for _ in self.shape.rows
        ]
        return dense, ids

    def forward(self, batch: tuple[Any, list[Any]], lap: Lap) -> None:
        """One forward step; marks the parts ``embedding`` (hash and lookup), ``mlp``, ``rest``."""
        import torch

        dense, ids = batch
        with torch.no_grad():
            outputs = self._look_up(ids, self.tables)
            lap("embedding")
            self._score(dense, outputs, lap)

    def train(self, batch: tuple[Any, list[Any]], lap: Lap) -> None:
        """One training step: forward, backward, SGD on everything; tables get sparse gradients.

        Marks the same parts; the backward pass of the concatenation counts as ``mlp``.
        """
        import torch

        dense, ids = batch
        tables = [table.detach().requires_grad_() for table in self.tables]
        outputs = self._look_up(ids, tables)
        leaves = [output.detach().requires_grad_() for output in outputs]
        lap("embedding")
        self._score(dense, leaves, lap).mean().backward()
        with torch.no_grad():
            for values in (v for layer in (*self._bottom, *self._top) for v in layer):
                values.sub_(values.grad, alpha=RATE)
                values.grad = None
        lap("mlp")
        torch.autograd.backward(outputs, [leaf.grad for leaf in leaves])
        with torch.no_grad():
            for table in tables:
                table.add_(table.grad, alpha=-RATE)
        lap("embedding")

    def _look_up(self, ids: list[Any], tables: list[Any]) -> list[Any]:
        from torch.nn import functional

        outputs = []
        for raw, seed, table in zip(ids, SEEDS, tables, strict=False):
            rows = hash_ids(raw, seed, len(table)) if self.shape.hashed else raw
            outputs.append(
                functional.embedding_bag(rows, table, self.offsets, mode="sum", sparse=True)
            )
        return outputs

    def _score(self, dense: Any, outputs: list[Any], lap: Lap) -> Any:
        import torch

        hidden = _through(self._bottom, dense)
        lap("mlp")
        joined = torch.cat([hidden, *outputs], dim=1)
        lap("rest")
        score = _through(self._top, joined)
        lap("mlp")
        return score


def _through(layers: list[tuple[Any, Any]], values: Any) -> Any:
    from torch.nn import functional

    for weight, bias in layers[:-1]:
        values = functional.relu(functional.linear(values, weight, bias))
    return functional.linear(values, *layers[-1])


MOST = 0.5
"""A part that takes more of the step than this names the regime."""
NEAR_CEILING = 0.5
"""Share of the gather bandwidth that lookups must reach to be called bound by memory."""


@dataclass(frozen=True)
class Regime(Facts):
    """One shape's step against the machine's ceilings."""

    shape: str
    seconds: float
    spread: float
    """Median of the forward step, and its relative spread."""
    shares: dict[str, float]
    """Share of the forward step by part: embedding (hash and lookup), mlp, rest (concatenation)."""
    training_seconds: float
    training_spread: float
    """The same of the training step."""
    training_shares: dict[str, float]
    """Embedding there includes the sparse gradient and the update of the rows."""
    bandwidth: float
    """Bytes of the step (rows read, weights) per second of the whole step."""
    lookup_bandwidth: float
    """Bytes of the rows read per second of the embedding part."""
    intensity: float
    """Floating-point operations per byte."""
    flops: float
    """Operations per second of the whole step."""
    ceiling: float
    """Operations per second that the roofline allows at this intensity."""
    name: str
    """Of the forward step: ``memory`` (lookups take most of it, and reach half the gather
    bandwidth), ``lookup overhead`` (they take most of it and do not), ``MLP``, or ``mixed``."""


def regime(
    name: str, forward: Sample, training: Sample, peak_flops: float, peak_bandwidth: float
) -> Regime:
    """Judge one shape's steps.

    Parameters
    ----------
    name : str
        A shape of :data:`~milp_planner.features.calibrate.micro_dlrm.SHAPES`.
    forward, training : Sample
        Timings by part.
    peak_flops, peak_bandwidth : float
        Measured: a large matrix product, a gather of wide rows from the far tier.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009,
    doi:10.1145/1498765.1498785.
    """
    shape = SHAPES[name]
    shares = _shares(forward)
    lookups = shape.embedding_bytes / forward.part("embedding")
    intensity = shape.flops / shape.bytes
    return Regime(
        shape=name,
        seconds=forward.median,
        spread=forward.spread,
        shares=shares,
        training_seconds=training.median,
        training_spread=training.spread,
        training_shares=_shares(training),
        bandwidth=shape.bytes / forward.median,
        lookup_bandwidth=lookups,
        intensity=intensity,
        flops=shape.flops / forward.median,
        ceiling=min(peak_flops, intensity * peak_bandwidth),
        name=_name(shares, lookups / peak_bandwidth),
    )


def _shares(sample: Sample) -> dict[str, float]:
    parts = {part: sample.part(part) for part in sample.parts}
    return {part: seconds / sum(parts.values()) for part, seconds in parts.items()}


def _name(shares: dict[str, float], reached: float) -> str:
    if shares["embedding"] > MOST:
        return "memory" if reached >= NEAR_CEILING else "lookup overhead"
    return "MLP" if shares["mlp"] > MOST else "mixed"
