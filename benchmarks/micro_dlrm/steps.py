"""Steps of the pair as probes: forward as the published harness has it, and training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.micro_dlrm.model import DENSE, ITEMS, USERS, Dram, MicroDlrm
from milp_planner.features.calibrate.machine import Lap, Probe

BATCH, IDS = 8192, 50_000_000
"""Samples of a step, and raw ids that the hash sees."""
RATE = 1e-3
EARLIER = 10**6
"""Number of a round's untimed batch, less that of its timed one."""


def batch(model: MicroDlrm, number: int, samples: int = BATCH) -> tuple[Tensor, list[Tensor]]:
    """Dense features and one raw id a feature and sample, by the round's number."""
    generator = torch.Generator().manual_seed(number)
    limits = [IDS] * model.features if isinstance(model, Dram) else [USERS, ITEMS]
    ids = [torch.randint(limit, (samples,), generator=generator) for limit in limits]
    return torch.rand(samples, DENSE, generator=generator), ids


def forward_probe(name: str, model: MicroDlrm, samples: int = BATCH) -> Probe:
    """Parts ``hash``, ``lookup``, ``join`` and ``mlp``, on new ids every round.

    An untimed step on other ids comes first: it leaves the caches as the step before in a loop.
    """
    offsets = [torch.arange(samples)] * model.features

    def run(drawn: Any, lap: Lap) -> None:
        with torch.no_grad():
            model(drawn[0], drawn[1], offsets, lap)

    def prepare(number: int) -> Any:
        run(batch(model, EARLIER + number, samples), lambda _: None)
        return batch(model, number, samples)

    return Probe(name, prepare, run)


def training_probe(name: str, model: MicroDlrm, samples: int = BATCH) -> Probe:
    """The forward step's parts, ``mlp`` both ways, and ``update``: the rows' gradients and Adam.

    The tables' gradients are sparse, so that Adam's moments change only where rows were looked up.
    """
    offsets = [torch.arange(samples)] * model.features
    tables = [table.weight for table in dict.fromkeys(model.tables())]
    rows = torch.optim.SparseAdam(tables, lr=RATE)
    mlp = torch.optim.Adam([*model.bottom.parameters(), *model.top.parameters()], lr=RATE)

    def labelled(number: int) -> Any:
        labels = torch.randint(2, (samples, 1), generator=torch.Generator().manual_seed(number))
        return batch(model, number, samples), labels.float()

    def run(drawn: Any, lap: Lap) -> None:
        (dense, ids), labels = drawn
        looked_up = embedded(model, ids, offsets, lap)
        cut = [each.detach().requires_grad_() for each in looked_up]
        functional.binary_cross_entropy(model.above(dense, cut, lap), labels).backward()
        mlp.step()
        mlp.zero_grad()
        lap("mlp")
        torch.autograd.backward(looked_up, [each.grad for each in cut])
        rows.step()
        rows.zero_grad()
        lap("update")

    def prepare(number: int) -> Any:
        run(labelled(EARLIER + number), lambda _: None)
        return labelled(number)

    return Probe(name, prepare, run)


def embedded(
    model: MicroDlrm, ids: Sequence[Tensor], offsets: Sequence[Tensor], lap: Lap
) -> list[Tensor]:
    """Embeddings of every feature; parts ``hash`` and ``lookup``."""
    rows = model.rows(ids)
    lap("hash")
    found = [t(r, o) for t, r, o in zip(model.tables(), rows, offsets, strict=True)]
    lap("lookup")
    return found
