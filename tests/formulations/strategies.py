"""Hypothesis strategies that draw small instances over everything an Instance may hold."""

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from formulations.instance import BlockView, Current, Instance, Objective, Pin, Scope, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from tests.formulations.brute_force import combinations, table_placements

ALL_WHERE = tuple(Where)
#: Instances above this many plans are not drawn, so that brute force stays fast.
MAX_COMBINATIONS = 20_000


@st.composite
def instances(
    draw: st.DrawFn,
    objectives: Sequence[Objective] = tuple(Objective),
    wheres: Sequence[Where] = ALL_WHERE,
    max_tables: int = 4,
    max_combinations: int = MAX_COMBINATIONS,
    fusion: bool = True,
    constraints: bool = True,
) -> Instance:
    """Draw an Instance.

    Parameters
    ----------
    objectives, wheres : sequences
        What may occur.
    max_tables : int
        Tables are drawn from 0 to this.
    max_combinations : int
        Upper limit on the number of plans (see ``brute_force.combinations``).
    fusion : bool
        Whether options may name fusion groups.
    constraints : bool
        Whether pins, forbidden options and move limits may occur.
    """
    objective = draw(st.sampled_from(list(objectives)))
    machines = draw(machine_lists())
    phases = [f"p{i}" for i in range(draw(st.integers(1, 2)))]
    resources = draw(resource_lists(machines))
    hidden: list[int] = []
    if objective == Objective.PIPELINED_STEP:
        hidden = [draw(st.sampled_from([0, 1, 4, 9, 100])) for _ in phases]
    builder = InstanceBuilder(machines, phases, resources, objective, hidden=hidden)
    low = -6 if objective == Objective.TOTAL else 0
    world = _World(machines, [(r[0], r[1]) for r in resources], len(phases), low, tuple(wheres))
    options: list[list[int]] = []
    for table in range(draw(st.integers(0, max_tables))):
        builder.add_table(f"t{table}")
        options.append(
            [
                builder.add_option(f"o{i}", draw(block_lists(world)), draw(_fusion(fusion)))
                for i in range(draw(st.integers(1, 3)))
            ]
        )
    plain = builder.build()
    assume(combinations(plain) <= max_combinations)
    if not constraints or not options or not draw(st.booleans()):
        return plain
    return builder.build(**draw(_constraints(plain, options)))


class _World:
    """The machines, resources and ranges of numbers from which blocks are drawn."""

    def __init__(
        self,
        machines: list[list[int]],
        resources: list[tuple[str, Scope]],
        phases: int,
        low: int,
        wheres: tuple[Where, ...],
    ) -> None:
        self.machines, self.resources, self.phases = machines, resources, phases
        self.low, self.wheres = low, wheres
        self.ranks = sum(len(m) for m in machines)


@st.composite
def machine_lists(draw: st.DrawFn) -> list[list[int]]:
    """One to four ranks on one or more machines, possibly of unequal size, in any order."""
    ranks = draw(st.permutations(range(draw(st.integers(1, 4)))))
    cuts = draw(st.sets(st.integers(1, max(1, len(ranks) - 1)), max_size=2))
    edges = [0, *sorted(c for c in cuts if c < len(ranks)), len(ranks)]
    machines = [list(ranks[a:b]) for a, b in itertools.pairwise(edges)]
    return machines if draw(st.booleans()) else [sorted(m) for m in machines]


@st.composite
def resource_lists(
    draw: st.DrawFn, machines: list[list[int]]
) -> list[tuple[str, Scope, list[int]]]:
    """Up to three resources with small capacities, equal at all places or not."""
    places = {Scope.RANK: sum(map(len, machines)), Scope.MACHINE: len(machines), Scope.CLUSTER: 1}
    found = []
    for index in range(draw(st.integers(0, 3))):
        scope = draw(st.sampled_from(list(Scope)))
        size = places[scope]
        if draw(st.booleans()):
            capacity = [draw(st.integers(0, 20))] * size
        else:
            capacity = draw(st.lists(st.integers(0, 20), min_size=size, max_size=size))
        found.append((f"r{index}", scope, capacity))
    return found


@st.composite
def block_lists(draw: st.DrawFn, world: _World) -> list[Block]:
    """The blocks of one option: one, seldom two."""
    count = draw(st.sampled_from([1, 1, 1, 2]))
    return [draw(blocks(world)) for _ in range(count)]


