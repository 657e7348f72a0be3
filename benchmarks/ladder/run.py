"""Gap and memory over time for growing instances; one subprocess per run, with a memory cap.

    python benchmarks/ladder/run.py [--sizes 1000x128 5000x1024] [--formulations scale]
                                    [--time-limit 120] [--memory 8]

Rows go to ``results/DATE.json`` as they come; a second call skips what is there. Running out of
memory or time is a result and is recorded as such. ``--growth`` runs the sizes of the growth
figure instead; ``plot.py`` draws what is there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from make import synthetic  # noqa: E402

from formulations import Settings, solve  # noqa: E402
from formulations.settings import available_cores  # noqa: E402

GROWTH = [
    "100x8", "200x16", "400x32", "1000x64", "1000x128", "2000x256", "5000x512", "5000x1024",
]  # fmt: skip


def child(size: str, formulation: str, limit: float, workers: int) -> None:
    """Solve one instance and print its row as JSON (the last line)."""
    tables, ranks = (int(part) for part in size.split("x"))
    begin = time.perf_counter()
    instance = synthetic(tables, ranks)
    built = time.perf_counter() - begin
    memory: list[tuple[float, int]] = []
    stop = threading.Event()
    watch = threading.Thread(target=_watch, args=(memory, stop, time.perf_counter()), daemon=True)
    watch.start()
    outcome = solve(instance, formulation, Settings(time_limit=limit, workers=workers))
    stop.set()
    row = {
        "size": size,
        "tables": tables,
        "ranks": ranks,
        "options": instance.num_options,
        "formulation": formulation,
        "time_limit": limit,
        "workers": workers,
        "build_seconds": round(built, 2),
        "seconds": round(outcome.seconds, 2),
        "status": outcome.status.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "certified_bound": outcome.certified_bound,
        "gap": outcome.gap,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "memory": memory,
        "trace": [[p.seconds, p.objective, p.bound, p.source] for p in outcome.trace],
    }
    print(json.dumps(row))


def _watch(memory: list[tuple[float, int]], stop: threading.Event, begin: float) -> None:
    """Resident memory (MiB) every second, where the system tells it."""
    statm = Path("/proc/self/statm")
    while not stop.wait(1.0):
        if statm.exists():
            pages = int(statm.read_text().split()[1])
            mib = pages * resource.getpagesize() // 2**20
            memory.append((round(time.perf_counter() - begin, 1), mib))


def run(size: str, formulation: str, args: argparse.Namespace) -> dict[str, object]:
    """One run in a subprocess with capped memory."""
    command = [
        sys.executable, __file__, "--child", size, formulation,
        "--time-limit", str(args.time_limit), "--workers", str(args.workers),
    ]  # fmt: skip
    cap = int(args.memory * 2**30)
    failed = {"size": size, "formulation": formulation, "memory_cap_gib": args.memory}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=3 * args.time_limit + 300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (cap, cap)),
        )
    except subprocess.TimeoutExpired:
        return {**failed, "status": "no answer in three times its limit"}
    if done.returncode != 0:
        tail = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {**failed, "status": "failed", "exit": done.returncode, "message": tail[:300]}
    found: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return {**found, "memory_cap_gib": args.memory}


def main() -> None:
    """Run what is missing from the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=2, metavar=("SIZE", "FORMULATION"))
    parser.add_argument("--sizes", nargs="*", default=["1000x128", "5000x1024"])
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--formulations", nargs="*", default=["scale"])
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=float, default=8.0, help="cap in GiB of address space")
    args = parser.parse_args()
    if args.child:
        child(*args.child, args.time_limit, args.workers)
        return
    today = datetime.date.today().isoformat()
    output = HERE / "results" / f"{today}.json"
    output.parent.mkdir(exist_ok=True)
    document = {"date": today, "machine": f"{available_cores()} cores, {platform.machine()}"}
    rows: list[dict[str, object]] = []
    if output.exists():
        rows = json.loads(output.read_text())["rows"]
    done = {(r["size"], r["formulation"]) for r in rows}
    for size in GROWTH if args.growth else args.sizes:
        for formulation in args.formulations:
            if (size, formulation) in done:
                continue
            rows.append(run(size, formulation, args))
            output.write_text(json.dumps({**document, "rows": rows}, indent=1))
            last = rows[-1]
            print(size, formulation, last["status"], last.get("gap"), last.get("peak_mib"))


if __name__ == "__main__":
    main()
