"""Turn "why does nothing fit?" into Instances that any formulation can solve.

Each function takes an Instance and returns another, sharing arrays, whose optimum is the answer;
:meth:`formulations.capacity.budget.Budget.ask` finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from formulations.capacity.budget import without_costs
from formulations.fusion import without_fusion
from formulations.instance import Current, Instance, IntArray, Objective, Pin, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.facts import members
from formulations.result.check import compute_loads
from formulations.result.placement import Placement

#: Name of the option that leaves a table out.
DROPPED = "(dropped)"


def droppable(instance: Instance) -> Instance:
    """Every table may be left out at cost 1: the optimum is the fewest tables to drop.

    The option to do so is each table's last. A pinned table stays: a pin says that it must be
    placed there.
    """
    free = without_costs(instance, "dropped tables")
    resources = [(r.name, r.scope, r.capacity.tolist()) for r in free.resources]
    builder = InstanceBuilder(free.machines, free.phases, resources, free.objective)
    for name in instance.table_names:
        builder.add_table(name)
        builder.add_option(DROPPED, [Block(Where.CLUSTER, [Shard({}, (1,))])])
    count, tables = instance.num_options, np.arange(instance.num_tables)
    options = np.insert(np.arange(count), instance.table_options[1:], count + tables)
    ends = instance.table_options + np.arange(instance.num_tables + 1)
    return rearranged(appended(free, builder.build()), tables.tolist(), options, ends)


def use_as_cost(
    instance: Instance, resources: Sequence[str], objective: Objective = Objective.BUSIEST_RANK
) -> Instance:
    """Minimise the use of the first of some resources, with their capacities lifted.

    With ``busiest_rank`` the optimum is the fullest rank, with ``total`` the use of all places
    together.
    """
    use = instance.shard_use[:, [[r.name for r in instance.resources].index(resources[0])]]
    lifted = _without_resources(instance, resources)
    return replace(lifted, phases=(resources[0],), hidden=(), objective=objective, shard_cost=use)


def above_first(instance: Instance, resources: Sequence[str]) -> dict[str, int]:
    """By how much the largest capacity of each resource exceeds that of the first.

    Resources that limit one memory at different moments differ by a fixed use at that moment, and
    keep this difference when the memory grows.
    """
    most = {r.name: int(r.capacity.max()) for r in instance.resources if r.name in resources}
    return {name: most[name] - most[resources[0]] for name in resources}


def fullest(instance: Instance, placement: Placement, resources: Sequence[str]) -> int:
    """Capacity of the first resource that a plan, which may exceed the present one, needs."""
    use, above = compute_loads(instance, placement).use, above_first(instance, resources)
    names = [r.name for r in instance.resources]
    return max(int(use[names.index(name)].max()) - above[name] for name in resources)


def with_capacity(instance: Instance, resources: Sequence[str], capacity: int) -> Instance:
    """The instance with this capacity at every place of the first resource; the other resources
    keep what they have above it."""
    above = above_first(instance, resources)
    changed = tuple(
        replace(r, capacity=np.full_like(r.capacity, max(0, capacity + above[r.name])))
        if r.name in above
        else r
        for r in instance.resources
    )
    return replace(instance, resources=changed)


def only(instance: Instance, tables: Collection[str]) -> Instance:
    """The instance restricted to some tables (constraints on the others are dropped)."""
    kept = [t for t, name in enumerate(instance.table_names) if name in tables]
    options, ends = members(instance.table_options, np.asarray(kept, dtype=np.int64))
    return rearranged(instance, kept, options, ends)


def lift(instance: Instance, constraint: str) -> Instance:
    """The instance without one constraint: a resource by name, or a family of constraints.

    Parameters
    ----------
    instance : Instance
    constraint : str
        A resource's name, ``fusion``, ``pins``, ``forbidden`` or ``moves``.
    """
    if constraint == "pins":
        return replace(instance, pins=())
    if constraint == "forbidden":
        return replace(instance, forbidden=())
    if constraint == "moves":
        return replace(instance, current=(), max_moved_tables=None, max_moved_bytes=None)
    if constraint == "fusion":
        return without_fusion(instance)
    return _without_resources(instance, [constraint])


def constraints_of(instance: Instance) -> list[str]:
    """Names that :func:`lift` accepts for this instance, resources first."""
    names = [r.name for r in instance.resources]
    names += ["fusion"] if (instance.option_group >= 0).any() else []
    names += ["pins"] if instance.pins else []
    names += ["forbidden"] if instance.forbidden else []
    return names + (["moves"] if instance.limits_moves else [])


def _without_resources(instance: Instance, names: Collection[str]) -> Instance:
    kept = [i for i, r in enumerate(instance.resources) if r.name not in names]
    use: IntArray = instance.shard_use[:, kept]
    return replace(instance, resources=tuple(instance.resources[i] for i in kept), shard_use=use)


def rearranged(
    instance: Instance, tables: Sequence[int], options: IntArray, table_options: IntArray
) -> Instance:
    """Some tables of an instance, with the options given in that order.

    Pins, forbidden options and the current plan of the other tables are dropped.

    Parameters
    ----------
    instance : Instance
    tables : sequence of int
        Those kept, in their new order.
    options : int64 array
        Options kept, by table, in their new order.
    table_options : int64 array [tables + 1]
        Offsets into ``options``.
    """
    blocks, option_blocks = members(instance.option_blocks, options)
    entries, block_shards = members(instance.block_shards, blocks)
    table_of, option_of = _index(tables), _index(options.tolist())
    current = tuple(
        Current(table_of[c.table], option_of.get(c.option, -1), c.ranks)
        for c in instance.current
        if c.table in table_of
    )
    return replace(
        instance,
        table_names=tuple(instance.table_names[t] for t in tables),
        option_names=tuple(instance.option_names[o] for o in options.tolist()),
        table_options=table_options,
        option_blocks=option_blocks,
        option_group=instance.option_group[options],
        option_level=instance.option_level[options],
        block_where=instance.block_where[blocks],
        block_count=instance.block_count[blocks],
        block_distinct=instance.block_distinct[blocks],
        block_places=instance.block_places[blocks],
        block_shards=block_shards,
        shard_repeat=instance.shard_repeat[entries],
        shard_use=instance.shard_use[entries],
        shard_cost=instance.shard_cost[entries],
        shard_move=instance.shard_move[entries],
        pins=tuple(
            Pin(table_of[p.table], option_of[p.option], p.ranks)
            for p in instance.pins
            if p.table in table_of
        ),
        forbidden=tuple(
            (table_of[t], option_of[o]) for t, o in instance.forbidden if t in table_of
        ),
        current=current,
        max_moved_tables=instance.max_moved_tables if current else None,
        max_moved_bytes=instance.max_moved_bytes if current else None,
        reference=(),
    )


def appended(instance: Instance, extra: Instance) -> Instance:
    """The instance with the tables of another, of the same places, resources and phases, appended.

    The other has neither fusion groups nor constraints.
    """

    def behind(first: IntArray, second: IntArray) -> IntArray:
        return np.concatenate([first, second[1:] + first[-1]])

    places = extra.block_places.copy()
    places[places >= 0] += len(instance.place_sets)
    pairs: dict[str, Any] = {
        name: np.concatenate([getattr(instance, name), getattr(extra, name)])
        for name in (
            "option_group", "option_level", "block_where", "block_count", "block_distinct",
            "shard_repeat", "shard_use", "shard_cost", "shard_move",
        )
    }  # fmt: skip
    return replace(
        instance,
        table_names=instance.table_names + extra.table_names,
        option_names=instance.option_names + extra.option_names,
        table_options=behind(instance.table_options, extra.table_options),
        option_blocks=behind(instance.option_blocks, extra.option_blocks),
        block_shards=behind(instance.block_shards, extra.block_shards),
        block_places=np.concatenate([instance.block_places, places]),
        place_sets=instance.place_sets + extra.place_sets,
        **pairs,
    )


def _index(items: Sequence[int]) -> dict[int, int]:
    return {item: index for index, item in enumerate(items)}
