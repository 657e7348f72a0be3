"""How often a greedy partitioner finds no place although one exists.

Whole tables on two ranks whose memory is the tables' total times 1.05, shared evenly: subset sums
decide exactly whether a split exists, and running the greedy shows whether it finds one. Writes
``results/packing.json``. ``python benchmarks/dp-vs-exact/packing.py``
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from formulations import Block, Instance, InstanceBuilder, Objective, Shard, Where
from formulations.baselines.partition.partitioner import Partitioner

HERE = Path(__file__).parent
DRAWS, SLACK = 4000, 0.05


def main() -> None:
    """Draw, decide, count, write."""
    draw = random.Random(0)
    feasible, failed = 0, {"storage": 0, "perf": 0}
    for _ in range(DRAWS):
        sizes = [draw.randint(1, 100) for _ in range(draw.randint(4, 8))]
        capacity = int(sum(sizes) * (1 + SLACK) / 2)
        if not splits(sizes, capacity):
            continue
        feasible += 1
        instance = whole_tables(sizes, capacity, draw)
        for sort_by in failed:
            options = np.arange(len(sizes))
            failed[sort_by] += Partitioner(instance, sort_by).partition(options) is None
    result = {
        "measured": datetime.now(UTC).date().isoformat(),
        "draws": DRAWS,
        "tables": "4–8 whole tables of 1–100",
        "ranks": 2,
        "slack": SLACK,
        "feasible": feasible,
        "failed": failed,
        "share": {k: v / feasible for k, v in failed.items()},
    }
    (HERE / "results" / "packing.json").write_text(json.dumps(result, indent=1) + "\n")
    print(result)


def splits(sizes: list[int], capacity: int) -> bool:
    """Whether the sizes split into two parts of at most ``capacity`` each."""
    sums = {0}
    for size in sizes:
        sums |= {s + size for s in sums}
    return any(s <= capacity and sum(sizes) - s <= capacity for s in sums)


def whole_tables(sizes: list[int], capacity: int, draw: random.Random) -> Instance:
    """One table-wise option a table, costs drawn apart from sizes."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", capacity)], Objective.BUSIEST_RANK)
    for index, size in enumerate(sizes):
        builder.add_table(f"t{index}")
        shard = Shard({"hbm": size}, (draw.randint(1, 100),))
        builder.add_option("table_wise", [Block(Where.ANY_RANK, [shard])])
    return builder.build()


if __name__ == "__main__":
    main()
