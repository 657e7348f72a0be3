"""Speed and memory of the vectorised DP: ``python benchmarks/dp-speed/run.py``.

First runs the plain loop of ``loop.py`` and the DP on few tables and asserts the same answers, cell
by cell and path by path; then measures time and peak memory against bins and tables. Writes
``results/results.json`` and ``results/dp-speed.svg``.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import tracemalloc
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import loop
import numpy as np

from formulations.baselines.dp.stages import Trellis
from formulations.baselines.dp.transition import Choices, Grid, origin

HERE = Path(__file__).parent
OPTIONS = 20
MEMORY = 512 * 2**20


def main() -> None:
    """Measure everything and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, nothing written")
    args = parser.parse_args()
    against = [against_loop(5, 8, bins) for bins in ((100, 50), (200, 100), (400, 200))[: 1 if
               args.quick else 3]]  # fmt: skip
    print(json.dumps(against, indent=1))
    if args.quick:
        return
    bins = [alone(20, ranks, 1) for ranks in (1, 2, 4, 8, 16, 32)]
    tables = [alone(tables, 8, 1) for tables in (10, 20, 50, 100, 200, 500, 1000)]
    result = {
        "measured": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "options_per_table": OPTIONS,
        "against_loop": against,
        "by_bins": bins,
        "by_tables": tables,
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "results.json").write_text(json.dumps(result, indent=1) + "\n")
    draw(result, HERE / "results" / "dp-speed.svg")


def tables_of(count: int, grid: Grid, seed: int, dtype: type[np.floating]) -> list[Choices]:
    """Random tables of 20 options, (HYBRID, CACHING) × tenths, that fill about two thirds."""
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0, 1, count)
    hbm_size = weight / weight.sum() * grid.hbm * 1.3
    ddr_size = weight / weight.sum() * grid.ddr * 1.1
    ratio = np.tile(np.arange(1, 11) / 10, 2)
    host = np.concatenate([1 - np.arange(1, 11) / 10, np.ones(10)])
    result = []
    for table in range(count):
        cost = rng.uniform(1e6, 1e8) * (1.2 - 0.1 * host) * (1.1 - ratio)
        columns = (hbm_size[table] * ratio, ddr_size[table] * host, cost)
        result.append(Choices(np.arange(OPTIONS), *(c.astype(dtype) for c in columns)))
    return result


def against_loop(tables: int, seed: int, bins: tuple[int, int]) -> dict[str, Any]:
    """Both on the same few tables in float64; raises where an answer differs."""
    grid = Grid(*bins)
    choices = tables_of(tables, grid, seed, np.float64)
    rows = [list(zip(c.hbm.tolist(), c.ddr.tolist(), c.cost.tolist(), strict=True))
            for c in choices]  # fmt: skip
    slow, expected = _timed(lambda: loop.run(rows, *bins), 3)
    fast, found = _timed(lambda: _run(choices, grid), 3)
    end, paths = found
    assert [h * grid.ddr + d for (h, d), _, _ in expected] == end.cell.tolist()
    assert [state[0] for _, state, _ in expected] == end.cost.tolist()
    assert [path for _, _, path in expected] == paths.tolist()
    return {"bins": list(bins), "tables": tables, "cells": len(expected),
            "loop_seconds": slow, "seconds": fast, "times_faster": slow / fast}  # fmt: skip


def alone(tables: int, ranks: int, seed: int) -> dict[str, Any]:
    """Time and peak memory at the merged variant's bins on so many ranks, all proposals walked."""
    grid = Grid(100 * ranks, 25 * ranks)
    choices = tables_of(tables, grid, seed, np.float32)
    seconds, (end, _) = _timed(lambda: _run(choices, grid), 3 if tables * ranks < 500 else 1)
    tracemalloc.start()
    _run(choices, grid)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    row = {"tables": tables, "ranks": ranks, "bins": [grid.hbm, grid.ddr], "cells": len(end),
           "seconds": seconds, "peak_mib": peak / 2**20}  # fmt: skip
    print(row)
    return row


def _run(choices: list[Choices], grid: Grid) -> Any:
    trellis = Trellis(origin(choices[0].cost.dtype.type), choices, grid, MEMORY, lambda: False)
    ends = np.arange(len(trellis.end))
    return trellis.end, trellis.walk(ends if len(ends) < 100_000 else ends[:1000])[0]


def _timed(call: Any, times: int = 1) -> tuple[float, Any]:
    """Shortest of a few runs: other work on the machine only ever adds."""
    best, result = float("inf"), None
    for _ in range(times):
        started = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - started)
    return best, result


def draw(result: dict[str, Any], path: Path) -> None:
    """Three panels: against the loop, seconds and memory by bins, seconds and memory by tables."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dp-speed"
    from matplotlib import pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    cells = [r["bins"][0] * r["bins"][1] for r in result["against_loop"]]
    left.plot(cells, [r["loop_seconds"] for r in result["against_loop"]], "o-", label="plain loop")
    left.plot(cells, [r["seconds"] for r in result["against_loop"]], "o-", label="vectorised")
    left.set(xscale="log", yscale="log", xlabel="bins (HBM × DDR), 5 tables", ylabel="seconds")
    left.legend()
    for axes, rows, x, label in (
        (middle, result["by_bins"], lambda r: r["bins"][0] * r["bins"][1], "bins, 20 tables"),
        (right, result["by_tables"], lambda r: r["tables"], "tables, 800 × 200 bins"),
    ):
        axes.plot([x(r) for r in rows], [r["seconds"] for r in rows], "o-")
        axes.set(xscale="log", yscale="log", xlabel=label, ylabel="seconds")
        memory = axes.twinx()
        memory.plot([x(r) for r in rows], [r["peak_mib"] for r in rows], "s--", color="tab:gray")
        memory.set(yscale="log", ylabel="peak MiB (dashed)")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
