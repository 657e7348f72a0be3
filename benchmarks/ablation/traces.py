"""Do counted solves still repeat? A fingerprint of each, to compare with those before a change.

``python benchmarks/ablation/traces.py FOLDER`` solves 75 small instances with counted work and one
worker: three objectives and all kinds of place, fusion, several machines, with the lists of small
instances and of others, and plans near yesterday's. The first call writes the instances and a
fingerprint of every solve to FOLDER; later ones read these instances, so that a change of prices
changes nothing, print the solves that differ, and exit with 1 if any do. A fingerprint holds the
trace (work, plan, bound and source of every point), the plan, its goals and what is certified,
so a change that only moves code must leave all of them as they are. Two minutes of a core.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ablation.cases import Case, make
from formulations import (
    Instance,
    Objective,
    Outcome,
    Settings,
    read_instance,
    solve,
    write_instance,
)
from formulations.instance import Current
from formulations.settings import Goals

#: Units of work of a small instance and of a larger one.
UNITS, MORE = 0.6, 1.2
#: Small instances: machines and ranks of each; models whose options take all kinds of place; the
#: fewest and most tables; what is tight, and how much above the use of a random plan.
SHAPES, KINDS, TABLES = ((1, 4), (2, 2), (2, 3), (1, 8), (2, 4)), ("torchrec", "mixed"), (8, 20)
BUDGETS = (("hbm", 0.02), ("both", 0.02), ("both", 0.1), ("both", 0.3))
FIRST_SEED = 7_000
#: Machines, ranks of each, and tables of the larger instances, and what is tight there.
LARGER = ((2, 4, 40), (2, 8, 60), (1, 8, 60))
#: Short turns, so that every part of the search gets some.
TURNS = {"first_turn": 0.03, "program_turn": 0.1, "exact_first": 0.1, "far": 0.03}

Fingerprint = dict[str, Any]


def instances() -> Iterator[tuple[str, Instance]]:
    """The instances by name: thirty small ones, and larger ones."""
    for case, objective in cases():
        yield f"{case.key}/{objective.value}", replace(make(case), objective=objective)


def cases() -> Iterator[tuple[Case, Objective]]:
    """What each is made of, and its objective."""
    objectives = [kind for kind in Objective if kind != Objective.PIPELINED_STEP]
    for number, (shape, kind, objective) in enumerate(product(SHAPES, KINDS, objectives)):
        seed = FIRST_SEED + number
        draw = random.Random(seed)
        tables, (tight, slack) = draw.randint(*TABLES), draw.choice(BUDGETS)
        fused = draw.random() < 0.5
        yield Case("small", kind, *shape, tables, seed, tight, slack, fused), objective
    for objective in objectives:
        for machines, ranks, tables in LARGER:
            yield Case("larger", "mixed", machines, ranks, tables, 90, "both", 0.1, True), objective


def stored(folder: Path) -> list[tuple[str, Instance]]:
    """The instances in a folder, which are written at first."""
    if not (folder / "instances").exists():
        (folder / "instances").mkdir(parents=True)
        for name, instance in instances():
            write_instance(instance, folder / "instances" / f"{name.replace('/', '_')}.json.gz")
    files = sorted((folder / "instances").iterdir())
    return [(file.name.removesuffix(".json.gz"), read_instance(file)) for file in files]


def solves(given: list[tuple[str, Instance]]) -> Iterator[tuple[str, Instance, Settings]]:
    """What is solved: a name, the instance and how."""
    asked = Settings(time_limit=None, workers=1, certificate=False)
    every = [pair for pair in given if pair[0].startswith("small")]
    for number, (name, instance) in enumerate(every):
        yield name, instance, replace(asked, work_limit=UNITS, certificate=number % 6 == 0)
    for number, (name, instance) in enumerate(every):
        options = TURNS if number % 2 else {**TURNS, "small_columns": 1}
        yield f"{name} in turns", instance, replace(asked, work_limit=MORE, options=options)
    for name, instance in given:
        if name.startswith("larger"):
            yield name, instance, replace(asked, work_limit=MORE)
    yield from _again(every[::5], asked)


def _again(
    every: list[tuple[str, Instance]], asked: Settings
) -> Iterator[tuple[str, Instance, Settings]]:
    """Plans near yesterday's on today's smaller memory, with and without a limit on moves."""
    for number, (name, plain) in enumerate(every):
        before = replace(plain, shard_move=plain.shard_use.sum(axis=1))
        plan = solve(before, "greedy", asked).placement
        if plan is None:
            continue
        current = tuple(
            Current(
                table, int(option), tuple(tuple(map(int, block)) for block in plan.ranks[table])
            )
            for table, option in enumerate(plan.options.tolist())
        )
        rooms = tuple(replace(r, capacity=r.capacity * 99 // 100) for r in before.resources)
        size = int(before.shard_move.max()) if number % 2 else None
        today = replace(before, current=current, resources=rooms, max_moved_bytes=size)
        goals = Goals(tolerance=0.01, enough=0.0) if number % 3 == 0 else asked.goals
        yield f"{name} again", today, replace(asked, work_limit=UNITS, hint=plan, goals=goals)


def fingerprint(outcome: Outcome) -> Fingerprint:
    """What must stay the same, the longer parts as a digest."""
    plan = outcome.placement
    places = None if plan is None else [[list(map(int, b)) for b in t] for t in plan.ranks]
    long = {
        "trace": [(p.seconds, p.objective, p.bound, p.source) for p in outcome.trace],
        "plan": None if plan is None else [plan.options.tolist(), places],
        "goals": [str(goal) for goal in outcome.goals],
        "certified": outcome.certified_bound,
        "work": outcome.detail.get("work"),
    }
    digests = {
        name: sha256(json.dumps(value).encode()).hexdigest()[:12] for name, value in long.items()
    }
    return {"objective": outcome.objective, "bound": outcome.bound,
            "status": outcome.status.value, **digests}  # fmt: skip


def differences(
    before: dict[str, Fingerprint], now: dict[str, Fingerprint]
) -> list[tuple[str, str]]:
    """The solves that differ, and in what; one that is missing differs in everything."""
    found = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            found.append((name, "everything"))
        elif old != new:
            found.append((name, ", ".join(key for key in new if new[key] != old.get(key))))
    return found


def main() -> None:
    """Solve all, then store or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="made at first, then compared with")
    parser.add_argument("--only", default="", help="part of the names of what is solved")
    given = parser.parse_args()
    file = given.folder / "traces.json"
    every = solves(stored(given.folder))
    now = {name: fingerprint(solve(instance, "auto", settings))
           for name, instance, settings in every if given.only in name}  # fmt: skip
    if not file.exists():
        file.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        print(f"{len(now)} solves, {file}")
        return
    before = json.loads(file.read_text(encoding="utf-8"))
    before = {name: value for name, value in before.items() if given.only in name}
    found = differences(before, now)
    for name, what in found:
        told = (f"{key} {one[name][key]}" for key in ("objective", "bound") for one in (before, now)
                if key in what)  # fmt: skip
        print(f"{name}: {what}", *told)
    print(f"{len(now) - len(found)} of {len(now)} solves as before")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
