"""TorchRec's printed production plan with its sharding fixed: certified optimal, and how fast.

    python benchmarks/proofs/production.py sharding_stats_example.txt.gz

Every table keeps the sharding type that was printed; only the ranks are free. A shard costs the
printed Perf, and takes the printed HBM, each divided by the number of shards.
"""

from __future__ import annotations

import gzip
import sys
import time

from formulations import Settings, solve
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from milp_planner.start.torchrec_stats import StatsTable, read_stats

MACHINES = [list(range(8 * q, 8 * q + 8)) for q in range(12)]
HBM = 138 * 10**9  # 184 GB less the quarter that is reserved


def instance_of(tables: list[StatsTable]) -> Instance:
    """In picoseconds and bytes."""
    builder = InstanceBuilder(MACHINES, ["step"], [("hbm", "rank", HBM)], "busiest_rank", "fixed")
    for table in tables:
        perf = float(table.cell["Perf (ms)"].split()[0])
        hbm = float(table.cell["Storage (HBM, DDR)"].strip("(").split()[0])
        every = table.sharding_type == "row_wise"
        count = 96 if every else table.ranks.count(",") + 1
        shard = Shard({"hbm": round(hbm * 10**9 / count)}, [round(perf * 10**9 / count)])
        where = Where.EVERY_RANK if every else Where.ANY_RANK
        builder.add_table(table.name)
        builder.add_option(table.sharding_type, [Block(where, [shard], 1 if every else count)])
    return builder.build()


def main() -> None:
    """Solve once with two workers."""
    with gzip.open(sys.argv[1], "rt") as file:
        instance = instance_of(read_stats(file.read(), sys.argv[1]))
    start, begin = time.monotonic(), time.process_time()
    outcome = solve(instance, "auto", Settings(time_limit=30, workers=2))
    seconds, used = time.monotonic() - start, time.process_time() - begin
    print(f"{outcome.objective} certified {outcome.certified_bound}: {seconds:.1f} s, {used:.1f} s")


if __name__ == "__main__":
    main()
