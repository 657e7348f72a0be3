"""Small instances that several tests use."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from formulations import Block, Instance, InstanceBuilder, Objective, Placement, Shard, Where

EVERY, ANY, MACHINE, INSIDE = (
    Where.EVERY_RANK, Where.ANY_RANK, Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE,
)  # fmt: skip
MACHINES = ((0, 1), (2, 3))
#: Resources that instances are built with, and their scopes.
ROOMS = {"hbm": "rank", "ddr": "machine", "net": "cluster"}


def at(
    where: Where | Sequence[int], *cost: int, count: int = 1, distinct: bool | None = None,
    move_bytes: int = 0, **use: int,
) -> Block:  # fmt: skip
    """A block of equal shards with a cost in each phase and a use of each resource."""
    return Block(where, [Shard(use, cost, move_bytes=move_bytes)], count, distinct)


def built(
    tables: Mapping[str, Any] | Sequence[Any], objective: str = "busiest_rank",
    machines: Sequence[Sequence[int]] = ((0, 1),), hidden: Sequence[int] | None = None,
    phases: Sequence[str] = ("p",), **more: Any,
) -> Instance:  # fmt: skip
    """An instance of tables by name or ``t0`` and so on.

    A table is its options by name, or the only one, ``o``; an option is a block, a list of blocks,
    or one of these with its fusion group and level. ``more`` are the capacities in ``ROOMS``, and
    the constraints of ``build``.
    """
    named = tables if isinstance(tables, Mapping) else {f"t{i}": t for i, t in enumerate(tables)}
    found = {name: t if isinstance(t, Mapping) else {"o": t} for name, t in named.items()}
    rooms = [(name, scope, more.pop(name, None)) for name, scope in ROOMS.items()]
    rooms = [room for room in rooms if room[2] is not None]
    builder = InstanceBuilder(machines, phases, rooms, objective, hidden=hidden)
    for name, options in found.items():
        builder.add_table(name)
        for option, what in options.items():
            blocks, fusion = what if isinstance(what, tuple) else (what, None)
            builder.add_option(option, blocks if isinstance(blocks, list) else [blocks], fusion)
    return builder.build(**more)


def placed(options: Sequence[int], *ranks: Sequence[int]) -> Placement:
    """A placement of tables with one block each."""
    return Placement(np.asarray(options), [[np.asarray(each)] for each in ranks])


def every_kind(objective: Objective = Objective.STEP_TIME) -> Instance:
    """Six tables, one option each, one for every kind of place, on two machines of two ranks."""
    builder = InstanceBuilder(
        MACHINES,
        ["fwd", "bwd"],
        [("hbm", "rank", [100, 100, 100, 60]), ("ddr", "machine", 500), ("links", "cluster", 9)],
        objective,
    )
    builder.add_table("every")
    builder.add_option("rw", [Block(Where.EVERY_RANK, [
        Shard({"hbm": 10, "ddr": 5}, (1, 2), repeat=3), Shard({"hbm": 4}, (1, 1))])])  # fmt: skip
    builder.add_table("any")
    builder.add_option("cw", [Block(Where.ANY_RANK, [Shard({"hbm": 20}, (3, 4))], count=2)])
    builder.add_table("machine")
    builder.add_option("twrw", [Block(Where.ONE_MACHINE, [
        Shard({"hbm": 1, "ddr": 50}, (5, 0)), Shard({"hbm": 2, "ddr": 60}, (6, 0))])])  # fmt: skip
    builder.add_table("inside")
    builder.add_option(
        "twcw",
        [Block(Where.ANY_RANK_OF_ONE_MACHINE, [Shard({"hbm": 7}, (1, 1))], count=2, distinct=True)],
    )
    builder.add_table("listed")
    builder.add_option("list", [Block([3, 1], [Shard({"hbm": 3}, (7, 0)), Shard({}, (0, 8))])])
    builder.add_table("off")
    builder.add_option("off", [Block(Where.CLUSTER, [Shard({"links": 4}, (100, 0))], count=2)])
    return builder.build()


def two_modes(hbm: int = 12, ddr: int = 12) -> Instance:
    """The headline case: one rank, two tables, HYBRID (hbm 8, ddr 2) or CACHING (hbm 4, ddr 10).

    With the default capacities both HYBRID breaks HBM and both CACHING breaks DDR.
    """
    modes = {"HYBRID": at(EVERY, 9, hbm=8, ddr=2), "CACHING": at(EVERY, 3, hbm=4, ddr=10)}
    return built({"a": modes, "b": modes}, "step_time", [[0]], phases=["step"], hbm=hbm, ddr=ddr)


def four_tables() -> Instance:
    """The example of docs/proof.md: fast (6 bytes, cost 8) or slow (1, 14) on two ranks of 9."""
    table = {"fast": at(ANY, 8, hbm=6), "slow": at(ANY, 14, hbm=1)}
    return built(dict.fromkeys("abcd", table), phases=["step"], hbm=9)
