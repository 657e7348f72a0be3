"""Turn "why does nothing fit?" into Instances that any formulation can solve.

Each function takes an Instance and returns another, sharing arrays, whose optimum is the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from formulations.bounds.own import members
from formulations.diagnose.arrays import appended, rearranged
from formulations.fusion import without_fusion
from formulations.instance import Instance, IntArray, Objective, Scope, Where
from formulations.instance.build import Block, InstanceBuilder, Shard

#: Name of the option that leaves a table out, and prefix of the tables that lend capacity.
DROPPED = "(dropped)"
LENT = "(capacity) "


def without_costs(instance: Instance, phase: str = "none") -> Instance:
    """The same placements, all free, under the objective ``total`` with one phase."""
    cost = np.zeros((len(instance.shard_repeat), 1), dtype=np.int64)
    return replace(instance, phases=(phase,), objective=Objective.TOTAL, shard_cost=cost)


def droppable(instance: Instance) -> Instance:
    """Every table may be left out at cost 1: the optimum is the fewest tables to drop.

    The option to do so is each table's last. A pinned table stays: a pin says that it must be
    placed there.
    """
    free = without_costs(instance, "dropped tables")
    builder = _builder(free)
    for name in instance.table_names:
        builder.add_table(name)
        builder.add_option(DROPPED, [Block(Where.CLUSTER, [Shard({}, (1,))])])
    count, tables = instance.num_options, np.arange(instance.num_tables)
    options = np.insert(np.arange(count), instance.table_options[1:], count + tables)
    ends = instance.table_options + np.arange(instance.num_tables + 1)
    return rearranged(appended(free, builder.build()), tables.tolist(), options, ends)


def use_as_cost(
    instance: Instance,
    resources: Sequence[str],
    objective: Objective = Objective.BUSIEST_RANK,
) -> Instance:
    """Minimise the use of the first of some resources, all their capacities lifted.

    With ``busiest_rank`` the optimum is the fullest rank, with ``total`` the use of all places
    together.
    """
    use = instance.shard_use[:, [_column(instance, resources[0])]]
    lifted = _without_resources(instance, resources)
    return replace(lifted, phases=(resources[0],), objective=objective, shard_cost=use)


def with_capacity(instance: Instance, resources: Collection[str], capacity: int) -> Instance:
    """Every place of some resources has this capacity."""
    changed = tuple(
        replace(r, capacity=np.full_like(r.capacity, capacity)) if r.name in resources else r
        for r in instance.resources
    )
    return replace(instance, resources=changed)


def lendable(instance: Instance, resources: Sequence[str], most: int) -> Instance:
    """Minimise the uniform capacity of resources of one scope, up to ``most``.

    Every place gets a capacity of 2^k − 1 ≥ ``most``; for each power of two below, one more table
    either takes that much away at every place (free) or leaves it (at that cost). The optimum is
    the least uniform capacity, exactly.
    """
    bits = max(1, most.bit_length())
    free = with_capacity(without_costs(instance, resources[0]), resources, 2**bits - 1)
    where: dict[Scope, Where | list[int]] = {
        Scope.RANK: list(range(instance.num_ranks)),
        Scope.MACHINE: [ranks[0] for ranks in instance.machines],
        Scope.CLUSTER: Where.CLUSTER,
    }
    scope = instance.resources[_column(instance, resources[0])].scope
    builder = _builder(free)
    for bit in reversed(range(bits)):
        builder.add_table(f"{LENT}2^{bit}")
        taken = Shard(dict.fromkeys(resources, 2**bit), (0,))
        builder.add_option("taken", [Block(where[scope], [taken])])
        builder.add_option("left", [Block(Where.CLUSTER, [Shard({}, (2**bit,))])])
    return appended(free, builder.build())


def only(instance: Instance, tables: Collection[str]) -> Instance:
    """The instance restricted to some tables (constraints on the others fall away)."""
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


def _builder(instance: Instance) -> InstanceBuilder:
    """For tables to append: the same places, resources and phases."""
    resources = [(r.name, r.scope, r.capacity.tolist()) for r in instance.resources]
    return InstanceBuilder(instance.machines, instance.phases, resources, instance.objective)


def _column(instance: Instance, resource: str) -> int:
    return [r.name for r in instance.resources].index(resource)


def _without_resources(instance: Instance, names: Collection[str]) -> Instance:
    kept = [i for i, r in enumerate(instance.resources) if r.name not in names]
    use: IntArray = instance.shard_use[:, kept]
    return replace(instance, resources=tuple(instance.resources[i] for i in kept), shard_use=use)
