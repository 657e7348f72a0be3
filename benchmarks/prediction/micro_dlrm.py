"""A small DLRM whose forward step is timed; after MLPerf EDU's micro-DLRM-DRAM, own code.

A bottom MLP 16-8-8, a top MLP 32-16-1 over the concatenated features.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from milp_planner.features.calibrate.machine import Lap, Load

DENSE, BOTTOM, TOP = 16, (8, 8), (32, 16, 1)


@dataclass(frozen=True)
class Shape:
    """What a step reads."""

    features: int
    """Each reads a table of its own, or one that is given several times."""
    dim: int
    """Floats a row."""
    load: Load
    """Samples of a step, ids a feature and sample."""


class MicroDlrm:
    """Weights and forward step of one shape.

    Parameters
    ----------
    shape : Shape
    tables : list of tensor
        One a feature, ``[rows, dim]``.
    generator : torch.Generator
        Of the MLP weights, which do not change the time of a step.
    """

    def __init__(self, shape: Shape, tables: list[Any], generator: Any) -> None:
        import torch

        self.tables = tables
        self.offsets = torch.arange(shape.load.bags) * shape.load.pooling

        def layers(sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
            return [
                (torch.randn(b, a, generator=generator) / a**0.5, torch.zeros(b))
                for a, b in pairwise(sizes)
            ]

        self._bottom = layers((DENSE, *BOTTOM))
        self._top = layers((BOTTOM[-1] + shape.features * shape.dim, *TOP))

    def forward(self, batch: tuple[Any, list[Any]], lap: Lap) -> None:
        """One step on dense features [bags, 16] and rows of each feature.

        Marks the parts ``embedding`` (lookups), ``mlp`` and ``rest`` (concatenation).
        """
        import torch

        dense, rows = batch
        with torch.no_grad():
            outputs = [
                torch.nn.functional.embedding_bag(ids, table, self.offsets, mode="sum", sparse=True)
                for ids, table in zip(rows, self.tables, strict=True)
            ]
            lap("embedding")
            hidden = _through(self._bottom, dense)
            lap("mlp")
            joined = torch.cat([hidden, *outputs], dim=1)
            lap("rest")
            _through(self._top, joined)
            lap("mlp")


def _through(layers: list[tuple[Any, Any]], values: Any) -> Any:
    from torch.nn import functional

    for weight, bias in layers[:-1]:
        values = functional.relu(functional.linear(values, weight, bias))
    return functional.linear(values, *layers[-1])
