"""What the ledger costs a solve: this version against an older one on the same questions.

``python benchmarks/ledger-cost/run.py --before FOLDER --out RESULT.json`` runs every scenario with
both, in turn, each in a process of its own; FOLDER is the other version's tree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCENARIOS = (
    ("dlrmv4-yambda5b", "8xmi350x"),
    ("dlrmv4-yambda5b", "8xb200-tight"),
    *((f"generated:tables=1000,seed={seed}", "16x8xh100") for seed in range(3)),
)


def run(tree: Path, model: str, cluster: str, seconds: float, seed: int) -> dict[str, Any]:
    """One scenario with the version of a tree.

    Raises
    ------
    RuntimeError
        When it fails, with what it printed.
    """
    command = [sys.executable, str(HERE / "one.py"), model, cluster, str(seconds), str(seed)]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True,
        text=True, timeout=10 * seconds + 300, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{tree}: {model} on {cluster}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ratio(entry: dict[str, Any], name: str) -> float | None:
    """A figure of this version over the older version's; None where either has none."""
    now, before = entry["now"][name], entry["before"][name]
    return now / before if now is not None and before else None


def main() -> None:
    """Run all, print a table, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    entries = []
    print("model, cluster, seed: memory rows now / before; pricing; to 1%; whole solve (ratios)")
    for model, cluster in SCENARIOS:
        for seed in range(given.seeds):
            sides = {
                side: run(tree, model, cluster, given.time_limit, seed)
                for side, tree in (("now", ROOT), ("before", given.before.resolve()))
            }
            entry = {"model": model, "cluster": cluster, "seed": seed, **sides}
            entries.append(entry)
            rows = f"{sides['now']['capacities']} / {sides['before']['capacities']}"
            told = [
                "none" if each is None else f"{each:.2f}"
                for each in (
                    ratio(entry, name)
                    for name in ("pricing_seconds", "seconds_to_1_percent", "seconds")
                )
            ]
            print(f"{model}, {cluster}, {seed}: {rows}; {'; '.join(told)}", flush=True)
    for name in ("pricing_seconds", "seconds_to_1_percent", "seconds"):
        known = [each for each in (ratio(entry, name) for entry in entries) if each]
        if known:
            print(
                f"{name}: {geometric_mean(known):.2f} times in the geometric mean of {len(known)}"
            )
    document = {"date": time.strftime("%Y-%m-%d"), "time_limit": given.time_limit, "runs": entries}
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
