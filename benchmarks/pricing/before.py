"""HYBRID or CACHING before and after the law of the tiers: a table of docs/suites/results.md.

    python benchmarks/pricing/before.py [--against REV]

Plans kuairand-27k on 1xa10 at DDRs of the suite ``modes``, in this state of the repository and, in
a process of its own, in another, and prices the other state's choices in this one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from benchmarks.pricing.run import state

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "suites" / "results.md"
BEFORE = "55004ff"
DDR = ("440GiB", "60GiB", "52GiB", "48GiB")
TABLES = ("video_id", "user_id")


def inputs(ddr: str) -> tuple[Any, Any]:
    """Model and cluster, as the suite varies them."""
    from milp_planner.inputs import Cluster, Model
    from scenarios.catalog import find_cluster, find_model

    model, cluster = find_model("kuairand-27k").to_dict(), find_cluster("1xa10").to_dict()
    model["workload"]["cache_ratios"] = "twentieths"
    for machine in cluster["machines"]:
        machine["ddr"] = ddr
    return Model.from_dict(model), Cluster.from_dict(cluster)


def solved() -> dict[str, Any]:
    """Step time and chosen options at every DDR."""
    from milp_planner import plan

    found = {}
    for ddr in DDR:
        best = plan(*inputs(ddr), time_limit=20)
        options = {table.name: table.option for table in best.tables}
        found[ddr] = {"ms": best.objective_ms, "optimal": best.status, "options": options}
    return found


def here(options: dict[str, str], ddr: str) -> float:
    """Step time of the options on the one rank, at this state's prices, ms."""
    from milp_planner.pricing import price

    priced = price(*inputs(ddr))
    total = 0
    for index, table in enumerate(priced.model.tables):
        option = priced.index(index, options[table.name])
        total += int(priced.entries.cost[priced.entries.first[option]].sum())
    return total / 1e9


def said(options: dict[str, str]) -> str:
    """Modes and ratios of the two large tables."""
    names = [options[t].removeprefix("row_wise/").removesuffix("/beside_caching") for t in TABLES]
    return ", ".join(name.removesuffix("/roundrobin").replace("/", " ") for name in names)


def elsewhere(folder: Path) -> dict[str, Any]:
    """What another state of the repository chooses."""
    command = [sys.executable, str(Path(__file__).resolve()), "--solve"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=folder
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Solve in both states and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REV", default=BEFORE)
    parser.add_argument("--solve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.solve:
        sys.path.insert(0, os.environ["PYTHONPATH"])
        print(json.dumps(solved()))
        return 0
    with state(given.against) as (folder,):
        before = elsewhere(folder)
    after = solved()
    lines = [
        f"| DDR | {given.against}: video_id, user_id | step time as priced there | by the law "
        "| now: video_id, user_id | by the law |",
        "|---|---|---|---|---|---|",
    ]
    for ddr in DDR:
        old, new = before[ddr], after[ddr]
        lines.append(
            f"| {ddr} | {said(old['options'])} | {old['ms']:.2f} ms "
            f"| {here(old['options'], ddr):.2f} ms | {said(new['options'])} | {new['ms']:.2f} ms |"
        )
    return update(PAGE, {"before": "\n".join(lines)})


if __name__ == "__main__":
    sys.exit(main())
