"""``dp-vs-exact`` killed hard three times at random and resumed, beside undisturbed runs.

``python benchmarks/suites/kills.py OUT [--workers 2] [--seed 0] [--ray]`` runs in OUT and writes
kills.json beside this file: whether every proved objective agrees, and the wall-clock seconds of
whole runs with one and with two processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scenarios.batch.store import FILE, latest

RESULT = Path(__file__).with_name("kills.json")
SUITE = "dp-vs-exact"
COMMAND = [sys.executable, "-m", "milp_planner.cli.main", "batch", SUITE, "-o"]


def main() -> None:
    """Run everything and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    seconds = {str(n): _whole(given.out / f"whole-{n}", n) for n in (1, 2)}
    killed = _killed(given.out / "killed", given.workers, random.Random(given.seed))
    _whole(given.out / "killed", given.workers)
    others = ["killed"]
    if given.ray:
        _whole(given.out / "ray", given.workers, "--engine", "ray")
        others.append("ray")
    reference = _proved(given.out / "whole-2")
    found: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "suite": SUITE,
        "scenarios": len(latest(given.out / "whole-2")),
        "proved": len(reference),
        "killed_after": killed,
        "same_proved_objectives": {n: _proved(given.out / n) == reference for n in others},
        "seconds_by_processes": seconds,
        "speed_up": seconds["1"] / seconds["2"],
        "load_average_before": load,
        "cores": os.cpu_count(),
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _whole(output: Path, workers: int, *more: str) -> float:
    start = time.perf_counter()
    command = [*COMMAND, str(output), "--workers", str(workers), *more]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return round(time.perf_counter() - start, 1)


def _killed(output: Path, workers: int, draw: random.Random) -> list[int]:
    """Kill (no handler can run) at three random numbers of results; return how many were there."""
    there = []
    for least in sorted(draw.sample(range(20, 250), 3)):
        command = [*COMMAND, str(output), "--workers", str(workers)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and _lines(output) < least:
            time.sleep(0.01)
        time.sleep(0.1 * draw.random())
        process.send_signal(signal.SIGKILL)
        process.wait()
        there.append(_lines(output))
    return there


def _lines(output: Path) -> int:
    path = output / FILE
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def _proved(output: Path) -> dict[str, int]:
    records = latest(output).items()
    return {key: r["objective"] for key, r in records if r["status"] == "optimal"}


if __name__ == "__main__":
    main()
