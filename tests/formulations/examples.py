"""Small instances that several tests use."""

from formulations import Block, Instance, InstanceBuilder, Objective, Shard, Where

MACHINES = ((0, 1), (2, 3))


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
    builder = InstanceBuilder(
        [[0]], ["step"], [("hbm", "rank", hbm), ("ddr", "machine", ddr)], Objective.STEP_TIME
    )
    for table in ("a", "b"):
        builder.add_table(table)
        for name, use, cost in (
            ("HYBRID", {"hbm": 8, "ddr": 2}, 9),
            ("CACHING", {"hbm": 4, "ddr": 10}, 3),
        ):
            builder.add_option(name, [Block(Where.EVERY_RANK, [Shard(use, (cost,))])])
    return builder.build()
