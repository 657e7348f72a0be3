"""The same question twice: ``python -m benchmarks.cache.run [-o FILE]``.

A process with an empty cache solves every case; another process asks the same twice more, so that
its first answer is a fresh start's (with pricing, without Python's own start) and its second a
running program's. All answers must be the same bytes and verified; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from formulations import Settings
from formulations.result.outcome import standing
from milp_planner import plan, verify
from milp_planner.features.plan.cache import PlanCache
from milp_planner.files import write_json
from scenarios import catalog

#: Model, cluster, and the certified gap that is asked for.
CASES = (
    ("kuairand-27k", "1xa10", 0.005),
    ("dlrmv4-yambda5b", "8xmi350x", 0.05),
    ("distemb-jumbo", "16x8xa100", 0.2),
    ("generated:tables=1000", "16x8xmi350x", 0.1),
    ("torchrec-production", "12x8xtorchrec-default", 0.4),
)


def main() -> int:
    """Run the cases, report and judge them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--ask", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(ask(*arguments.ask, arguments.time_limit)))
        return 0
    cases = [case(*each, arguments.time_limit) for each in CASES]
    result = {
        "date": datetime.date.today().isoformat(), "cores": os.cpu_count(),
        "python": platform.python_version(), "time_limit": arguments.time_limit, "cases": cases,
    }  # fmt: skip
    if arguments.output:
        write_json(arguments.output, result)
    return 0 if all(each["right"] for each in cases) else 1


def case(model: str, cluster: str, gap: float, limit: float) -> dict[str, Any]:
    """One question: solved, answered in a fresh process, answered again there."""
    with tempfile.TemporaryDirectory() as folder:
        (first,) = _asked(model, cluster, gap, folder, 1, limit)
        fresh, again = _asked(model, cluster, gap, folder, 2, limit)
    found = {
        "model": model, "cluster": cluster, "gap": gap, "options": first["options"],
        "standing": first["standing"], "solved_seconds": first["seconds"],
        "fresh_seconds": fresh["seconds"], "again_seconds": again["seconds"],
        "times_faster": round(first["seconds"] / fresh["seconds"], 1),
        "right": not first["cached"] and fresh["cached"] and again["cached"]
        and len({each["plan"] for each in (first, fresh, again)}) == 1 and fresh["verified"],
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    return found


def _asked(
    model: str, cluster: str, gap: float, folder: str, times: int, limit: float
) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.cache.run", "--time-limit", str(limit), "--ask",
               model, cluster, str(gap), folder, str(times)]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def ask(
    model: str, cluster: str, gap: str, folder: str, times: str, limit: float
) -> list[dict[str, Any]]:
    """Answers to one question, one after another in this process."""
    inputs = catalog.find_model(model), catalog.find_cluster(cluster)
    cache, found = PlanCache(folder), []
    for _ in range(int(times)):
        start = time.perf_counter()
        best = plan(*inputs, settings=Settings(time_limit=limit), gap=float(gap), cache=cache)
        seconds = time.perf_counter() - start
        found.append({"seconds": round(seconds, 3), "cached": cache.answered, "best": best})
    with tempfile.TemporaryDirectory() as there:
        for each in found:
            best = each.pop("best")
            written = best.save(Path(there) / "plan.json").read_bytes()
            each["plan"] = hashlib.sha256(written).hexdigest()
            each["options"] = best.instance.num_options
            each["standing"] = standing(best.outcome)
        found[0]["verified"] = verify(best).ok
    return found


if __name__ == "__main__":
    sys.exit(main())
