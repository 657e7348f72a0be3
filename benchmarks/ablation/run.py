"""What does each part of the search buy? Solves of counted work without it, one part at a time.

``python benchmarks/ablation/run.py FOLDER [--set parts]`` solves every instance file of FOLDER as
the search is and without each part (:mod:`parts`), with one worker, and appends a row per solve to
``results/SET.jsonl``; the same command resumes where it stopped. ``table.py`` shows them.

Counted work repeats exactly on a busy machine, so solves may run beside anything. A unit takes
about a second; larger instances get more units (:func:`work_of`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ablation import again, parts
from benchmarks.ablation.parts import BASE, Variant
from benchmarks.ablation.sides import by_work
from formulations import Instance, Settings, read_instance, solve
from formulations.proof import prove
from formulations.search import conductor

HERE = Path(__file__).resolve().parent
SETS: dict[str, Callable[[], tuple[Variant, ...]]] = {
    "parts": lambda: parts.PARTS, "settings": parts.settings, "proof": lambda: parts.PROOF,
    "again": again.variants, "repair": again.variants,
}  # fmt: skip
Row = dict[str, Any]


@cache
def code() -> str:
    """A name for the search as it stands: solves of different ones are no pairs."""
    files = sorted((HERE.parents[1] / "formulations").rglob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def key_of(row: Row) -> tuple[object, ...]:
    """What two solves have in common that are a pair."""
    return tuple(row[name] for name in ("instance", "seed", "units", "code"))


def work_of(instance: Instance, units: float) -> float:
    """Units for an instance: up to twice as many for a hundred tables."""
    return round(units * min(2.0, 1.0 + instance.num_tables / 100), 2)


def row(path: Path, variant: Variant, seed: int, units: float) -> Row:
    """One solve. The file is read anew, so that nothing is left of the last one."""
    instance, start = read_instance(path), time.process_time()
    settings = Settings(
        work_limit=work_of(instance, units), time_limit=None, workers=1, seed=seed,
        polish=False, certificate=False, options=variant.options,
    )  # fmt: skip
    with variant.switch(), patch.object(conductor, "_in_turn", by_work):
        outcome = solve(instance, "auto", settings)
    return {
        "without": variant.name, "instance": name_of(path), "seed": seed, "code": code(),
        "units": units, "objective": outcome.objective, "bound": outcome.bound,
        "status": outcome.status.value, "cpu": round(time.process_time() - start, 2),
    }  # fmt: skip


def proof_row(path: Path, variant: Variant, upper: int) -> Row:
    """One certificate for the cost of a known plan; it ends after a number of cases, and nothing in
    it is drawn, so one seed is all."""
    instance, start = read_instance(path), time.process_time()
    with variant.switch():
        certificate = prove.prove(instance, upper)
    return {
        "without": variant.name, "instance": name_of(path), "seed": 0, "units": 0.0, "code": code(),
        "objective": upper, "bound": None if certificate is None else certificate.target,
        "status": "certified", "cpu": round(time.process_time() - start, 2),
    }  # fmt: skip


def again_row(path: Path, variant: Variant, seed: int, limited: bool) -> Row:
    """One plan made from yesterday's (:mod:`again`)."""
    start = time.process_time()
    found = again.again(path, variant, seed, limited)
    return {
        "without": variant.name, "instance": name_of(path), "seed": seed, "units": 0.0,
        "code": code(), **found, "cpu": round(time.process_time() - start, 2),
    }  # fmt: skip


def name_of(path: Path) -> str:
    """The instance's name in rows."""
    return path.name.removesuffix(".json.gz")


def best_plans() -> dict[str, int]:
    """The cheapest stored plan of every instance: what proofs are made for."""
    best: dict[str, int] = {}
    for stored in rows_of(HERE / "results" / "parts.jsonl"):
        value = stored["objective"]
        if value is not None:
            best[stored["instance"]] = min(value, best.get(stored["instance"], value))
    return best


def missing(
    known: set[tuple[Any, ...]], files: list[Path], variants: list[Variant], given: Any
) -> Iterator[tuple[Path, Variant, int]]:
    """What is to be solved: one seed after the other, so that every part has rows early."""
    for seed in range(given.seeds):
        for variant in variants:
            for path in files:
                key = (variant.name, name_of(path), seed, given.units, code())
                if key not in known:
                    yield path, variant, seed


def rows_of(path: Path) -> list[Row]:
    """The rows of a result file; none where there is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Solve what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="instance files")
    parser.add_argument("--set", choices=SETS, default="parts")
    parser.add_argument("--only", nargs="*", help="parts by their names")
    parser.add_argument("--instances", default="*.json.gz", help="a pattern of names in FOLDER")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--units", type=float, default=3.0)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    output = given.output or HERE / "results" / f"{given.set}.jsonl"
    every = SETS[given.set]()
    variants = [BASE, *(v for v in every if not given.only or v.name in given.only)]
    known = {(r["without"], *key_of(r)) for r in rows_of(output)}
    files = sorted(given.folder.glob(given.instances))
    output.parent.mkdir(parents=True, exist_ok=True)
    if given.set == "proof":
        given.seeds, best = 1, best_plans()
    if given.set in ("proof", "again", "repair"):
        given.units = 0.0
    for path, variant, seed in missing(known, files, variants, given):
        if given.set == "proof":
            found = proof_row(path, variant, best[name_of(path)])
        elif given.set in ("again", "repair"):
            found = again_row(path, variant, seed, given.set == "again")
        else:
            found = row(path, variant, seed, given.units)
        with output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(*found.values(), flush=True)


if __name__ == "__main__":
    main()