@st.composite
def blocks(draw: st.DrawFn, world: _World) -> Block:
    """One block of any allowed kind, its shards even or uneven."""
    where = draw(st.sampled_from(world.wheres))
    machine_kind = where in (Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE)
    among: list[int] | None = None
    if where == Where.LIST or (
        where not in (Where.EVERY_RANK, Where.CLUSTER) and draw(st.booleans())
    ):
        size = len(world.machines) if machine_kind else world.ranks
        among = draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
    count = 1 if where in (Where.EVERY_RANK, Where.LIST) else draw(st.integers(1, 3))
    placed = where != Where.CLUSTER
    sizes = _position_counts(world, where, count, among)
    positions = sizes.pop() if len(sizes) == 1 and draw(st.booleans()) else 1
    return Block(
        among if where == Where.LIST and among else where,
        draw(shard_lists(world, positions, placed)),
        count=count,
        distinct=draw(st.sampled_from([None, True, False])),
        among=None if where == Where.LIST else among,
    )


def _position_counts(world: _World, where: Where, count: int, among: list[int] | None) -> set[int]:
    """Entry counts an uneven block may have (several when machines differ in size)."""
    if where == Where.EVERY_RANK:
        return {world.ranks}
    if where == Where.LIST:
        return {len(among or ())}
    if where == Where.ONE_MACHINE:
        allowed = range(len(world.machines)) if among is None else among
        return {len(world.machines[m]) for m in allowed}
    return {count}


@st.composite
def shard_lists(draw: st.DrawFn, world: _World, positions: int, placed: bool) -> list[Shard]:
    """Shards that add up to ``positions``, in runs of one or more."""
    shards, left = [], positions
    while left:
        run = draw(st.integers(1, left))
        use = {
            name: draw(st.integers(0, 6))
            for name, scope in world.resources
            if (placed or scope == Scope.CLUSTER) and draw(st.booleans())
        }
        cost = [draw(st.integers(world.low, 9)) for _ in range(world.phases)]
        shards.append(Shard(use, cost, repeat=run, move_bytes=draw(st.integers(0, 5))))
        left -= run
    return shards


def _fusion(wanted: bool) -> st.SearchStrategy[tuple[str, int] | None]:
    if not wanted:
        return st.none()
    named = st.tuples(st.sampled_from(["f0", "f1"]), st.integers(-1, 2))
    return st.one_of(st.none(), named)


@st.composite
def _constraints(draw: st.DrawFn, instance: Instance, options: list[list[int]]) -> dict[str, Any]:
    """Pins, forbidden options, a current plan and limits on moves."""
    pins, forbidden, current = [], [], []
    for table, own in enumerate(options):
        if draw(st.integers(0, 3)) == 0:
            option = draw(st.sampled_from(own))
            ranks = draw(_some_ranks(instance, option)) if draw(st.booleans()) else None
            pins.append(Pin(table, option, ranks))
        if draw(st.integers(0, 3)) == 0:
            forbidden.append((table, draw(st.sampled_from(own))))
        if draw(st.booleans()):
            option = draw(st.sampled_from(own))
            gone = draw(st.integers(0, 5)) == 0
            ranks = draw(_some_ranks(instance, option))
            current.append(Current(table, -1 if gone else option, ranks))
    limit = st.one_of(st.none(), st.integers(0, 12)) if current else st.none()
    tables = st.one_of(st.none(), st.integers(0, len(options))) if current else st.none()
    return {
        "pins": pins,
        "forbidden": forbidden,
        "current": current,
        "max_moved_tables": draw(tables),
        "max_moved_bytes": draw(limit),
    }


@st.composite
def _some_ranks(draw: st.DrawFn, instance: Instance, option: int) -> tuple[tuple[int, ...], ...]:
    """Ranks of an option's blocks: mostly allowed ones in any order, seldom all on rank 0."""
    allowed = list(table_placements(instance, option))
    if not allowed or draw(st.integers(0, 7)) == 0:
        return tuple(
            (0,) * _shard_count(instance, instance.block(b)) for b in instance.blocks_of(option)
        )
    chosen = draw(st.sampled_from(allowed))
    return tuple(tuple(draw(st.permutations(ranks))) for ranks in chosen)


def _shard_count(instance: Instance, block: BlockView) -> int:
    return 0 if block.where == Where.CLUSTER else instance.positions(block)
