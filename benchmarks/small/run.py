"""Is ``auto`` ever worse, in bound or plan, than ``cpsat`` alone in two thirds of the time?

``python benchmarks/small/run.py [--seconds 15]`` solves thirty small priced instances of seeds
that nobody tuned on, each with three solver seeds, by ``auto`` and then by ``cpsat`` in two thirds
of the time; ``--folder`` takes instance files instead. Each answer is stored at once: the same
command resumes where it stopped.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from formulations import (
    Block,
    Instance,
    InstanceBuilder,
    Objective,
    Settings,
    Shard,
    Status,
    Where,
    read_instance,
    solve,
)
from formulations.settings import available_cores
from milp_planner.features.calibrate.machine import processor

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "dp-vs-exact"))

from cases import Case, make  # noqa: E402

#: ``auto``'s time limit over ``cpsat``'s.
LESS = 1.5
FIRST_SEED = 7_000
#: Between an instance's name and the seed of the solver.
SEED = "#"
#: Machines and ranks of each.
SHAPES = ((1, 4), (2, 2), (2, 3), (1, 8), (2, 4))
#: Models whose options take all kinds of place: every rank, any, one machine, any within one.
KINDS = ("torchrec", "mixed")
TABLES = (8, 20)
#: What is tight, and how much above the use of a random plan.
BUDGETS = (("hbm", 0.02), ("both", 0.02), ("both", 0.1), ("both", 0.3))

Answer = dict[str, Any]


def cases() -> Iterator[tuple[str, Case, Objective]]:
    """The thirty instances: name, what each is made of, and the objective."""
    kinds = [each for each in Objective if each != Objective.PIPELINED_STEP]  # has other phases
    for number, (shape, kind, objective) in enumerate(product(SHAPES, KINDS, kinds)):
        seed = FIRST_SEED + number
        draw = random.Random(seed)
        tables, (tight, slack) = draw.randint(*TABLES), draw.choice(BUDGETS)
        case = Case("small", kind, *shape, tables, seed, tight, slack, draw.random() < 0.5)
        yield f"{case.key}/{objective.value}", case, objective


def instances(folder: Path | None) -> Iterator[tuple[str, Instance]]:
    """Names and instances, made or read."""
    if folder is not None:
        for path in sorted(folder.iterdir()):
            if path.name.endswith((".json", ".json.gz")):
                yield path.name, read_instance(path)
        return
    for name, case, objective in cases():
        instance = make(case)
        assert instance is not None, f"{name}: no random plan could be placed"
        yield name, replace(instance, objective=objective)


def answer(instance: Instance, formulation: str, settings: Settings) -> Answer:
    """What a formulation says, and when plan and bound met: polishing and certifying come after."""
    outcome = solve(instance, formulation, settings)
    met = (p.seconds for p in outcome.trace if p.objective is not None and p.objective == p.bound)
    proved = next(met, outcome.seconds) if outcome.status == Status.OPTIMAL else None
    return {
        "status": outcome.status.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "proved": None if proved is None else round(proved, 2),
        "seconds": round(outcome.seconds, 2),
    }


def worse(auto: list[Answer], cpsat: list[Answer]) -> list[str]:
    """Where the median of ``auto`` is worse: plan or bound, even by one; the time to the proof, if
    by more than a factor of `LESS`, where ``cpsat`` proves with every seed."""
    plans, bounds, proofs = (
        [median(map(of, answers)) for answers in (auto, cpsat)] for of in (_plan, _bound, _proved)
    )
    proves = all(a["status"] == "optimal" for a in cpsat)
    found = ["plan"] * (plans[0] > plans[1]) + ["bound"] * (bounds[0] < bounds[1])
    return found + ["time"] * (proves and proofs[0] > LESS * proofs[1])


def _plan(given: Answer) -> float:
    return inf if given["objective"] is None else given["objective"]


def _bound(given: Answer) -> float:
    if given["status"] == "infeasible":
        return inf
    return -inf if given["bound"] is None else given["bound"]


def _proved(given: Answer) -> float:
    return inf if given["proved"] is None else given["proved"]


def summary(rows: dict[str, dict[str, Answer]]) -> str:
    """Where ``auto`` is worse, by medians and by single solves, of what both have solved."""
    runs: dict[str, list[dict[str, Answer]]] = {}
    for name, row in rows.items():
        if len(row) == 2:
            runs.setdefault(name.split(SEED)[0], []).append(row)
    lines, found = [], list[str]()
    for name, solved in runs.items():
        auto, cpsat = ([row[f] for row in solved] for f in ("auto", "cpsat"))
        what = worse(auto, cpsat)
        found += what
        if what:
            lines.append(
                f"{name}: worse {' and '.join(what)} ({_told(auto)}; cpsat {_told(cpsat)})"
            )
    single = [what for solved in runs.values() for r in solved for what in _once(r)]
    proved = [sum(r[f]["status"] == "optimal" for s in runs.values() for r in s)
              for f in ("auto", "cpsat")]  # fmt: skip
    for title, of in (("instances, medians", found), ("single solves", single)):
        counts = ", ".join(f"{what} {of.count(what)}" for what in ("plan", "bound", "time"))
        lines.append(f"{title}: {len(runs) if of is found else sum(map(len, runs.values()))}; "
                     f"auto worse: {counts}")  # fmt: skip
    lines.append(f"solves proved optimal: auto {proved[0]}, cpsat {proved[1]}")
    return "\n".join(lines)


def _once(row: dict[str, Answer]) -> list[str]:
    return worse([row["auto"]], [row["cpsat"]])


def _told(answers: list[Answer]) -> str:
    """Gaps in percent and seconds to the proofs of the runs."""
    gaps = [100 * (1 - _bound(a) / _plan(a)) if _plan(a) < inf else inf for a in answers]
    each = [f"{g:.2f}%" if a["proved"] is None else f"{a['proved']:.2f} s"
            for g, a in zip(gaps, answers, strict=True)]  # fmt: skip
    return ", ".join(each)


def run(document: dict[str, Any], given: Iterator[tuple[str, Instance]], output: Path) -> None:
    """Ask what is missing in the document; write it after every answer."""
    seconds, rows = document["seconds"], document["rows"]
    for (name, instance), seed in product(given, range(document["seeds"])):
        row = rows.setdefault(f"{name}{SEED}{seed}", {})
        for formulation, limit in (("auto", seconds), ("cpsat", seconds / LESS)):
            if formulation in row:
                continue
            settings = Settings(time_limit=limit, workers=document["workers"], seed=seed)
            row[formulation] = answer(instance, formulation, settings)
            part = output.with_suffix(".part")
            part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            os.replace(part, output)
            print(name, seed, formulation, *row[formulation].values(), flush=True)


def _warm_up() -> None:
    """Load what a first solve loads, the compiled loops included."""
    builder = InstanceBuilder([[0, 1]], ["p"], [], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [1])])])
    import_module("formulations.search.kernels")
    solve(builder.build(), "auto", Settings(time_limit=1.0))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="of auto")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3, help="of the solver")
    parser.add_argument("--folder", type=Path, help="instance files, instead of those made here")
    today = datetime.date.today().isoformat()
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results" / f"{today}.json")
    asked = parser.parse_args()
    document: dict[str, Any] = {
        "date": today,
        "machine": f"{available_cores()} cores, {processor()}",
        "python": platform.python_version(),
        "seconds": asked.seconds,
        "workers": asked.workers,
        "seeds": asked.seeds,
        "rows": {},
    }
    if asked.output.exists():
        stored = json.loads(asked.output.read_text(encoding="utf-8"))
        if any(stored[k] != document[k] for k in ("seconds", "workers", "seeds")):
            sys.exit(f"{asked.output} was written with other settings: give another -o")
        document = stored
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    _warm_up()
    run(document, instances(asked.folder), asked.output)
    print(summary(document["rows"]))


if __name__ == "__main__":
    main()
