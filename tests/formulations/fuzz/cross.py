"""Every kind of place × scope × objective × fusion × pins × moves: small instances of each."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from random import Random
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import Current, Instance, Objective, Pin, Scope, Where
from formulations.instance.build import Block, InstanceBuilder
from tests.formulations.brute_force import combinations
from tests.formulations.fuzz.generate import (
    COSTS,
    World,
    block_of,
    capacity_of,
    machines_of,
    ranks_for,
)

#: Instances with more plans than this are drawn again, so that all of them take little time.
MAX_COMBINATIONS = 2_000


class Pins(StrEnum):
    """What one table is pinned to."""

    NONE = "none"
    OPTION = "option"
    RANKS = "ranks"


class Moves(StrEnum):
    """Which limit on moves from the current plan is set."""

    NONE = "none"
    TABLES = "tables"
    BYTES = "bytes"


@dataclass(frozen=True)
class Cell:
    """One value of each family, all of which an instance of the cell shows."""

    where: Where
    scope: Scope
    objective: Objective
    fusion: bool
    pins: Pins
    moves: Moves


CELLS = [Cell(*c) for c in product(Where, Scope, Objective, (False, True), Pins, Moves)]


def draw(cell: Cell, number: int) -> Instance:
    """The instance of a cell and a number, the same at every call."""
    rng = Random(f"{cell} {number}")
    while True:
        try:
            instance = _draw(rng, cell)
        except InstanceError:  # a pin with ranks for another number of blocks
            continue
        if instance is not None and holds(cell, instance):
            return instance


def holds(cell: Cell, instance: Instance) -> bool:
    """Whether an instance shows every kind of its cell."""
    levels = instance.option_level[instance.option_group >= 0]
    fused = instance.table_of[instance.option_group >= 0]
    return (
        cell.where in instance.block_where
        and instance.resources[0].scope == cell.scope
        and instance.objective == cell.objective
        and cell.fusion == (len({*fused.tolist()}) > 1 and len({*levels.tolist()}) > 1)
        and bool(instance.pins) == (cell.pins != Pins.NONE)
        and any(p.ranks for p in instance.pins) == (cell.pins == Pins.RANKS)
        and (instance.max_moved_tables is not None) == (cell.moves == Moves.TABLES)
        and (instance.max_moved_bytes is not None) == (cell.moves == Moves.BYTES)
    )


def _draw(rng: Random, cell: Cell) -> Instance | None:
    machines = machines_of(rng)
    resources = [("r0", cell.scope), ("r1", rng.choice(list(Scope)))][: rng.choice((1, 1, 2))]
    cost = COSTS[rng.choice(("small", "thousands", "pico", "ties"))]
    negative = cell.objective == Objective.TOTAL and rng.random() < 0.5
    world = World(machines, resources, rng.choice((6, 20)), rng.choice((1, 2)), cost, negative)
    tables = rng.choice((2, 2, 3))
    builder = InstanceBuilder(
        machines, [f"p{i}" for i in range(world.phases)],
        [(n, s, capacity_of(rng, world, s, tables + 1)) for n, s in resources], cell.objective,
    )  # fmt: skip
    options = [_table(rng, cell, world, builder, table) for table in range(tables)]
    plain = builder.build()
    if combinations(plain) > MAX_COMBINATIONS:
        return None
    return builder.build(**_constraints(rng, cell, plain, options))


def _table(
    rng: Random, cell: Cell, world: World, builder: InstanceBuilder, table: int
) -> list[int]:
    """Options of a table, mostly with a block of the cell's kind."""
    builder.add_table(f"t{table}")
    found = []
    for index in range(rng.choice((1, 2, 3))):
        blocks: list[Block] = [block_of(rng, world, cell.where if rng.random() < 0.6 else None)]
        if rng.random() < 0.2:
            blocks.append(block_of(rng, world))
        fused = cell.fusion and rng.random() < 0.8
        fusion = ("g", rng.choice((0, 1))) if fused else None
        found.append(builder.add_option(f"o{index}", blocks, fusion))
    return found


def _constraints(
    rng: Random, cell: Cell, instance: Instance, options: list[list[int]]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if cell.pins != Pins.NONE:
        table = rng.randrange(len(options))
        option = rng.choice(options[table])
        ranks = ranks_for(rng, instance, option) if cell.pins == Pins.RANKS else None
        found["pins"] = [Pin(table, option, ranks)]
    if cell.moves != Moves.NONE:
        now = [
            (t, rng.choice(own)) for t, own in enumerate(options) if t == 0 or rng.random() < 0.8
        ]
        found["current"] = [Current(t, o, ranks_for(rng, instance, o)) for t, o in now]
        tables, size = rng.choice((0, 1, 1, 2)), rng.choice((0, 3, 11, 2**33))
        if cell.moves == Moves.TABLES:
            found["max_moved_tables"] = tables
        else:
            found["max_moved_bytes"] = size
    return found
