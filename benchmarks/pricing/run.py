"""How long pricing and compiling take: wall and CPU seconds, options, memory.

    python benchmarks/pricing/run.py [--repeat 3] [--largest] [--against REV] [--out FILE.json]

Each case runs in a fresh process, so that nothing cached by an earlier one helps it. With
``--against`` each run is followed by one of another state of the repository, by its own script.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = [
    ("torchrec", 1000, 16),
    ("dynamicemb", 1000, 1),
    ("dynamicemb", 1000, 16),
    ("mixed", 1000, 16),
    ("torchrec", 100, 2),
]
LARGEST = ("torchrec", 5000, 128)


def measure(kind: str, tables: int, machines: int) -> dict[str, object]:
    """Price and compile one generated model on machines of eight H100."""
    from milp_planner.inputs import Cluster
    from milp_planner.plans.compile import compile_instance
    from milp_planner.pricing import price
    from scenarios.generator import generate

    model = generate(tables, 0, kind)
    model = model.model_copy(
        update={"workload": model.workload.model_copy(update={"fusion": "free"})}
    )
    cluster = Cluster.from_dict(
        {
            "name": "h100", "machines": machines, "ranks_per_machine": 8, "hbm": "80GiB",
            "ddr": "2TB", "profile": "h100",
            "interconnect": {"intra_machine": "450GB/s", "inter_machine": "50GB/s"},
        }
    )  # fmt: skip
    wall, cpu = time.perf_counter(), time.process_time()
    options = price(model, cluster)
    priced = time.perf_counter() - wall, time.process_time() - cpu
    wall, cpu = time.perf_counter(), time.process_time()
    compile_instance(options)
    compiled = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "kind": kind,
        "tables": tables,
        "ranks": 8 * machines,
        "options": len(options),
        "entries": len(options.entries.rows),
        "price_seconds": round(priced[0], 3),
        "price_cpu_seconds": round(priced[1], 3),
        "compile_seconds": round(compiled[0], 3),
        "compile_cpu_seconds": round(compiled[1], 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def run_case(case: tuple[str, int, int], repeat: int, folders: list[Path]) -> dict[str, object]:
    """The fastest of several fresh processes, by CPU time of pricing, and of another state."""
    found: list[list[dict[str, object]]] = [[] for _ in folders]
    for _ in range(repeat):
        for folder, rows in zip(folders, found, strict=True):
            rows.append(_once(case, folder))
    here, *other = (min(rows, key=lambda row: row["price_cpu_seconds"]) for rows in found)
    if other:
        before = other[0]["price_cpu_seconds"]
        here |= {"before_cpu_seconds": before,
                 "ratio": round(here["price_cpu_seconds"] / before, 3)}  # fmt: skip
    return here


def _once(case: tuple[str, int, int], folder: Path) -> dict[str, object]:
    command = [sys.executable, str(folder / "benchmarks/pricing/run.py"), "--case",
               json.dumps(case)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


@contextmanager
def state(revision: str | None) -> Iterator[list[Path]]:
    """The folder of another state of the repository, checked out for as long as it is needed."""
    if revision is None:
        yield []
        return
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--detach", str(at), revision],
                       cwd=ROOT, check=True, capture_output=True)  # fmt: skip
        try:
            yield [at]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(at)], cwd=ROOT, check=True)


def main() -> None:
    """Run all cases and store them with the machine they ran on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--largest", action="store_true", help="5,000 tables on 1,024 ranks too")
    parser.add_argument("--against", metavar="REV", help="a commit to run in turns with this state")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(*json.loads(arguments.case))))
        return
    cases = [*CASES, LARGEST] if arguments.largest else CASES
    with state(arguments.against) as other:
        rows = [run_case(case, arguments.repeat, [ROOT, *other]) for case in cases]
    result = {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "against": arguments.against,
        "rows": rows,
    }
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
