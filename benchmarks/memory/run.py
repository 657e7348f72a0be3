"""Live bytes of TorchRec's sharded tables on gloo processes, beside the ledger's entries.

``python benchmarks/memory/run.py --out benchmarks/memory/results/YYYY-MM-DD.json`` runs all cases.
"""

import argparse
import json
import logging
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.memory.cases import Amounts, Case, cases, half_precision, held_out, predicted


def measured(same: list[Case]) -> list[dict[str, Amounts]]:
    """Live bytes of the fullest rank at each moment, for cases of equally many ranks."""
    import torch
    import torch.multiprocessing

    from benchmarks.memory.processes import run

    with tempfile.TemporaryDirectory() as folder:
        arguments = (f"{folder}/store", folder, same)
        torch.multiprocessing.spawn(run, args=arguments, nprocs=same[0].ranks)  # type: ignore[no-untyped-call]
        ranks = [torch.load(f"{folder}/{rank}") for rank in range(same[0].ranks)]
    return [
        {
            moment: max((each[moment] for each in found), key=lambda parts: sum(parts.values()))
            for moment in found[0]
        }
        for found in zip(*ranks, strict=True)
    ]


def compared(configurations: list[Case]) -> list[dict[str, Any]]:
    """Each case with what was measured and what the ledger says."""
    results: list[dict[str, Any]] = []
    for _, group in groupby(configurations, key=lambda case: case.ranks):
        same = list(group)
        for case, live in zip(same, measured(same), strict=True):
            results.append({"case": case._asdict(), "measured": live, "predicted": predicted(case)})
    return results


def main() -> None:
    """Run, and store as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", type=int, help="the first cases alone")
    given = parser.parse_args()
    logging.disable(logging.INFO)
    results = {
        "cases": compared(cases()[: given.only]),
        "held_out": compared(held_out()[: given.only]),
        "half_precision": compared(half_precision()[: given.only]),
    }
    versions = {name: __import__(name).__version__ for name in ("torch", "torchrec", "fbgemm_gpu")}
    document = {"date": time.strftime("%Y-%m-%d"), "versions": versions, **results}
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
