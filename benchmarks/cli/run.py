"""How long --help takes: wall clock and processor time of fresh processes, over several runs.

``python benchmarks/cli/run.py`` writes ``results/DATE.json`` and prints a Markdown table. The
goal is 0.3 s on a machine with nothing else to do.
"""

from __future__ import annotations

import datetime
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from milp_planner.cli.main import COMMANDS
from milp_planner.files import write_json

HERE = Path(__file__).parent
RUNS = 7


def main() -> None:
    """Measure the program and every command, store and print."""
    rows = [measure([]), *(measure([command.name]) for command in COMMANDS)]
    today = datetime.date.today().isoformat()
    result = {"date": today, "load": os.getloadavg()[0], "runs": RUNS, "rows": rows}
    write_json(HERE / "results" / f"{today}.json", result)
    print(f"{today}, {RUNS} runs each, load {result['load']:.1f}\n")
    print("| command | median (s) | least (s) | processor (s) |\n|---|---|---|---|")
    for row in rows:
        figures = " | ".join(f"{row[key]:.2f}" for key in ("median", "least", "processor"))
        print(f"| `{row['command']}` | {figures} |")


def measure(arguments: list[str]) -> dict[str, object]:
    """Seconds from start to end of ``milp-planner ARGUMENTS --help``."""
    command = [str(Path(sys.executable).with_name("milp-planner")), *arguments, "--help"]
    before = _processor()
    seconds = [_once(command) for _ in range(RUNS)]
    processor = (_processor() - before) / RUNS
    return {
        "command": " ".join(["milp-planner", *arguments, "--help"]),
        "median": statistics.median(seconds),
        "least": min(seconds),
        "processor": processor,
    }


def _processor() -> float:
    """Processor seconds of all processes started so far; unlike the clock, free of others' load."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _once(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
