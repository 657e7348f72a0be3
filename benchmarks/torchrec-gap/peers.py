"""Let Meta's Rebalancer place the shards of options that ``auto`` chose, and judge its placement.

    python benchmarks/torchrec-gap/peers.py FOLDER OUTPUT --python PYTHON [--only PART …]
        [--settings NAME …] [--seconds S] [--options S] [--seed N]

PYTHON has ``rebalancer==1.0.4`` (see README.md). One row per instance and setting goes to OUTPUT as
soon as it is known; a second call skips what is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from formulations import Instance, Outcome, Placement, Settings, check, read_instance, solve
from formulations.result.outcome_file import outcome_to_dict

HERE = Path(__file__).resolve().parent


def name_of(path: Path) -> str:
    """The instance's name in tables."""
    return path.name.removesuffix(".gz").removesuffix(".json").removeprefix("torchrec_")


def placement_of(instance: Instance, tables: dict[str, Any]) -> Placement:
    """The Placement in a document's ``tables``."""
    chosen = [tables[name] for name in instance.table_names]
    options = [instance.option_index(t, entry["option"]) for t, entry in enumerate(chosen)]
    ranks = [[np.asarray(b, dtype=np.int64) for b in entry["ranks"]] for entry in chosen]
    return Placement(np.asarray(options, dtype=np.int64), ranks)


def row(path: Path, instance: Instance, plan: Outcome, command: list[str]) -> dict[str, object]:
    """Run the peer on the options of a plan; its objective is None where ``check`` refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        given, placed = Path(folder) / "plan.json", Path(folder) / "placed.json"
        given.write_text(json.dumps(outcome_to_dict(instance, plan)))
        script = [command[0], str(HERE / "rebalancer_peer.py"), str(path), str(given), str(placed)]
        done = subprocess.run([*script, *command[1:]], capture_output=True, text=True)
        found = json.loads(placed.read_text()) if done.returncode == 0 else None
    base: dict[str, object] = {
        "instance": name_of(path),
        "peer": "rebalancer",
        "options_from": plan.objective,
    }
    if found is None:
        note = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return {**base, "objective": None, "seconds": None, "note": note}
    verdict = check(instance, placement_of(instance, found["tables"]))
    return {
        **base,
        "objective": verdict.objectives["busiest_rank"] if verdict.feasible else None,
        "seconds": found["seconds"],
        "note": verdict.violations[0] if verdict.violations else "",
    }


def main() -> None:
    """Run what is missing from the output file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--python", required=True, help="a Python 3.12 with rebalancer")
    parser.add_argument("--only", nargs="*", default=[], help="parts of instance names")
    parser.add_argument("--settings", nargs="*", default=["all"])
    parser.add_argument("--seconds", type=float, default=60.0, help="Rebalancer's time")
    parser.add_argument("--options", type=float, default=20.0, help="auto's time to choose options")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = json.loads(args.output.read_text()) if args.output.exists() else []
    known = {(r["instance"], r["setting"], r["seed"]) for r in rows}
    for path in sorted(p for p in args.folder.iterdir() if p.name.endswith((".json", ".json.gz"))):
        name = name_of(path)
        todo = [s for s in args.settings if (name, s, args.seed) not in known]
        if not todo or (args.only and not any(part in name for part in args.only)):
            continue
        instance = read_instance(path)
        plan = solve(instance, "auto", Settings(time_limit=args.options, seed=args.seed))
        if plan.placement is None:
            print(f"{name}: auto found no plan", flush=True)
            continue
        for setting in todo:
            options = ["--setting", setting, "--seconds", args.seconds, "--seed", args.seed]
            found = row(path, instance, plan, [args.python, *map(str, options)])
            rows.append({**found, "setting": setting, "seed": args.seed})
            args.output.write_text(json.dumps(rows, indent=1))
            print(f"{name} {setting}: {found['objective']} {found['note']}", flush=True)


if __name__ == "__main__":
    main()
