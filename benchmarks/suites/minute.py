"""Does every shipped model have a checked plan within a minute?

``python benchmarks/suites/minute.py`` runs ``milp-planner plan`` and ``milp-planner verify`` on
every pair of the suite ``catalogue``, one after the other with all cores, and writes the seconds of
both processes, from their start to their end, beside what the plan says. Run it on an otherwise
idle machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from milp_planner import read_plan  # noqa: E402
from scenarios.batch.suite import find_suite  # noqa: E402

RESULT = Path(__file__).parent / "minute.json"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=45.0, help="seconds of each solve")
    parser.add_argument("--only", nargs="*", help="models")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args()
    pairs = find_suite("catalogue")[0].pairs
    rows = list[dict[str, Any]]()
    if given.only:  # the others stay as they are stored
        stored = json.loads(given.output.read_text(encoding="utf-8"))["rows"]
        rows = [row for row in stored if row["model"] not in given.only]
    for model, cluster in ((m, c) for m, clusters in pairs.items() for c in clusters):
        if not given.only or model in given.only:
            rows.append(planned(model, cluster, given.time_limit))
            print(rows[-1], flush=True)
    found = {
        "date": datetime.date.today().isoformat(), "cores": os.cpu_count(),
        "rows": sorted(rows, key=lambda row: list(pairs).index(row["model"])),
    }  # fmt: skip
    given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def planned(model: str, cluster: str, limit: float) -> dict[str, Any]:
    """One plan, and the check of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        plan = timed("plan", model, cluster, "--time-limit", f"{limit:g}", "-o", str(path))
        check = timed("verify", str(path))
        outcome = read_plan(path).outcome if path.exists() else None
    return {
        "model": model, "cluster": cluster, "time_limit": limit,
        "load": round(os.getloadavg()[0], 1),
        "plan_seconds": plan[0], "plan_exit": plan[1],
        "verify_seconds": check[0], "verify_exit": check[1],
        "objective": outcome and outcome.objective,
        "certified_bound": outcome and outcome.certified_bound,
    }  # fmt: skip


def timed(*command: str) -> tuple[float, int]:
    """Seconds and exit code of a command of the planner."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "milp_planner", *command], capture_output=True, check=False
    )
    return round(time.perf_counter() - start, 1), done.returncode


if __name__ == "__main__":
    main()
