"""Whether rank patterns lift the bounds that benchmarks/torchrec-gap left open.

    python benchmarks/rank-patterns/torchrec.py FOLDER [--seconds 60] [-o FILE]

FOLDER holds the TorchRec instances. Plans and bounds are those of the newest torchrec-gap result;
options that a plan below the best cannot use by price are left out first.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from formulations import Instance, read_instance
from formulations.aggregate.cpsat import Limits
from formulations.bounds.own import own_cost
from formulations.bounds.patterns import pattern_bound, worth_trying
from formulations.certify import best_symmetric_lp
from formulations.presolve import presolve
from formulations.search.filter import by_price

HERE = Path(__file__).resolve().parent
GAPS = HERE.parent / "torchrec-gap" / "results"


def measure(instance: Instance, plan: int, bound: int, seconds: float) -> dict[str, Any]:
    """One instance, as a row."""
    keep = presolve(instance).kept & (own_cost(instance) < plan)
    lp = best_symmetric_lp(instance, plan)
    if lp is not None:
        keep = by_price(instance, lp.certificate, keep, plan)
    begin = time.perf_counter()
    found = pattern_bound(instance, bound, plan, Limits(seconds=seconds), keep)
    return {
        "options": int(keep.sum()), "plan": plan, "bound": bound, "patterns": found.bound,
        "ended": found.ended, "rounds": found.rounds, "worth_trying": worth_trying(instance, keep),
        "pattern_seconds": round(time.perf_counter() - begin, 1),
    }  # fmt: skip


def main() -> None:
    """Write one row an open instance to ``results/torchrec-DATE.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", help="names of instances")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    today = datetime.date.today().isoformat()
    output = args.output or HERE / "results" / f"torchrec-{today}.json"
    document: dict[str, Any] = {
        "date": today, "machine": f"1 core, {platform.machine()}", "seconds": args.seconds,
        "load_before": load,
        "rows": [],
    }  # fmt: skip
    for row in json.loads(max(GAPS.glob("*.json")).read_text())["rows"]:
        name = row["instance"]
        if not row["gap"] or row["gap"] <= 1e-6 or (args.only and name not in args.only):
            continue
        path = next(p for p in args.folder.glob("*.json.gz") if name in p.name)
        found = measure(read_instance(path), row["objective"], row["bound"], args.seconds)
        document["rows"].append({"instance": name, **found})
        print(json.dumps(document["rows"][-1]), flush=True)
        output.parent.mkdir(exist_ok=True)
        output.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
