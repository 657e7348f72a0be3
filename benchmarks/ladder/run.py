"""The ladder to scale: gap and memory over time, and how the time to a 1% gap grows.

    python benchmarks/ladder/run.py           1,000 × 128 and 5,000 × 1,024, three formulations
    python benchmarks/ladder/run.py --growth  time to a 1% gap, 100 … 5,000 tables, 8 … 1,024 ranks

Each run is a process of its own with a cap on resident memory; running out of memory or time is a
result. Rows go to ``results/DATE.json`` as they come; a second call skips what is there, except
what was measured beside other work.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

from curves import busy
from watch import Watched, watch

from formulations.settings import available_cores
from milp_planner.features.calibrate.machine import processor

HERE = Path(__file__).resolve().parent
#: (size, formulation, seconds)
COMPARED = [
    ("1000x128", "auto", 90), ("1000x128", "cpsat", 90), ("1000x128", "mip", 90),
    ("5000x1024", "auto", 180), ("5000x1024", "cpsat", 90), ("5000x1024", "mip", 90),
]  # fmt: skip
GROWTH = [
    ("100x8", 30), ("300x8", 30), ("1000x8", 30), ("300x32", 30), ("1000x32", 30),
    ("3000x32", 60), ("1000x128", 60), ("3000x128", 60), ("5000x128", 60), ("3000x512", 90),
    ("5000x1024", 180),
]  # fmt: skip
#: Growth runs stop at this gap.
TARGET = 0.01
#: Seconds past its limit after which a run is killed: building and reading are not limited.
GRACE = 60


def run(size: str, formulation: str, seconds: float, target: float, args: Any) -> dict[str, Any]:
    """One run, as a row."""
    command = [
        sys.executable, str(HERE / "one.py"), size, formulation, str(seconds), str(args.workers),
        str(target),
    ]  # fmt: skip
    load = round(os.getloadavg()[0], 1)
    found = watch(command, int(args.memory * 1024), seconds + GRACE)
    tables, ranks = (int(part) for part in size.split("x"))
    said = [json.loads(line) for line in found.lines if line.startswith("{")]
    row: dict[str, Any] = {
        "kind": "compared" if target == 0 else "growth",
        "size": size, "tables": tables, "ranks": ranks, "formulation": formulation,
        "time_limit": seconds, "memory_cap_gib": args.memory, "load_before": load,
        "objective": None, "bound": None, "gap": None,
        "ended": found.ended, "peak_mib": found.peak_mib, "memory": found.memory,
        "wall_seconds": found.seconds, "trace": [s["point"] for s in said if "point" in s],
    }  # fmt: skip
    for line in said:
        row.update({k: v for k, v in line.items() if k != "point"})
    if "status" not in row:
        row["status"] = _without_answer(found, args.memory)
        _from_trace(row)
    return row


def write(document: dict[str, Any], output: Path) -> None:
    """The result file, one row a line."""
    head = {k: v for k, v in document.items() if k != "rows"}
    rows = ",\n".join(json.dumps(row) for row in document["rows"])
    output.write_text(json.dumps(head)[:-1] + f', "rows": [\n{rows}\n]}}\n')


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["kind"], row["size"], row["formulation"]


def _without_answer(found: Watched, cap: float) -> str:
    if found.ended == "memory":
        return f"out of memory: more than {cap:g} GiB"
    if found.ended == "time":
        return f"no answer {GRACE} s past its limit"
    return f"failed with exit code {found.exit}: {found.message[:200]}"


def _from_trace(row: dict[str, Any]) -> None:
    """Best plan and bound a killed run had reported."""
    plans = [p[1] for p in row["trace"] if p[1] is not None]
    bounds = [p[2] for p in row["trace"] if p[2] is not None]
    row["objective"], row["bound"] = min(plans, default=None), max(bounds, default=None)
    if plans and bounds:
        row["gap"] = (min(plans) - max(bounds)) / max(1, abs(min(plans)))


def main() -> None:
    """Run what is missing from today's result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--sizes", nargs="*", help="only these, such as 1000x128")
    parser.add_argument("--formulations", nargs="*", help="only these")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=float, default=8.0, help="cap in GiB, resident")
    parser.add_argument("-o", "--output", type=Path, help="default: results/DATE.json")
    args = parser.parse_args()
    today = datetime.date.today().isoformat()
    output = args.output or HERE / "results" / f"{today}.json"
    document: dict[str, Any] = {
        "date": today,
        "machine": f"{available_cores()} cores, {processor()}",
        "rows": [],
    }
    if output.exists():
        document = json.loads(output.read_text())
    done = {_key(r) for r in document["rows"] if not busy(r)}
    todo = [(s, "auto", t, TARGET) for s, t in GROWTH] if args.growth else []
    todo = todo or [(s, f, t, 0.0) for s, f, t in COMPARED]
    for size, formulation, seconds, target in todo:
        key = ("growth" if args.growth else "compared", size, formulation)
        skip = (args.sizes and size not in args.sizes) or (
            args.formulations and formulation not in args.formulations
        )
        if key in done or skip:
            continue
        row = run(size, formulation, seconds, target, args)
        document["rows"] = [r for r in document["rows"] if _key(r) != key] + [row]
        output.parent.mkdir(exist_ok=True)
        write(document, output)
        print(*key[1:], row["status"], row["gap"], f"{row['peak_mib']} MiB", flush=True)


if __name__ == "__main__":
    main()
