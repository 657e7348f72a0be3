"""Planning again from yesterday's plan, against a fresh solve of the changed instance.

``python -m benchmarks.drift.run --folder FOLDER`` solves each subject for a minute (yesterday's
plan), and then after every change again from yesterday's plan, with default settings (a minute).
With ``--max-moved`` it does so within limits, for a few seconds (``--again-seconds``), and with
``--only fresh`` afresh for a minute. What is in the folder is not done again, so the run can be
stopped, and done in parts (``--only``, ``--subjects``, ``--changes``). ``--output`` then sums up
the folder, and docs/replan.md shows the tables. Run it on an otherwise idle machine, or say
``--shared``.
"""

import argparse
import datetime
import json
import os
import time
from pathlib import Path
from typing import Any

from benchmarks.drift.cases import CHANGES, Subject, changed, subjects
from formulations.result.check import moved_bytes, moved_tables
from milp_planner import Plan, plan, read_plan, verify
from milp_planner.files import write_json
from milp_planner.start.mapping import start_on

RESULTS = Path(__file__).parent / "default.json"
STAGES = ("yesterday", "fresh", "again")


def main() -> None:
    """Do what is missing, then sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=("yesterday", "again"))
    parser.add_argument("--subjects", nargs="+", default=list(subjects()))
    parser.add_argument("--changes", nargs="+", default=CHANGES)
    parser.add_argument("--fresh-seconds", type=float, default=60.0)
    parser.add_argument("--again-seconds", type=float, default=60.0)
    parser.add_argument(
        "--max-moved", type=float, nargs=2,
        help="share of the bytes where tables change, and where ranks do",
    )  # fmt: skip
    parser.add_argument("--shared", action="store_true", help="other work runs beside")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in asked.subjects:
        subject = subjects()[name]
        first = asked.folder / f"{name}.plan.json"
        if "yesterday" in asked.only and not first.exists():
            made = plan(
                subject.model, subject.cluster, objective=subject.objective,
                time_limit=asked.fresh_seconds,
            )  # fmt: skip
            made.save(first)
            keep(asked, f"{name}.yesterday", measured(made))
        before = read_plan(first)
        for change in asked.changes:
            for stage in asked.only:
                path = asked.folder / f"{name}.{change}.{stage}.json"
                if stage != "yesterday" and not path.exists():
                    keep(
                        asked,
                        f"{name}.{change}.{stage}",
                        solved(asked, subject, before, change, stage),
                    )
    rows = {p.name.removesuffix(".json"): json.loads(p.read_text())
            for p in sorted(asked.folder.glob("*.json")) if ".plan." not in p.name}  # fmt: skip
    write_json(asked.output, {"date": datetime.date.today().isoformat(), "rows": rows})


def keep(asked: argparse.Namespace, name: str, row: dict[str, Any]) -> None:
    """Store and print one record, with the machine's cores and load."""
    row |= {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "shared": asked.shared}
    write_json(asked.folder / f"{name}.json", row)
    print(name, {k: v for k, v in row.items() if k != "trace"}, flush=True)


def solved(
    asked: argparse.Namespace, subject: Subject, before: Plan, change: str, stage: str
) -> dict[str, Any]:
    """One solve after a change."""
    after = changed(subject, change)
    wall, processor = time.perf_counter(), time.process_time()
    more: dict[str, Any] = {"time_limit": asked.fresh_seconds}
    if stage == "again":
        more = {
            "time_limit": asked.again_seconds, "before": before, "lost": after.lost,
        }  # fmt: skip
        if asked.max_moved:
            from milp_planner.features.moves.again import Moves

            share = asked.max_moved[not change.startswith("drift")]
            more["max_moved"] = Moves(share=share)
    found = plan(after.model, after.cluster, objective=subject.objective, **more)
    row = {
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        **measured(found),
        **moves(before, found, after.lost),
    }
    if stage == "again":
        row["verified"] = verify(found).ok
    return row


def measured(found: Plan) -> dict[str, Any]:
    """Objective, bounds and seconds of a plan's solve."""
    outcome = found.outcome
    better = [p for p in outcome.trace if p.objective is not None]
    return {
        "status": outcome.status.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "certified_bound": outcome.certified_bound,
        "solve_seconds": round(outcome.seconds, 2),
        "trace": [[round(p.seconds, 2), p.objective, p.bound, p.source] for p in better],
        "settled": outcome.detail.get("settled"),
        "before_goals": outcome.before_goals,
        "goals": [[goal.goal, goal.value, goal.bound] for goal in outcome.goals],
    }


def moves(before: Plan, found: Plan, lost: tuple[int, ...]) -> dict[str, int]:
    """Tables and bytes that move between yesterday's plan and another."""
    placement = found.outcome.placement
    if placement is None:
        return {}
    kind = found.instance.objective.value
    instance = start_on(before, found.model, found.cluster, kind, lost=lost).compiled.instance
    tables = moved_tables(instance, placement)
    held = moved_bytes(instance, placement, [now.table for now in instance.current])
    return {
        "moved_tables": len(tables),
        "moved_bytes": moved_bytes(instance, placement, tables),
        "held_bytes": held,
    }


if __name__ == "__main__":
    main()
