"""Random small legal instances over everything the format allows, reproducible from a number."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import Current, Instance, Objective, Pin, Scope, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from tests.formulations.brute_force import combinations, table_placements

#: Sizes of machines: one machine, several equal ones, unequal ones, several of one rank.
SHAPES = (
    (1,), (2,), (3,), (4,), (5,), (1, 1), (2, 2), (1, 2), (2, 1), (1, 1, 1), (1, 3), (3, 1),
    (2, 3), (1, 1, 2), (1, 1, 3), (1, 1, 1, 1), (2, 1, 2),
)  # fmt: skip
_WHERES = (
    Where.EVERY_RANK, Where.ANY_RANK, Where.ANY_RANK, Where.ONE_MACHINE,
    Where.ANY_RANK_OF_ONE_MACHINE, Where.LIST, Where.CLUSTER,
)  # fmt: skip

#: Draws one cost.
Cost = Callable[[Random], int]


def _digits(bits: int) -> Cost:
    return lambda rng: rng.randrange(2 ** rng.randint(1, bits))


def _tied(unit: int) -> Cost:
    """A few round values plus a tiny offset, so that near ties are common."""
    return lambda rng: rng.choice((1, 1, 2, 3)) * unit * 10 ** rng.randint(0, 2) + rng.randint(0, 3)


#: Ways to draw costs, by their magnitude; the picoseconds of real tables lie in ``pico``.
COSTS: dict[str, Cost] = {
    "small": lambda rng: rng.randint(0, 9),
    "thousands": lambda rng: rng.randint(1, 9999),
    "micro": lambda rng: rng.randint(10**5, 10**7),
    "pico": lambda rng: rng.randint(10**3, 2 * 10**8) * 1000 + rng.choice((0, 0, 5)),
    "ties": _tied(10**6),
    "2^50": lambda rng: rng.randrange(2**50),
    "any": _digits(50),
    "multiples": lambda rng: rng.randint(1, 40) * (2**40 + 1),
}
#: Costs at the edge of what the format allows, drawn where they are asked for.
EDGE: dict[str, Cost] = {"near 2^53": lambda rng: 2**53 - 1 - rng.randint(0, 3)}


@dataclass(frozen=True)
class World:
    """The machines, resources and ranges of numbers from which blocks are drawn."""

    machines: list[list[int]]
    resources: list[tuple[str, Scope]]
    use: int
    phases: int
    cost: Cost
    negative: bool
    wheres: Sequence[Where] = _WHERES

    @property
    def ranks(self) -> int:
        return sum(map(len, self.machines))


@dataclass(frozen=True)
class Kinds:
    """What may be drawn: a share ``plain`` without pins, forbidden options and limits on moves, and
    nothing with more than ``most`` plans, so that enumeration stays fast."""

    objectives: Sequence[Objective] = tuple(Objective)
    wheres: Sequence[Where] = _WHERES
    costs: dict[str, Cost] = field(default_factory=lambda: COSTS)
    uses: Sequence[int] = (6, 20, 2**33, 2**46)
    tables: Sequence[int] = (1, 2, 2, 3, 3, 4)
    fusion: bool = True
    plain: float = 0.5
    most: int = 30_000


def generate(number: int, costs: dict[str, Cost] = COSTS) -> Instance:
    """The instance of a number, the same at every call, with costs of these kinds."""
    rng, kinds = Random(number), Kinds(costs=costs)
    while True:
        try:
            instance = draw(rng, f"fuzz {number}", kinds)
        except InstanceError:  # sums beyond 2^62, or a pin with ranks for another number of blocks
            continue
        if instance is not None:
            return instance


def draw(rng: Random, name: str, kinds: Kinds) -> Instance | None:
    """An instance of these kinds; None if it has too many plans.

    Raises
    ------
    InstanceError
        If it breaks a rule: sums beyond 2^62, a pin with ranks for another number of blocks.
    """
    objective = rng.choice(kinds.objectives)
    machines = machines_of(rng)
    resources = [(f"r{i}", rng.choice(list(Scope))) for i in range(rng.choice((0, 1, 1, 2, 3)))]
    kind = rng.choice(list(kinds.costs))
    world = World(
        machines, resources, rng.choice(kinds.uses), rng.choice((1, 1, 2, 3)), kinds.costs[kind],
        objective == Objective.TOTAL and rng.random() < 0.5, kinds.wheres,
    )  # fmt: skip
    tables = [_table(rng, world) for _ in range(rng.choice(kinds.tables))]
    room = [capacity_of(rng, world, scope, len(tables)) for _, scope in resources]
    hidden = None
    if objective == Objective.PIPELINED_STEP:
        most = rng.choice((0, 3, 10**6, 2 * world.cost(rng)))
        hidden = [rng.randint(0, most) for _ in range(world.phases)]
    builder = InstanceBuilder(
        machines, [f"p{i}" for i in range(world.phases)],
        [(n, s, c) for (n, s), c in zip(resources, room, strict=True)], objective, name=name,
        source=kind, hidden=hidden,
    )  # fmt: skip
    options = _add_tables(rng, builder, tables, kinds.fusion)
    plain = builder.build()
    if combinations(plain) > kinds.most:
        return None
    return builder.build(**_constraints(rng, plain, options, kinds.plain))


def machines_of(rng: Random) -> list[list[int]]:
    """Ranks of each machine, for a random choice of sizes."""
    sizes = rng.choice(SHAPES)
    ranks = list(range(sum(sizes)))
    if rng.random() < 0.3:
        rng.shuffle(ranks)
    return [[ranks.pop(0) for _ in range(size)] for size in sizes]


def _add_tables(
    rng: Random, builder: InstanceBuilder, tables: list[list[list[Block]]], fusion: bool
) -> list[list[int]]:
    fused = rng.random() < 0.4 and fusion
    found = []
    for index, options in enumerate(tables):
        builder.add_table(f"t{index}")
        found.append([builder.add_option(f"o{i}", b, _fusion(rng, fused)) for i, b in
                      enumerate(options)])  # fmt: skip
    return found


def _fusion(rng: Random, fused: bool) -> tuple[str, int] | None:
    if not fused or rng.random() < 0.3:
        return None
    return rng.choice(("g", "g", "h")), rng.choice((-1, 0, 1, 2**40))


def capacity_of(rng: Random, world: World, scope: Scope, tables: int) -> list[int]:
    """Mostly tight: a little more or less than what the tables use at a place."""
    places = {Scope.RANK: world.ranks, Scope.MACHINE: len(world.machines), Scope.CLUSTER: 1}[scope]
    share = {Scope.RANK: 1, Scope.MACHINE: 2, Scope.CLUSTER: 3}[scope]
    middle = max(1, world.use * tables * share // 2)
    if rng.random() < 0.5:
        return [rng.randint(middle // 2, 2 * middle)] * places
    return [rng.randint(0, 2 * middle) for _ in range(places)]


def _table(rng: Random, world: World) -> list[list[Block]]:
    """Options of a table; some nearly repeat the one before, so that ties and dominance occur."""
    options: list[list[Block]] = []
    for _ in range(rng.choice((1, 2, 2, 3, 4))):
        if options and rng.random() < 0.25:
            options.append([_nearly(rng, world, block) for block in options[-1]])
        else:
            options.append([block_of(rng, world) for _ in range(rng.choice((1, 1, 1, 2)))])
    return options


def _nearly(rng: Random, world: World, block: Block) -> Block:
    shards = list(block.shards)
    at = rng.randrange(len(shards))
    old = shards[at]
    cost = [c + rng.choice((0, 0, 1)) for c in old.cost]
    shards[at] = Shard(old.use, cost, old.repeat, old.move_bytes)
    return Block(block.where, shards, block.count, block.distinct, block.among)


def block_of(rng: Random, world: World, where: Where | None = None) -> Block:
    """A block of the given kind of place, or of any kind."""
    where = rng.choice(world.wheres) if where is None else where
    machine_kind = where in (Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE)
    among: list[int] | None = None
    chooses = where not in (Where.EVERY_RANK, Where.CLUSTER)
    if where == Where.LIST or (chooses and rng.random() < 0.3):
        size = len(world.machines) if machine_kind else world.ranks
        among = rng.sample(range(size), rng.randint(1, size))
    count = 1 if where in (Where.EVERY_RANK, Where.LIST) else rng.choice((1, 1, 2, 3))
    positions = _positions(world, where, count, among)
    uneven = len(positions) == 1 and rng.random() < 0.5
    shards = _shards(rng, world, positions.pop() if uneven else 1, where != Where.CLUSTER)
    distinct = rng.choice((None, True, False))
    if where == Where.LIST:
        return Block(among or [0], shards, distinct=distinct)
    return Block(where, shards, count, distinct, among)


def _positions(world: World, where: Where, count: int, among: list[int] | None) -> set[int]:
    """Numbers of shards that an uneven block may list; several (unequal machines) rule it out."""
    if where == Where.EVERY_RANK:
        return {world.ranks}
    if where == Where.LIST:
        return {len(among or ())}
    if where == Where.ONE_MACHINE:
        allowed = range(len(world.machines)) if among is None else among
        return {len(world.machines[m]) for m in allowed}
    return {count}


def _shards(rng: Random, world: World, positions: int, placed: bool) -> list[Shard]:
    shards, left = [], positions
    while left:
        run = rng.randint(1, left)
        use = {n: rng.randint(0, world.use) for n, scope in world.resources
               if (placed or scope == Scope.CLUSTER) and rng.random() < 0.7}  # fmt: skip
        cost = [_cost(rng, world) for _ in range(world.phases)]
        shards.append(Shard(use, cost, run, rng.choice((0, 1, 5, 2**33))))
        left -= run
    return shards


def _cost(rng: Random, world: World) -> int:
    if rng.random() < 0.15:
        return 0
    sign = -1 if world.negative and rng.random() < 0.6 else 1
    return sign * world.cost(rng)


def _constraints(
    rng: Random, instance: Instance, options: list[list[int]], plain: float
) -> dict[str, Any]:
    """Pins, forbidden options, a current plan and limits on moves; in so large a share none."""
    if rng.random() < plain:
        return {}
    pins, forbidden, current = [], [], []
    for table, own in enumerate(options):
        if rng.random() < 0.25:
            option = rng.choice(own)
            named = ranks_for(rng, instance, option) if rng.random() < 0.6 else None
            pins.append(Pin(table, option, named))
        if rng.random() < 0.15:
            forbidden.append((table, rng.choice(own)))
        if rng.random() < 0.5:
            option = rng.choice(own)
            ranks = ranks_for(rng, instance, option, gone=instance.num_ranks + 2)
            current.append(Current(table, -1 if rng.random() < 0.1 else option, ranks))
    most = rng.choice((None, 0, 1, 1, 2)) if current else None
    size = rng.choice((None, 0, 3, 11, 2**34)) if current else None
    return {"pins": pins, "forbidden": forbidden, "current": current, "max_moved_tables": most,
            "max_moved_bytes": size}  # fmt: skip


def ranks_for(
    rng: Random, instance: Instance, option: int, gone: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Ranks of an option's blocks: mostly a legal placement in any order, at times any ranks."""
    legal = list(table_placements(instance, option))
    if legal and rng.random() < 0.85:
        return tuple(tuple(rng.sample(ranks, len(ranks))) for ranks in rng.choice(legal))
    highest = instance.num_ranks if gone is None else gone
    blocks = len(instance.blocks_of(option)) + rng.choice((0, 0, 0, -1, 1))
    return tuple(
        tuple(rng.randrange(highest) for _ in range(rng.randint(0, 4))) for _ in range(blocks)
    )


def largest(instance: Instance) -> int:
    """The largest cost, use or capacity of an instance, without its sign."""
    parts = [instance.shard_cost, instance.shard_use, *(r.capacity for r in instance.resources)]
    return max(int(abs(part).max(initial=0)) for part in parts)
