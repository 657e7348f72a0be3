"""Solve instances that carry another planner's plan; store and tabulate both.

``python benchmarks/embark/run.py FOLDER [--time-limit 30] [--seeds 0 1]`` writes
``results/DATE.json`` and the table of README.md.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update
from formulations import Settings, solve
from formulations.instance.file import read_instance
from formulations.settings import available_cores
from milp_planner.drawing.units import show_gap
from milp_planner.files import write_json

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Solve, store, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    files = sorted(f for f in given.folder.glob("*.json.gz") if "plans" not in f.name)
    rows = [solved(f, seed, given.time_limit) for f in files for seed in given.seeds]
    today = datetime.date.today().isoformat()
    document = {
        "date": today, "cores": available_cores(), "time_limit": given.time_limit, "rows": rows,
    }  # fmt: skip
    write_json(HERE / "results" / f"{today}.json", document)
    update(HERE / "README.md", {"results": table()}, check=False)


def solved(file: Path, seed: int, limit: float) -> dict[str, Any]:
    """One solve beside the reference of the file."""
    instance = read_instance(file)
    outcome = solve(instance, "auto", Settings(time_limit=limit, seed=seed))
    kind = instance.objective.value
    references = [int(float(str(r[kind]))) for r in instance.reference if kind in r]
    row = {
        "instance": file.name.removesuffix(".json.gz"), "ranks": instance.num_ranks, "seed": seed,
        "tables": instance.num_tables, "objective": outcome.objective, "bound": outcome.bound,
        "certified": outcome.certified_bound, "status": outcome.status.value,
        "seconds": round(outcome.seconds, 1), "reference": min(references, default=None),
    }  # fmt: skip
    print(row, flush=True)
    return row


def table() -> str:
    """What is stored, in Markdown."""
    document = stored(HERE / "results")
    lines = [
        f"Measured {document['date']} on {document['cores']} cores, {document['time_limit']:g} s.",
        "",
        "| instance | tables × ranks | seed | HugeCTR's planner | plan | certified gap | status |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in document["rows"]:
        gap = 1 - row["certified"] / row["objective"]
        lines.append(
            f"| {row['instance']} | {row['tables']} × {row['ranks']} | {row['seed']} | "
            f"{row['reference'] or 0:,} | {row['objective']:,} | {show_gap(gap)} | "
            f"{row['status']} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
