"""What a plan does with every table: option, ranks, memory, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from formulations import Instance, Placement
from formulations.check import position_entries
from formulations.instance import IntArray, Where
from milp_planner.options.choice import MODES
from milp_planner.report.units import memory_name


@dataclass(frozen=True)
class Facets:
    """What the name of a priced option says, such as ``row_wise/CACHING/0.3/roundrobin``.

    Attributes
    ----------
    sharding : str
        Sharding type, with the number of column shards: ``column_wise:2``.
    mode : str
    ratio : str
        Cache ratio; empty for HBM_ONLY and HOST_ONLY.
    routing : str
        dist_type of a dynamicemb table, and anything further the name says.
    """

    sharding: str
    mode: str
    ratio: str
    routing: str


def facets_of(option: str) -> Facets | None:
    """The parts of an option's name; None for names of other origin (TorchRec's, literature's)."""
    parts = option.split("/")
    if len(parts) < 2 or parts[1] not in MODES:
        return None
    tiered = parts[1] in ("HYBRID", "CACHING")
    if tiered and len(parts) < 3:
        return None
    ratio = "" if not tiered else "/".join(parts[2:4]) if _thirds(parts) else parts[2]
    rest = parts[2 + (ratio.count("/") + 1 if ratio else 0) :]
    return Facets(parts[0], parts[1], ratio, " ".join(rest))


def _thirds(parts: list[str]) -> bool:
    """Whether the ratio is a fraction such as 1/3, cut in two at its own slash."""
    return len(parts) > 3 and parts[2].isdigit() and parts[3].isdigit()


@dataclass(frozen=True)
class TableRow:
    """One table of a plan.

    Attributes
    ----------
    name, option : str
    ranks : tuple of tuple of int
        Of each block's shards, in position order.
    used : dict of resource name to int
        Sum over its shards, in bytes (the instance's unit).
    most : dict of resource name to int
        Largest use on one rank.
    cost : int
        Largest sum of costs on one rank (or of the whole, where it sits on no rank).
    """

    name: str
    option: str
    ranks: tuple[tuple[int, ...], ...]
    used: dict[str, int]
    most: dict[str, int]
    cost: int


@dataclass(frozen=True)
class TablesInfo:
    """All tables of a plan, in the instance's order."""

    rows: tuple[TableRow, ...]
    num_ranks: int
    time_unit: str

    def costliest(self, count: int) -> tuple[TableRow, ...]:
        """The ``count`` tables with the largest cost, kept in the instance's order."""
        order = sorted(range(len(self.rows)), key=lambda i: (-self.rows[i].cost, i))[:count]
        return tuple(self.rows[i] for i in sorted(order))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def per_memory(used: Mapping[str, int]) -> dict[str, int]:
    """What each memory holds, where several resources limit it: the largest of them."""
    found: dict[str, int] = {}
    for resource, amount in used.items():
        name = memory_name(resource)
        found[name] = max(amount, found.get(name, 0))
    return found


def tables_of(instance: Instance, placement: Placement) -> TablesInfo:
    """Every table of a well-formed placement."""
    return TablesInfo(
        rows=tuple(_row(instance, placement, t) for t in range(instance.num_tables)),
        num_ranks=instance.num_ranks,
        time_unit=instance.time_unit,
    )


def _row(instance: Instance, placement: Placement, table: int) -> TableRow:
    option = int(placement.options[table])
    cost, use, off_cost, off_use = table_loads(instance, placement, table)
    names = [r.name for r in instance.resources]
    return TableRow(
        name=instance.table_names[table],
        option=instance.option_names[option],
        ranks=tuple(tuple(block) for block in placement.to_lists(table)),
        used={n: int(use[:, i].sum() + off_use[i]) for i, n in enumerate(names)},
        most={n: int(use[:, i].max()) for i, n in enumerate(names)},
        cost=int(cost.sum(axis=1).max()) or int(off_cost.sum()),
    )


def table_loads(
    instance: Instance, placement: Placement, table: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """One table's cost [ranks, phases] and use [ranks, resources], then the same off all ranks.

    The last two are int64 arrays [phases] and [resources]: what ``CLUSTER`` blocks add.
    """
    cost = np.zeros((instance.num_ranks, len(instance.phases)), dtype=np.int64)
    use = np.zeros((instance.num_ranks, len(instance.resources)), dtype=np.int64)
    off_cost, off_use = np.zeros_like(cost[0]), np.zeros_like(use[0])
    blocks = instance.blocks_of(int(placement.options[table]))
    for index, ranks in zip(blocks, placement.ranks[table], strict=True):
        block = instance.block(index)
        if block.where == Where.CLUSTER:
            entries = [block.entry(i) for i in range(block.count)]
            off_cost += instance.shard_cost[entries].sum(axis=0)
            off_use += instance.shard_use[entries].sum(axis=0)
            continue
        positions = position_entries(instance, block, ranks)
        np.add.at(cost, ranks, instance.shard_cost[positions])
        np.add.at(use, ranks, instance.shard_use[positions])
    return cost, use, off_cost, off_use
