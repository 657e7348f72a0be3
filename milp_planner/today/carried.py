"""A plan of yesterday on today's Instance: tables by name, ranks by machine, options by kind."""

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

#: Rank of the old cluster -> the same rank in the new one; those that are gone are absent.
RankMap = dict[int, int]


@dataclass(frozen=True)
class Carried:
    """What is left of a plan on another model and cluster."""

    compiled: Compiled
    """Its Instance counts moves from the plan (``current``)."""
    wish: Placement
    """The plan as far as it goes: option −1 for a new table, no ranks where they are gone."""
    gone: tuple[str, ...]
    """Tables that the model no longer has."""
    new: tuple[str, ...]
    """Tables that the plan did not have: placing them moves nothing."""
    displaced: tuple[str, ...]
    """Tables whose option or whose ranks are no longer there: they move in any case."""


def carried(plan: Plan, compiled: Compiled, lost: Collection[int] = ()) -> Carried:
    """Put a plan on an Instance of other tables, sizes, ranks or options.

    A table is where its name is. Where its option is gone, it begins from the nearest one: the same
    mode, else the nearest share of rows in HBM, then the same sharding type, number of column
    shards, and routing. Ranks are those of :func:`same_ranks`.

    Raises
    ------
    BadInput
        For a plan that places nothing, or shares no table with the model, or a lost rank that it
        never had.
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
    """Which rank of the old cluster is which of the new one.

    Machines are the same in order, and so are the ranks of each. Where the new cluster has as many
    machines, or a machine as many ranks, lost ones have been replaced in place; else they are taken
    out first, and those after them move up. What the new cluster has beyond that is new, what it
    has not is gone.

    Raises
    ------
    BadInput
        For a lost rank that the old cluster does not have.
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
    """The option most like that of a table, its ranks there (None where it cannot sit on them), and
    whether it is the same one."""
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
    except KeyError:  # on machines of several sizes one option has several names
        least = min(map(unlike, options.of(table)))
        likest = [option for option in options.of(table) if unlike(option) == least]
    found = [(option, _places(instance, option, old, ranks)) for option in likest]
    option, there = next((pair for pair in found if pair[1] is not None), found[0])
    return option, there, not any(unlike(option))


def _places(instance: Instance, option: int, old: PlacedTable, ranks: RankMap) -> Ranks | None:
    """The ranks of a table's blocks, in the new numbers; None where its option cannot sit there."""
    blocks = instance.blocks_of(option)
    told = regrouped(old.ranks, len(blocks) > 1)
    if len(told) != len(blocks) or any(rank not in ranks for block in told for rank in block):
        return None
    moved = tuple(tuple(ranks[rank] for rank in block) for block in told)
    pairs = zip(blocks, moved, strict=True)
    if all(misplaced(instance, instance.block(b), np.asarray(own)) is None for b, own in pairs):
        return moved
    return assigned(instance, option, moved)
