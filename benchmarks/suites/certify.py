"""Certify the bounds of stored suite runs: ``python benchmarks/suites/certify.py [--seconds 5]``.

Stored rows have plans' costs but no certificates. Each instance is compiled again (its fingerprint
must be the row's), the prover looks for a bound below the best cost stored, the checker has to
accept it, and ``certified.json`` beside the results gets it by fingerprint.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from formulations.proof.prove import prove
from formulations.result.verify import certifies
from milp_planner.plans.compile import compile_for
from scenarios.batch.scenario import expand
from scenarios.batch.suite import load_suite

HERE = Path(__file__).parent


def certify(run: Path, seconds: float) -> dict[str, int]:
    """Bounds by fingerprint."""
    best: dict[str, int] = {}
    for line in (run / "results.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        if row.get("objective") is not None:
            known = best.get(row["instance"], row["objective"])
            best[row["instance"]] = min(known, row["objective"])
    bounds: dict[str, int] = {}
    for scenario in expand(load_suite(run / "suite.json"), run):
        instance = compile_for(*scenario.inputs(), scenario.objective).instance
        if instance.fingerprint in best and instance.fingerprint not in bounds:
            found = prove(instance, best[instance.fingerprint], seconds)
            if found is not None and found.target is not None and certifies(instance, found):
                bounds[instance.fingerprint] = found.target
    print(run, f"{len(bounds)} of {len(best)} instances", flush=True)
    return bounds


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="an instance")
    seconds = parser.parse_args().seconds
    for name in sorted({path.parents[1].name for path in HERE.glob("*/*/results.jsonl")}):
        run = max(path.parent for path in HERE.glob(f"{name}/*/results.jsonl"))
        found = {"date": datetime.date.today().isoformat(), "seconds": seconds}
        stored = json.dumps({**found, "bounds": certify(run, seconds)}, indent=1)
        (run / "certified.json").write_text(stored + "\n")


if __name__ == "__main__":
    main()
