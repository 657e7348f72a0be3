"""Kills at random moments, time limits from 0.01 s to 5 s, and Ctrl-C: what happened, counted.

Usage: python benchmarks/robustness/stops.py [--kills 40] [--interrupts 5] [-o FILE.json]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from formulations import Instance, Settings, solve  # noqa: E402
from milp_planner.plans.compile import compile_for  # noqa: E402
from milp_planner.plans.plan_file import read_plan  # noqa: E402
from scenarios.catalog import find_cluster, find_model  # noqa: E402
from tests.robustness.test_stops import ARGUMENTS, judge, start  # noqa: E402

LIMITS = (0.01, 0.05, 0.2, 1.0, 5.0)
FORMULATIONS = ("auto", "cpsat", "mip", "scale", "dp", "greedy", "uniform", "distemb")
CASES = (
    ("kuairand-27k", "8xh100"),
    ("mlperf-dlrm-dcnv2", "4x8xh100"),
    ("dlrmv4-yambda5b", "1xa10"),
)


def kills(folder: Path, count: int) -> dict[str, object]:
    """Kill ``plan -o`` at moments drawn evenly over its whole run."""
    target = folder / "plan.json"
    begun = time.monotonic()
    start(folder, *ARGUMENTS, "-o", str(target)).wait()
    whole = time.monotonic() - begun
    draw, found = random.Random(0), Counter[str]()
    for _ in range(count):
        old = target.read_bytes()
        running = start(folder, *ARGUMENTS, "-o", str(target))
        time.sleep(draw.uniform(0.02, 1.1) * whole)
        running.kill()
        running.wait()
        if target.read_bytes() == old:
            found["old"] += 1
        else:
            found["new" if read_plan(target).outcome.placement is not None else "torn"] += 1
    left = len(list(folder.glob(".plan.json.*")))
    return {"kills": count, "files": dict(found), "temporary_files_left": left}


def limits() -> dict[str, object]:
    """Every formulation under every limit; a status that is not true raises."""
    found, late = Counter[str](), 0.0
    for model, cluster in CASES:
        instance = _instance(model, cluster)
        for formulation in FORMULATIONS:
            for limit in LIMITS:
                settings = Settings(time_limit=limit, workers=1)
                try:
                    outcome = solve(instance, formulation, settings)
                except ValueError as error:  # the instance's shape is not this formulation's
                    found[f"refused: {type(error).__name__}"] += 1
                    continue
                judge(instance, outcome, limit)
                found[f"{outcome.status.value}, {outcome.stopped_by.value}"] += 1
                late = max(late, outcome.seconds - limit)
    return {"solves": sum(found.values()), "untrue": 0, "statuses": dict(found),
            "latest_seconds_after_the_limit": round(late, 2)}  # fmt: skip


def interrupts(folder: Path, count: int) -> dict[str, object]:
    """Ctrl-C at random moments of a long search."""
    arguments = ("plan", "generated:tables=200,seed=1", "4x8xh100", "--workers", "1",
                 "--time-limit", "300", "-f", "scale")  # fmt: skip
    draw, codes, kept = random.Random(1), Counter[str](), Counter[str]()
    slowest = 0.0
    for _ in range(count):
        (folder / "plan.json").unlink(missing_ok=True)
        running = start(folder, *arguments)
        time.sleep(draw.uniform(1, 25))
        os.kill(running.pid, signal.SIGINT)
        begun = time.monotonic()
        running.communicate()
        slowest = max(slowest, time.monotonic() - begun)
        codes[str(running.returncode)] += 1
        written = (folder / "plan.json").exists()  # not before the search has begun
        kept[read_plan(folder / "plan.json").outcome.status.value if written else "none yet"] += 1
    return {"interrupts": count, "exit_codes": dict(codes), "plans_kept": dict(kept),
            "slowest_seconds_to_stop": round(slowest, 1)}  # fmt: skip


def _instance(model: str, cluster: str) -> Instance:
    return compile_for(find_model(model), find_cluster(cluster), "step_time").instance


def main() -> None:
    """Run and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--interrupts", type=int, default=5)
    parser.add_argument("-o", type=Path, default=None)
    given = parser.parse_args()
    result: dict[str, object] = {"date": datetime.now(UTC).isoformat(timespec="seconds")}
    with tempfile.TemporaryDirectory() as folder:
        result["kill"] = kills(Path(folder), given.kills)
        print(result["kill"], flush=True)
        result["interrupt"] = interrupts(Path(folder), given.interrupts)
        print(result["interrupt"], flush=True)
    result["time_limit"] = limits()
    print(json.dumps(result, indent=1))
    if given.o is not None:
        given.o.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
