"""Let Meta's Rebalancer place the shards of options that ``auto`` chose, and judge its placement.

    python benchmarks/torchrec-gap/peers.py FOLDER OUTPUT --python PYTHON [--only PART …]
        [--settings NAME …] [--seconds S] [--options S] [--seed N]

PYTHON has ``rebalancer==1.0.4`` (see benchmarks/rebalancer/README.md). One row per instance and
setting goes to OUTPUT as soon as it is known; a second call skips what is there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.rebalancer.place import placed
from formulations import Settings, read_instance, solve


def name_of(path: Path) -> str:
    """The instance's name in tables."""
    return path.name.removesuffix(".gz").removesuffix(".json").removeprefix("torchrec_")


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
            found = placed(path, instance, plan, [args.python, *map(str, options)])
            about = {"instance": name, "peer": "rebalancer", "options_from": plan.objective}
            rows.append({**about, **found, "setting": setting, "seed": args.seed})
            args.output.write_text(json.dumps(rows, indent=1))
            print(f"{name} {setting}: {found['objective']} {found['note']}", flush=True)


if __name__ == "__main__":
    main()
