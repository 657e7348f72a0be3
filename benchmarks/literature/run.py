"""Solve published MMKP and GAP instances: ``python benchmarks/literature/run.py FOLDER``.

FOLDER holds ``mmkp/*.json`` and ``gap/*.json`` (layouts: benchmarks/literature/convert.py). One
JSON line per instance and formulation is appended to ``results/results.jsonl``; what is there is
skipped. Then ``results/table.md`` is written.
"""

import argparse
import json
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.literature.convert import names_in, read
from formulations import Settings, solve

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "results.jsonl"


def main() -> None:
    """Read the arguments, solve what is missing, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--formulations", nargs="+", default=["cpsat", "mip"])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--only", default="", help="instances whose name contains this")
    args = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["instance"], r["formulation"], r["time_limit"]) for r in rows()}
    for file in sorted([*args.folder.glob("gap/*.json"), *args.folder.glob("mmkp/*.json")]):
        for name in names_in(file):
            for formulation in args.formulations:
                if args.only in name and (name, formulation, args.time_limit) not in done:
                    _append(_solve(file, name, formulation, args.time_limit))
    (HERE / "results" / "table.md").write_text(table())


def rows() -> list[dict[str, Any]]:
    """Everything measured so far."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def _append(row: dict[str, Any]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row["instance"], row["formulation"], row["objective"], row["status"], file=sys.stderr)


def _solve(file: Path, name: str, formulation: str, time_limit: float) -> dict[str, Any]:
    instance = read(f"{file}#{name}")
    asked = Settings(time_limit=time_limit, workers=2, polish=False, certificate=False)
    outcome = solve(instance, formulation, asked)
    source = outcome.bound_source
    return {
        "instance": name,
        "formulation": formulation,
        "published": instance.reference[0]["objective"],
        "kind": instance.reference[0]["planner"],
        "objective": outcome.objective,
        "bound": outcome.bound,
        "bound_exact": None if source is None else source.exact,
        "status": str(outcome.status),
        "seconds": round(outcome.seconds, 2),
        "time_limit": time_limit,
        "workers": 2,
        "measured": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), "ortools": version("ortools"),
                     "highspy": version("highspy")},
    }  # fmt: skip


def table() -> str:
    """The best row of every instance and formulation as a Markdown table."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows():
        key = row["instance"], row["formulation"]
        if key not in best or _rank(row) < _rank(best[key]):
            best[key] = row
    lines = [
        "| instance | published | formulation | objective | bound | status | seconds | measured |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, formulation), row in best.items():
        published = f"{row['published']}" + ("" if "optimum" in row["kind"] else " (best known)")
        lines.append(
            f"| {name} | {published} | {formulation} | {row['objective']} | {row['bound']} | "
            f"{row['status']} | {row['seconds']} | {row['measured']} |"
        )
    return "\n".join(lines) + "\n"


def _rank(row: dict[str, Any]) -> tuple[bool, float, float]:
    objective = float("inf") if row["objective"] is None else row["objective"]
    return row["status"] != "optimal", objective, row["seconds"]


if __name__ == "__main__":
    main()
