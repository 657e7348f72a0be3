"""Bounds where a few shards fill a rank: pooled places against rank patterns.

    python benchmarks/rank-patterns/run.py [--seconds 20] [-o FILE]

Each instance has 8 ranks and 20 tables of 15 to 60% of a rank's memory and of its share of time,
drawn apart; with one, two or three options a table (whole; less memory but slower; two halves).
The whole model in CP-SAT, ``scale`` (the better plan of both counts) and each bound get the same
seconds on one core.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

from formulations import Block, Instance, InstanceBuilder, Settings, Shard, Where, solve
from formulations.aggregate.cpsat import Limits
from formulations.aggregate.model import AggregateSettings
from formulations.bounds.patterns import pattern_bound
from formulations.bounds.pooled import exact_pooled_ip
from formulations.certify import best_symmetric_lp

HERE = Path(__file__).resolve().parent


def few_shards(seed: int, options: int, tables: int = 20, ranks: int = 8) -> Instance:
    """An instance in which two or three shards fill a rank."""
    rng = np.random.default_rng(seed)
    memory, cost = rng.uniform(0.15, 0.6, (2, tables)) * 1e6
    room = int(max(1.05 * memory.sum() / ranks, 0.75e6))
    builder = InstanceBuilder(
        [range(ranks)], ["step"], [("hbm", "rank", room)], "busiest_rank",
        name=f"few-{options}-{seed}",
    )  # fmt: skip
    choices = [(1.0, 1.0, 1), (0.4, 1.6, 1), (0.5, 0.7, 2)][:options]
    for table in range(tables):
        builder.add_table(f"t{table}")
        for index, (less, slower, count) in enumerate(choices):
            shard = Shard({"hbm": int(memory[table] * less)}, [int(cost[table] * slower)])
            builder.add_option(f"o{index}", [Block(Where.ANY_RANK, [shard], count=count)])
    return builder.build()


def measure(instance: Instance, seconds: float) -> dict[str, Any]:
    """Every bound of one instance, as a row."""
    whole = solve(instance, "cpsat", Settings(time_limit=seconds, workers=1, certificate=False))
    other = solve(instance, "scale", Settings(time_limit=seconds, workers=1, certificate=False))
    plan = min(o.objective for o in (whole, other) if o.objective is not None)
    lp = best_symmetric_lp(instance, plan)
    settings = AggregateSettings(upper=plan)
    pooled = exact_pooled_ip(instance, Limits(seconds=seconds), settings).bound
    lower = max(b for b in (lp.bound if lp else None, pooled, 1) if b is not None)
    begin = time.perf_counter()
    patterns = pattern_bound(instance, lower, plan, Limits(seconds=seconds))
    return {
        "instance": instance.name, "plan": plan, "cpsat": whole.bound,
        "lp": None if lp is None else lp.bound, "pooled": pooled, "patterns": patterns.bound,
        "ended": patterns.ended, "rounds": patterns.rounds,
        "pattern_seconds": round(time.perf_counter() - begin, 2),
    }  # fmt: skip


def main() -> None:
    """Write all rows to ``results/DATE.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    today = datetime.date.today().isoformat()
    output = args.output or HERE / "results" / f"{today}.json"
    rows = []
    for options in (1, 2, 3):
        for seed in range(4):
            rows.append(measure(few_shards(seed, options), args.seconds))
            print(json.dumps(rows[-1]), flush=True)
    document = {
        "date": today, "machine": f"1 core, {platform.machine()}", "seconds": args.seconds,
        "load_before": load,
        "rows": rows,
    }  # fmt: skip
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
