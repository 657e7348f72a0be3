"""Prove 1,000 dynamicemb-like tables × 20 options on 8–128 ranks, and write what was measured.

python benchmarks/exact-scale/run.py [--tables 1000] [--ranks 8 32 128] [--seeds 3]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

from formulations import Instance, InstanceBuilder, Settings, Where, solve
from formulations.instance.build import Block, Shard

#: Bytes a second: HBM, host memory over PCIe, and the exchange between ranks. Round figures that
#: give the options a realistic spread; no hardware is claimed.
HBM, HOST, LINK = 3.35e12, 6.4e10, 4e11
BATCH, RANKS_A_MACHINE = 65_536, 8


def instance(tables: int, ranks: int, seed: int, share: float) -> Instance:
    """Row-wise tables, each HBM_ONLY, or HYBRID or CACHING at ten cache ratios, no fusion.

    Parameters
    ----------
    share : float
        HBM a rank, as a share of what all tables need there; host memory gets the rest and a
        tenth more, so both budgets bind.
    """
    rng = np.random.default_rng(seed)
    rows = np.exp(rng.uniform(np.log(1e4), np.log(1e9), tables))
    dim = rng.choice([16, 32, 64, 128, 256], tables)
    lookups = np.exp(rng.uniform(0, np.log(100), tables)) * BATCH / ranks * dim * 4
    size = (rows / ranks).astype(np.int64) * dim * 4
    room = int(size.sum())
    machines = [
        list(range(a, min(ranks, a + RANKS_A_MACHINE))) for a in range(0, ranks, RANKS_A_MACHINE)
    ]
    builder = InstanceBuilder(
        machines,
        ["lookup", "exchange", "update"],
        [
            ("hbm", "rank", int(room * share)),
            ("ddr", "machine", int(room * (1.1 - share)) * min(ranks, RANKS_A_MACHINE)),
        ],
        "step_time",
    )
    for table in range(tables):
        builder.add_table(f"t{table}")
        skew = float(rng.uniform(0.1, 0.9))
        for name, hbm, ddr, lookup in _modes(int(size[table]), float(lookups[table]), skew):
            cost = [lookup, int(lookups[table] / LINK * 1e12), lookup * 17 // 10]
            use = {"hbm": hbm, "ddr": ddr}
            builder.add_option(name, [Block(Where.EVERY_RANK, [Shard(use, cost)])])
    return builder.build()


def _modes(size: int, traffic: float, skew: float) -> list[tuple[str, int, int, int]]:
    """(name, HBM bytes, host bytes, lookup picoseconds) of twenty options."""
    found = []
    for tenth in range(10):
        cached = size * tenth // 10
        hit = (tenth / 10) ** skew
        hybrid = traffic * (hit / HBM + (1 - hit) / HOST) * 1e12
        hit **= 0.8
        caching = traffic * (1 / HBM + 1.1 * (1 - hit) / HOST) * 1e12
        found.append((f"HYBRID/{tenth}", cached, size - cached, int(hybrid)))
        found.append((f"CACHING/{tenth}", cached, size, int(caching)))
    return [*found[:19], ("HBM_ONLY", size, 0, int(traffic / HBM * 1e12))]


def measure(case: Instance, formulation: str, limit: float) -> dict[str, object]:
    """One solve: wall and processor seconds, and what was proved."""
    wall, processor = time.perf_counter(), time.process_time()
    outcome = solve(case, formulation, Settings(time_limit=limit, workers=2, polish=False))
    return {
        "status": str(outcome.status),
        "objective": outcome.objective,
        "bound": outcome.bound,
        "gap": outcome.gap,
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "detail": outcome.detail,
    }


def main() -> None:
    """Run every case and write one dated JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.2, 0.5, 0.8])
    parser.add_argument("--formulation", default="cpsat")
    parser.add_argument("--time-limit", type=float, default=60.0)
    wanted = parser.parse_args()
    rows = []
    for ranks in wanted.ranks:
        for seed in range(wanted.seeds):
            for share in wanted.shares:
                case = instance(wanted.tables, ranks, seed, share)
                row = measure(case, wanted.formulation, wanted.time_limit)
                row = {"ranks": ranks, "seed": seed, "share": share, **row}
                row["load_average"] = round(os.getloadavg()[0], 1)
                rows.append(row)
                print(*(f"{k}={v}" for k, v in row.items()), flush=True)
    today = datetime.date.today().isoformat()
    result = {
        "date": today,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "tables": wanted.tables,
        "formulation": wanted.formulation,
        "rows": rows,
    }
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    target = folder / f"{today}-{wanted.formulation}-{wanted.tables}.json"
    target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
