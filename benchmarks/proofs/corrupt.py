"""Certificates whose meaning is changed: ``python benchmarks/proofs/corrupt.py -o FILE``.

Random small instances whose optimum is enumerated (those of benchmarks/fuzz, by number), each
with a certificate of the prover, changed at random in target, kind, multipliers, rows, splits,
vectors used and nodes (``tests/formulations/proof/test_checked.py``). The script counts the
checker's verdicts: unreadable, not checked, open, or accepted. Accepting a bound above the optimum
would be a false proof.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from formulations import checker  # noqa: E402
from formulations.instance.file import instance_to_dict  # noqa: E402
from formulations.proof.prove import prove  # noqa: E402
from tests.formulations.brute_force import brute_force  # noqa: E402
from tests.formulations.fuzz.generate import generate  # noqa: E402
from tests.formulations.proof.test_checked import mutate, written  # noqa: E402


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--count", type=int, default=1000, help="corrupted certificates in all")
    parser.add_argument("--first", type=int, default=1, help="number of the first instance tried")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    said: Counter[str] = Counter()
    number, used = args.first - 1, list[int]()
    while len(used) < args.instances:
        number += 1
        instance = generate(number)
        truth = brute_force(instance).objective
        certificate = None if truth is None else prove(instance, truth)
        if certificate is None or truth is None or not written(certificate)["vectors"]:
            continue
        used.append(number)
        each = range(len(used) - 1, args.count, args.instances)
        document = checker.Instance(instance_to_dict(instance))
        said.update(_judged(document, written(certificate), truth, Random(number), len(each)))
    found = {"instances": used, **said, "above the optimum": said["above the optimum"]}
    print(json.dumps(found))
    if args.output:
        args.output.write_text(json.dumps(found, indent=1) + "\n")
    if said["above the optimum"]:
        sys.exit(1)


def _judged(
    instance: checker.Instance, certificate: dict[str, Any], truth: int, rng: Random, count: int
) -> Counter[str]:
    """What the checker says of so many changed certificates."""
    said: Counter[str] = Counter()
    while sum(said.values()) < count:
        forged = copy.deepcopy(certificate)
        for _ in range(rng.randint(1, 3)):
            mutate(rng, forged)
        if forged == certificate:
            continue
        try:
            case = checker.Proof(instance, forged).open_case()
        except checker.Unreadable:
            said["unreadable"] += 1
            continue
        except checker.NotChecked:
            said["not checked"] += 1
            continue
        above = forged["kind"] == "infeasible" or forged["target"] > truth
        said["open" if case else "above the optimum" if above else "accepted, true"] += 1
    return said


if __name__ == "__main__":
    main()
