"""A small instance with loads known by hand: two machines of two ranks, three tables."""

import numpy as np

from formulations import Instance, InstanceBuilder, Placement, Where
from tests.formulations.examples import ANY, EVERY, MACHINES, at


def example(objective: str = "step_time", hbm: int = 100) -> Instance:
    """``a`` row-wise or table-wise, ``b`` table-wise, ``c`` off all ranks."""
    builder = InstanceBuilder(
        MACHINES, ["fwd_compute", "bwd_compute"],
        [("hbm", "rank", hbm), ("ddr", "machine", [50, 60]), ("pool", "cluster", 9)], objective,
        name="example",
    )  # fmt: skip
    builder.add_table("a")
    builder.add_option("row_wise", [at(EVERY, 3, 4, hbm=10, ddr=5)])
    builder.add_option("table_wise", [at(ANY, 9, 9, hbm=60)])
    builder.add_table("b")
    builder.add_option("table_wise", [at(ANY, 20, 1, hbm=70)])
    builder.add_table("c")
    builder.add_option("pooled", [at(Where.CLUSTER, 1, 1, pool=4, count=2)])
    return builder.build()


def placement(rank_of_b: int = 2) -> Placement:
    """Row-wise ``a``, ``b`` on one rank, ``c``."""
    return Placement(
        np.array([0, 2, 3]),
        [[np.arange(4)], [np.array([rank_of_b])], [np.empty(0, dtype=np.int64)]],
    )
