"""The micro-DLRM pair of MLPerf EDU as published: same MLPs, tables in cache or in DRAM; own code.

``Dram``: three logical features in one table of 2,000,000 × 256 floats, reached through a hash with
one seed per feature. ``Resident``: users and items of MovieLens-100K, 943 and 1,682 rows of 32
floats, one table each. Bottom MLP 16-8-8, top MLP 32-16-1 over the joined embeddings, ReLU between,
a sigmoid at the end.

References
----------
MLPerf EDU, ``micro_dlrm_dram.py``: shapes, seeds, hash, contract; Naumov et al., "Deep Learning
Recommendation Model", arXiv 1906.00091; Weinberger et al., "Feature hashing", ICML 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

SEEDS = (0xA5A5A5A5, 0x5A5A5A5A, 0xC3C3C3C3)
ROWS, WIDTH = 2_000_000, 256
USERS, ITEMS, RESIDENT_WIDTH = 943, 1_682, 32
DENSE, BOTTOM, TOP = 16, (8, 8), (32, 16, 1)
FLOAT = 4
_STAFFORD = (0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))
"""Stafford's Mix13 multipliers as the int64 that have the same bits."""

Mark = Callable[[str], None]
"""Ends a named part of a step."""


def hashed(ids: Tensor, seed: int, rows: int) -> Tensor:
    """Row of each id, int64 in [0, rows): the published hash, in torch's signed arithmetic.

    A 64-bit finaliser (shifts 30, 27, 31) whose products wrap and whose shifts keep the sign, then
    the absolute value modulo ``rows``. Unsigned shifts would give most ids other rows.
    """
    x = ids.to(torch.int64) ^ seed
    x = (x ^ (x >> 30)) * _STAFFORD[0]
    x = (x ^ (x >> 27)) * _STAFFORD[1]
    x = x ^ (x >> 31)
    return x.abs() % rows


class MicroDlrm(nn.Module):
    """MLPs over joined embeddings; subclasses say where the embeddings come from.

    Parameters
    ----------
    features : int
        Embeddings of a sample.
    width : int
        Floats of each.
    mlp : int
        Multiplies the published number of hidden units in every layer.
    """

    def __init__(self, features: int, width: int, mlp: int = 1) -> None:
        super().__init__()
        self.features, self.width = features, width
        bottom = (DENSE, *(mlp * units for units in BOTTOM))
        top = (bottom[-1] + features * width, *(mlp * units for units in TOP[:-1]), TOP[-1])
        self.bottom, self.top = _layers(bottom, nn.ReLU()), _layers(top, nn.Sigmoid())

    def rows(self, ids: Sequence[Tensor]) -> list[Tensor]:
        """Rows that each feature's ids stand for."""
        raise NotImplementedError

    def tables(self) -> list[nn.EmbeddingBag]:
        """The table of each feature; one may serve several."""
        raise NotImplementedError

    def working_set_bytes(self) -> int:
        """Bytes of all different tables."""
        return FLOAT * sum(table.weight.numel() for table in dict.fromkeys(self.tables()))

    def forward(
        self, dense: Tensor, ids: Sequence[Tensor], offsets: Sequence[Tensor],
        mark: Mark = lambda _: None,
    ) -> Tensor:  # fmt: skip
        """Chance of a click for each sample, [samples, 1].

        Marks the parts ``hash``, ``lookup``, ``mlp`` and ``join``.
        """
        rows = self.rows(ids)
        mark("hash")
        embedded = [
            table(each, start)
            for table, each, start in zip(self.tables(), rows, offsets, strict=True)
        ]
        mark("lookup")
        return self.above(dense, embedded, mark)

    def above(self, dense: Tensor, embedded: Sequence[Tensor], mark: Mark) -> Tensor:
        """The MLPs, over embeddings that were looked up."""
        hidden = self.bottom(dense)
        mark("mlp")
        joined = torch.cat([hidden, *embedded], dim=1)
        mark("join")
        out: Tensor = self.top(joined)
        mark("mlp")
        return out

    def flops(self, samples: int) -> int:
        """Multiplications and additions of the MLPs in a forward step."""
        weights = [p for part in (self.bottom, self.top) for p in part.parameters() if p.ndim == 2]
        return 2 * samples * sum(weight.numel() for weight in weights)

    def moved_bytes(self, samples: int) -> int:
        """Bytes a forward step must read at least: a row for every id, and the MLPs' parameters."""
        parameters = [p for part in (self.bottom, self.top) for p in part.parameters()]
        mlp = sum(p.numel() for p in parameters)
        return FLOAT * (samples * self.features * self.width + mlp)


class Dram(MicroDlrm):
    """One table for all features, through the hash.

    Parameters
    ----------
    rows, width : int
        Of the table.
    storage : Tensor, optional
        At least rows · width floats that serve as the table; a new one where it is not given.
    """

    def __init__(
        self, rows: int = ROWS, width: int = WIDTH, mlp: int = 1, storage: Tensor | None = None
    ) -> None:
        super().__init__(len(SEEDS), width, mlp)
        weight = None if storage is None else storage[: rows * width].view(rows, width)
        self.table = nn.EmbeddingBag(rows, width, mode="sum", sparse=True, _weight=weight)

    def rows(self, ids: Sequence[Tensor]) -> list[Tensor]:
        """The hash, with the feature's own seed."""
        count = self.table.num_embeddings
        return [hashed(each, seed, count) for each, seed in zip(ids, SEEDS, strict=True)]

    def tables(self) -> list[nn.EmbeddingBag]:
        """The one table, for every seed."""
        return [self.table] * len(SEEDS)


class Resident(MicroDlrm):
    """Users and items, a small table each, ids as they are."""

    def __init__(self) -> None:
        super().__init__(2, RESIDENT_WIDTH)
        self.of = nn.ModuleList(
            nn.EmbeddingBag(rows, RESIDENT_WIDTH, mode="sum", sparse=True)
            for rows in (USERS, ITEMS)
        )

    def rows(self, ids: Sequence[Tensor]) -> list[Tensor]:
        """The ids."""
        return list(ids)

    def tables(self) -> list[nn.EmbeddingBag]:
        """Users, items."""
        return list(self.of)  # type: ignore[arg-type]


def _layers(sizes: Sequence[int], last: nn.Module) -> nn.Sequential:
    """Linear layers with a ReLU behind each, and ``last`` behind the last one."""
    parts: list[Any] = []
    for a, b in pairwise(sizes):
        parts += [nn.Linear(a, b), nn.ReLU()]
    if isinstance(last, nn.Sigmoid):
        parts[-1] = last
    return nn.Sequential(*parts)
