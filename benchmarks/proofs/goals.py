"""What a solve certifies and what its check takes: ``auto`` for two minutes, the checker alone.

    python benchmarks/proofs/goals.py SOURCE… [--demo] [-o goals.json]

A SOURCE is an instance file, one of the literature's MMKP files (all instances in it), or a folder
of either; ``--demo`` adds the demo's two cases. Rows are stored one by one, and those already there
are skipped; the table is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from formulations import Instance, Outcome, Settings, checker, solve, write_instance
from formulations.instance.convert import names_in, read_any
from formulations.result.outcome_file import outcome_to_dict
from milp_planner import plan
from scenarios import catalog

HERE = Path(__file__).resolve().parent
MODEL, CLUSTERS = "dlrmv4-yambda5b", ("8xmi350x", "8xb200-tight")


def files(source: Path) -> list[Path]:
    """The instance files at a path."""
    return sorted(source.glob("*.json*")) if source.is_dir() else [source]


def solved(
    sources: list[Path], demo: bool, settings: Settings, done: dict[str, Any]
) -> Iterator[tuple[str, Instance, Outcome]]:
    """Name, instance and outcome of everything that is not done."""
    for file in (file for source in sources for file in files(source)):
        stem = file.name.removesuffix(".gz").removesuffix(".json")
        for name in names_in(file) or [stem]:
            if name not in done:
                instance = read_any(f"{file}#{name}" if name != stem else file)
                yield name, instance, solve(instance, "auto", settings)
    for cluster in CLUSTERS if demo else ():
        name = f"{MODEL} on {cluster}"
        if name not in done:
            found = plan(
                catalog.find_model(MODEL), catalog.find_cluster(cluster), settings=settings
            )
            yield name, found.instance, found.outcome


def checked(instance: Instance, outcome: Outcome) -> tuple[float, str, float]:
    """Seconds of the stand-alone checker in its own process, its verdict, and the outcome's MB."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "outcome.json", Path(folder) / "instance.json"]
        paths[0].write_text(json.dumps(outcome_to_dict(instance, outcome)))
        write_instance(instance, paths[1])
        start = time.monotonic()
        command = [sys.executable, checker.__file__, *map(str, paths)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds = time.monotonic() - start
        verdict = said.splitlines()[-1].removeprefix("verdict: ")
        return seconds, verdict, paths[0].stat().st_size / 1e6


def table(rows: dict[str, Any]) -> str:
    """All rows in Markdown."""
    lines = [
        "| instance | plan | verdict | solve, s | check, s | MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        lines.append(
            f"| {name} | {row['objective']} | {row['verdict']} | {row['seconds']} "
            f"| {row['check_seconds']} | {row['MB']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Solve what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "goals.json")
    asked = parser.parse_args()
    rows = json.loads(asked.output.read_text()) if asked.output.exists() else {}
    settings = Settings(time_limit=asked.seconds, workers=2)
    for name, instance, outcome in solved(asked.sources, asked.demo, settings, rows):
        seconds, verdict, size = checked(instance, outcome)
        rows[name] = {
            "objective": outcome.objective,
            "status": outcome.status.value,
            "bound": outcome.bound,
            "certified_bound": outcome.certified_bound,
            "verdict": verdict,
            "seconds": round(outcome.seconds, 1),
            "check_seconds": round(seconds, 1),
            "MB": round(size, 2),
        }
        asked.output.write_text(json.dumps(rows, indent=1) + "\n")
        print(name, verdict, file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
