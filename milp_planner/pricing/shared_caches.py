"""FBGEMM's caches: the cached tables of one kernel on a rank share one, at their mean factor.

TorchRec makes a kernel of the tables that a rank holds in a module under one sharding type, if
type and optimizer agree (and width, where a pipeline prefetches). Its cache holds so many rows as
the tables' load factors say in all, weighted by their rows, and each row is as wide as the widest
of them.

References
----------
TorchRec 1.8.0, ``distributed/embedding_sharding.py`` (``group_tables``,
``_get_weighted_avg_cache_load_factor``); FBGEMM 1.8.0,
``split_table_batched_embeddings_ops_training.py`` (``_apply_cache_state``, ``max_D_cache``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.quantities import FINEST_RATIO
from milp_planner.inputs.table import Table

if TYPE_CHECKING:
    from formulations.priced import Priced
    from milp_planner.pricing.options import Choice


class Cached(NamedTuple):
    """Where a cached table is, and its load factor."""

    sharding: str
    width: int
    ratio: Fraction
    ranks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Caches:
    """Which options are cached tables of TorchRec's kernels.

    Attributes
    ----------
    kernel : int64 array [options]
        Kernel of each option that has a cache there, else −1.
    level : int64 array [options]
        Position of its ratio among all ratios.
    names : tuple of str
        Those of the kernels.
    aside : bool array [blocks] or None
        Blocks that hold nothing of their table, such as one that pays for moving it.
    """

    kernel: NDArray[np.int64]
    level: NDArray[np.int64]
    names: tuple[str, ...]
    aside: NDArray[np.bool_] | None = None

    @classmethod
    def named(cls, named: Sequence[tuple[str, Fraction] | None]) -> Caches:
        """Of the name of each option's kernel and its ratio there; None for one without."""
        kernels = sorted({each[0] for each in named if each is not None})
        ratios = sorted({each[1] for each in named if each is not None})
        kernel = [-1 if each is None else kernels.index(each[0]) for each in named]
        level = [0 if each is None else ratios.index(each[1]) for each in named]
        return cls(
            np.asarray(kernel, dtype=np.int64), np.asarray(level, dtype=np.int64), tuple(kernels)
        )

    def priced(self, model: Priced) -> Caches:
        """Of the options with a price on moves."""
        aside = np.zeros(model.instance.num_blocks, dtype=bool)
        aside[model.instance.option_blocks[1:][model.price > 0] - 1] = True
        return Caches(self.kernel[model.origin], self.level[model.origin], self.names, aside)


def kernel_of(table: Table, sharding: str, width: int, work: Workload) -> str:
    """Name of the kernel that a table joins on a rank that holds a shard of this width."""
    fields = {
        "sharding": sharding,
        "dtype": table.dtype,
        "optimizer": table.optimizer if work.trains else "none",
        "output": table.output,
        "weighted": str(table.weighted).lower(),
        **({"columns": str(width)} if work.prefetch_pipeline else {}),
    }
    return "torchrec[" + ",".join(f"{key}={value}" for key, value in fields.items()) + "]"


def together(table: Table, choice: Choice, work: Workload, ranks: int) -> str | None:
    """The kernel that certainly has all options of this name on some rank; None for no such.

    Row-wise tables are on every one of the ``ranks``. Others are where the plan puts them, unless
    one rank is all that they may have: whether those meet is known from a plan only.
    """
    if choice.runtime != "torchrec" or choice.mode != "CACHING" or work.fusion == "free":
        return None
    kernel = kernel_of(table, choice.sharding, choice.width, work)
    if choice.sharding == "row_wise":
        return kernel
    allowed = {*(choice.pinned or choice.ranks or range(min(ranks, 2)))}
    return f"{kernel} on rank {allowed.pop()}" if len(allowed) == 1 else None


def factors(model: Model, cached: Mapping[str, Cached]) -> dict[str, tuple[Fraction, ...]]:
    """The load factors with which the kernels of each table run, in ascending order.

    With ``fusion: free`` each table's own.
    One for most; several if the table's shards are beside different tables. As TorchRec weighs
    them: Σ factor · rows / Σ rows over the kernel's cached tables, whole tables' rows, here in
    hundredths, as fine as a plan states ratios.
    """
    if model.workload.fusion == "free":
        return {name: (each.ratio,) for name, each in cached.items()}
    members: dict[tuple[int, str], list[str]] = {}
    for name, each in cached.items():
        kernel = kernel_of(model.table(name), each.sharding, each.width, model.workload)
        for rank in dict.fromkeys(each.ranks):
            members.setdefault((rank, kernel), []).append(name)
    found: dict[str, set[Fraction]] = {name: set() for name in cached}
    for names in members.values():
        ratios = {cached[name].ratio for name in names}
        mean = ratios.pop() if len(ratios) == 1 else _mean(model, cached, names)
        for name in names:
            found[name].add(mean)
    return {name: tuple(sorted(ratios)) for name, ratios in found.items()}


def _mean(model: Model, cached: Mapping[str, Cached], names: Iterable[str]) -> Fraction:
    rows = {name: model.table(name).rows for name in names}
    weighed = sum((cached[name].ratio * n for name, n in rows.items()), Fraction(0))
    mean = round(FINEST_RATIO * weighed / sum(rows.values()))
    return Fraction(min(max(mean, 1), FINEST_RATIO - 1), FINEST_RATIO)
