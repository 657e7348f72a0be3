"""A small instance with loads known by hand: two machines of two ranks, three tables."""

import numpy as np

from formulations import Block, Instance, InstanceBuilder, Placement, Shard, Where


def example(objective: str = "step_time", hbm: int = 100) -> Instance:
    """``a`` row-wise or table-wise, ``b`` table-wise, ``c`` off all ranks."""
    builder = InstanceBuilder(
        machines=[[0, 1], [2, 3]],
        phases=["fwd_compute", "bwd_compute"],
        resources=[("hbm", "rank", hbm), ("ddr", "machine", [50, 60]), ("pool", "cluster", 9)],
        objective=objective,
        name="example",
    )
    builder.add_table("a")
    builder.add_option(
        "row_wise", [Block(Where.EVERY_RANK, [Shard({"hbm": 10, "ddr": 5}, [3, 4])])]
    )
    builder.add_option("table_wise", [Block(Where.ANY_RANK, [Shard({"hbm": 60}, [9, 9])])])
    builder.add_table("b")
    builder.add_option("table_wise", [Block(Where.ANY_RANK, [Shard({"hbm": 70}, [20, 1])])])
    builder.add_table("c")
    builder.add_option("pooled", [Block(Where.CLUSTER, [Shard({"pool": 4}, [1, 1])], count=2)])
    return builder.build()


def placement(rank_of_b: int = 2) -> Placement:
    """Row-wise ``a``, ``b`` on one rank, ``c``."""
    return Placement(
        np.array([0, 2, 3]),
        [[np.arange(4)], [np.array([rank_of_b])], [np.empty(0, dtype=np.int64)]],
    )
