"""An earlier plan on a new Instance: tables matched by name, ranks by machine, options by kind."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from formulations import Instance, Placement
from formulations.instance import Current
from formulations.instance.assigning import Ranks, assigned, misplaced
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import Compiled, regrouped
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.options import Choice

#: Rank of the old cluster -> the same rank in the new one, without ranks that are gone.
RankMap = dict[int, int]


@dataclass(frozen=True)
class Carried:
    """The part of a plan that applies to another model and cluster."""

    compiled: Compiled
    """Its Instance counts moves from the plan (``current``)."""
    wish: Placement
    """That part: option −1 for a new table, no ranks if they are gone."""
    gone: tuple[str, ...]
    """Tables that the model no longer has."""
    new: tuple[str, ...]
    """Tables that the plan did not have; placing them moves nothing."""
    displaced: tuple[str, ...]
    """Tables whose option or ranks no longer exist: they must move."""


def carried(plan: Plan, compiled: Compiled, lost: Collection[int] = ()) -> Carried:
    """Put a plan on an Instance of other tables, sizes, ranks or options.

    Tables are matched by name. A table whose option no longer exists starts from the nearest one:
    the same mode, else the nearest share of rows in HBM, then the same sharding type, number of
    column shards, and routing. Ranks are matched by :func:`same_ranks`.

    Raises
    ------
    BadInput
        If the plan has no placement or shares no table with the model, or never had a lost rank.
    """
    if not plan.tables:
        raise BadInput(
            f"the plan to start from places nothing: its status is {plan.outcome.status}"
        )
    instance, names = compiled.instance, set(compiled.instance.table_names)
    old = {table.name: table for table in plan.tables}
    if names and not names & set(old):
        raise BadInput(
            f"the plan to start from places none of the tables of model {compiled.model.name!r}; "
            f"it was made for model {plan.model.name!r}"
        )
    ranks = same_ranks(plan.cluster, compiled.cluster, lost)
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    places: list[list[np.ndarray]] = [[] for _ in range(instance.num_tables)]
    current, displaced = [], []
    for index, name in enumerate(instance.table_names):
        if name not in old:
            continue
        option, there, same = _nearest(compiled, index, old[name], ranks)
        options[index] = option
        places[index] = [np.asarray(block, dtype=np.int64) for block in there or ()]
        if there is None or not same:
            displaced.append(name)
            current.append(Current(index, -1, there or ()))
        else:
            current.append(Current(index, option, there))
    return Carried(
        replace(compiled, instance=replace(instance, current=tuple(current))),
        Placement(options, places),
        gone=tuple(name for name in old if name not in names),
        new=tuple(name for name in instance.table_names if name not in old),
        displaced=tuple(displaced),
    )


def same_ranks(before: Cluster, after: Cluster, lost: Collection[int] = ()) -> RankMap:
    """The rank of the new cluster that corresponds to each rank of the old one.

    Machines correspond in order, and so do the ranks of each. If the new cluster has as many
    machines, or a machine as many ranks, lost ones were replaced in place; otherwise they are
    removed first, and those after them move up. Further ranks of the new cluster are new, and old
    ranks without a counterpart are gone.

    Raises
    ------
    BadInput
        If the old cluster does not have a lost rank.
    """
    strange = sorted(set(lost) - set(range(before.num_ranks)))
    if strange:
        raise BadInput(
            f"lost rank {strange[0]}: the plan's cluster {before.name!r} has the ranks 0 to "
            f"{before.num_ranks - 1}"
        )
    machines = list(before.machine_ranks)
    if len(machines) != len(after.machine_ranks):
        machines = [ranks for ranks in machines if not set(ranks) <= set(lost)]
    found: RankMap = {}
    for ranks, others in zip(machines, after.machine_ranks, strict=False):
        left = [rank for rank in ranks if rank not in lost or len(ranks) == len(others)]
        found |= zip(left, others, strict=False)
    return {old: new for old, new in found.items() if old not in lost}


def _nearest(
    compiled: Compiled, table: int, old: PlacedTable, ranks: RankMap
) -> tuple[int, Ranks | None, bool]:
    """The option most like that of a table, its ranks, and whether it is the same option.

    Ranks are None if the option cannot be placed on them.
    """
    options, instance = compiled.options, compiled.instance

    def unlike(option: int) -> tuple[object, ...]:
        choice: Choice = options.choices[option]
        return (
            choice.mode != old.mode,
            abs(choice.ratio - old.cache_ratio),
            choice.sharding != old.sharding_type,
            abs(choice.columns - old.column_shards),
            abs(choice.width - old.column_width),
            choice.dist_type != old.dist_type,
            choice.caching_group != old.fusion_caching,
        )

    try:
        likest = [options.index(table, old.option)]
    except KeyError:  # with machines of several sizes, one option has several names
        least = min(map(unlike, options.of(table)))
        likest = [option for option in options.of(table) if unlike(option) == least]
    found = [(option, _places(instance, option, old, ranks)) for option in likest]
    option, there = next((pair for pair in found if pair[1] is not None), found[0])
    return option, there, not any(unlike(option))


def _places(instance: Instance, option: int, old: PlacedTable, ranks: RankMap) -> Ranks | None:
    """The ranks of a table's blocks, newly numbered; None if its option cannot be placed there."""
    blocks = instance.blocks_of(option)
    placed = regrouped(old.ranks, len(blocks) > 1)
    if len(placed) != len(blocks) or any(rank not in ranks for block in placed for rank in block):
        return None
    moved = tuple(tuple(ranks[rank] for rank in block) for block in placed)
    pairs = zip(blocks, moved, strict=True)
    if all(misplaced(instance, instance.block(b), np.asarray(own)) is None for b, own in pairs):
        return moved
    return assigned(instance, option, moved)
