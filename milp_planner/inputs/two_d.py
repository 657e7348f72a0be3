"""2D parallelism: a cluster divided into sharding groups that each hold every table.

A plan is made for the ranks of one group and used by all; rank r of a group and rank r of the other
groups are replicas, whose rows are averaged. The terms are those of TorchRec's ``DMPCollection``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from milp_planner.inputs.interconnect import Run
from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.spec import Spec

if TYPE_CHECKING:
    from milp_planner.inputs.cluster import Cluster

Layout = Literal["strided", "contiguous"]
Strategy = Literal["default", "fully_sharded"]


class TwoD(Spec):
    """How a cluster is divided into sharding groups; ``auto`` fields are chosen with the plan."""

    sharding_group_size: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """Ranks of a group; divides the ranks of the cluster."""
    layout: Layout | Literal["auto"] = "auto"
    """strided: ranks at equal distances, with replicas side by side; contiguous: consecutive ranks
    (TorchRec's ``use_inter_host_allreduce``)."""
    strategy: Strategy | Literal["auto"] = "auto"
    """fully_sharded: between forward and backward pass, a replica keeps only its part of the rows
    (TorchRec's ``ShardingStrategy``)."""
    sync_interval: Annotated[int, Field(ge=1)] | Literal["never"] = 1
    """Steps from one averaging of rows and optimizer state to the next (TorchRec's
    ``dmp_collection_sync_interval_batches``)."""
    whole: Cluster | None = None
    """For a cluster that is one sharding group: the cluster that it belongs to."""

    @model_validator(mode="after")
    def _averaged(self) -> TwoD:
        if self.sync_interval == "never" and self.strategy == "default":
            raise problem_at(
                "found never, so replicas would drift apart; allowed: a whole number from 1, or "
                "never with strategy: fully_sharded", "sync_interval",
            )  # fmt: skip
        return self

    @property
    def named(self) -> bool:
        """Whether nothing is left to choose."""
        return "auto" not in (self.sharding_group_size, self.layout, self.strategy)

    def choices(self, ranks: int) -> Iterator[TwoD]:
        """Every division of ``ranks`` ranks that this allows, the largest groups first."""
        sizes = [n for n in range(ranks, 0, -1) if ranks % n == 0]
        if self.sharding_group_size != "auto":
            sizes = [self.sharding_group_size]
        layouts = ["strided", "contiguous"] if self.layout == "auto" else [self.layout]
        strategies = ["default", "fully_sharded"] if self.strategy == "auto" else [self.strategy]
        for size, layout, strategy in product(sizes, layouts, strategies):
            if self.sync_interval != "never" or strategy != "default":
                made = {"sharding_group_size": size, "layout": layout, "strategy": strategy}
                yield self.model_copy(update=made)


def sharding_groups(ranks: int, size: int, layout: str) -> tuple[Run, ...]:
    """Ranks of every sharding group.

    With k groups, strided group j is {k·r + j}, contiguous group j is {j·size + r}, r < size.

    References
    ----------
    TorchRec 1.8.0, ``distributed/model_parallel.py``, ``DMPCollection._create_process_groups``.
    """
    count = ranks // size
    if layout == "strided":
        return tuple(tuple(range(first, ranks, count)) for first in range(count))
    return tuple(tuple(range(first, first + size)) for first in range(0, ranks, size))


def replica_sets(ranks: int, size: int, layout: str) -> tuple[Run, ...]:
    """Ranks that hold the same shards, one set for every rank of a group."""
    return tuple(zip(*sharding_groups(ranks, size, layout), strict=True))
