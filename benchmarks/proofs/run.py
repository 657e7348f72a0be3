"""How much of known plans' costs the prover certifies, beside what was certified before trees.

    python benchmarks/proofs/run.py RESULTS.json FOLDER [--seconds 20] [-o rows.json]

RESULTS is one of benchmarks/torchrec-gap/results: its plans are the upper limits, its certified
bounds (one vector of multipliers, no tree) the comparison. FOLDER holds the instances. The prover
runs alone, then the checker. All seconds, those of ``--seconds`` too, are processor seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from formulations.evidence.verify import certifies
from formulations.instance.file import read_instance
from formulations.proof.prove import prove
from formulations.result.certificate import certificate_to_dict


def row(path: Path, plan: int, before: int, seconds: float) -> dict[str, Any]:
    """Prove one instance's bound and check it.

    ``before`` and ``certified`` are what is open, in percent of the plan; ``plan`` is in the
    instance's time unit.
    """
    instance = read_instance(path)
    begin = time.process_time()
    certificate = prove(instance, plan, seconds)
    proved = time.process_time()
    assert certificate is not None and certificate.target is not None
    accepted = certifies(instance, certificate)
    return {
        "plan": plan,
        "before": round(100 * (plan - before) / plan, 4),
        "certified": round(100 * (plan - certificate.target) / plan, 4),
        "nodes": len(certificate.nodes),
        "kB": len(json.dumps(certificate_to_dict(certificate))) // 1000,
        "prover_seconds": round(proved - begin, 1),
        "checker_seconds": round(time.process_time() - proved, 1),
        "accepted": accepted,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("-o", "--output", type=Path, default=Path("rows.json"))
    asked = parser.parse_args()
    time.monotonic = time.process_time  # what the prover's limit is counted by
    known = json.loads(asked.results.read_text())["rows"]
    plans = [r for r in known if r["objective"] is not None]
    best = {r["instance"]: r for r in sorted(plans, key=lambda r: -r["objective"])}
    rows = {}
    for name, found in best.items():
        path = asked.folder / f"torchrec_{name}.json.gz"
        if path.exists():
            rows[name] = row(path, found["objective"], found["certified_bound"], asked.seconds)
            asked.output.write_text(json.dumps(rows, indent=1) + "\n")
            print(name, rows[name], flush=True)


if __name__ == "__main__":
    main()
