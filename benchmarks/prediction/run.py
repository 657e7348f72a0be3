"""Predicted against measured: step time of the micro-DLRM on this machine's CPU.

python benchmarks/prediction/run.py [--quick] [--threads N] [-o FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.prediction.model import Fitted, fit
from benchmarks.prediction.workload import WIDEST, Point, points, probe
from milp_planner.features.calibrate.machine import Sample, last_level_cache, measure, processor
from milp_planner.features.calibrate.torch_machine import keep_freed_memory

ROWS = 2_000_000


def measured(sample: Sample) -> dict[str, Any]:
    """Medians by part, and how far the two halves of the rounds are apart."""
    rest = np.array(sample.parts["mlp"]) + np.array(sample.parts["rest"])
    embedding, total = np.array(sample.parts["embedding"]), np.array(sample.seconds)
    first, second = (float(np.median(half)) for half in (total[::2], total[1::2]))
    return {
        "embedding": float(np.median(embedding)),
        "dense": float(np.median(rest)),
        "seconds": sample.median,
        "spread": sample.spread,
        "repeat": abs(first - second) / sample.median,
        "embedding_rounds": [round(float(value), 7) for value in embedding],
        "dense_rounds": [round(float(value), 7) for value in rest],
    }


def judged(point: Point, found: dict[str, Any], fitted: Fitted) -> dict[str, Any]:
    """A point's row of the result."""
    embedding, dense = fitted.predict(point)
    predicted = embedding + dense
    return {
        **point.to_dict(),
        **found,
        "predicted": predicted,
        "predicted_embedding": embedding,
        "error": predicted / found["seconds"] - 1,
        "embedding_error": embedding / found["embedding"] - 1,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Error distribution of the held-out points beside the machine's own spread."""
    chosen = [row for row in rows if row["held_out"]]
    errors = np.abs([row["error"] for row in chosen])
    embedding = np.abs([row["embedding_error"] for row in chosen])
    repeat = np.array([row["repeat"] for row in chosen])
    spread = np.array([row["spread"] for row in chosen])
    return {
        "points": len(chosen),
        **{f"error_{q}": float(np.percentile(errors, q)) for q in (50, 90, 100)},
        **{f"embedding_error_{q}": float(np.percentile(embedding, q)) for q in (50, 90, 100)},
        **{f"repeat_{q}": float(np.percentile(repeat, q)) for q in (50, 90)},
        **{f"spread_{q}": float(np.percentile(spread, q)) for q in (50, 90)},
    }


def main() -> None:
    """Measure both sets interleaved, fit one, predict the other, store everything."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points and rounds")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    counts, rounds = ((36, 30), 9) if arguments.quick else ((60, 60), 20)
    chosen = [*points(counts[0], False), *points(counts[1], True)]
    storage = torch.full((ROWS * WIDEST,), 0.01)
    probes = [probe(point, storage) for point in chosen]
    total, done = len(probes) * (rounds + 1), 0

    def step(_name: str) -> None:
        nonlocal done
        done += 1
        if done % 20 == 0 and sys.stderr.isatty():
            print(f"\r{done}/{total} ", end="", file=sys.stderr, flush=True)

    samples = measure(probes, rounds, time.perf_counter, on_step=step)
    found = {point: measured(samples[point.name]) for point in chosen}
    known = [point for point in chosen if not point.held_out]
    fitted = fit(
        known,
        np.array([found[p]["embedding"] for p in known]),
        np.array([found[p]["dense"] for p in known]),
    )
    rows = [judged(point, found[point], fitted) for point in chosen]
    result = {
        "date": date.today().isoformat(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "last_level_cache": last_level_cache(),
        "torch": torch.__version__,
        "load_average": os.getloadavg()[0],
        "rounds": rounds,
        "fitted": {
            "hbm": fitted.profile.hbm, "host_link": fitted.profile.host_link,
            "launch_seconds": fitted.profile.kernel.launch_seconds,
            "cache_bytes": fitted.cache_bytes, "row_bytes": fitted.row_bytes,
            "write": float(fitted.write),
            "dense": list(map(float, fitted.dense)),
        },
        "summary": summary(rows),
        "points": rows,
    }  # fmt: skip
    print(json.dumps({"fitted": result["fitted"], "summary": result["summary"]}, indent=1))
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
