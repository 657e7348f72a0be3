"""Is ``auto`` ever worse, in bound or plan, than ``cpsat`` alone in 1.5 times less time?

``python benchmarks/small/run.py [--seconds 15]`` solves thirty small priced instances of seeds
that nobody tuned on with three solver seeds, by ``auto`` and then by ``cpsat`` in two thirds of the
time; ``--folder`` takes instance files instead. Each answer is stored at once: the same command goes on where it
stopped.
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
from itertools import product
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from formulations import Instance, Objective, Settings, read_instance, solve
from formulations.settings import available_cores

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "dp-vs-exact"))

from cases import Case, make  # noqa: E402

#: Times less that ``cpsat`` has than ``auto``.
LESS = 1.5
FIRST_SEED = 7_000
#: Between an instance's name and the seed of the solver.
SEED = "#"
#: Machines and ranks of each.
SHAPES = ((1, 4), (2, 2), (2, 3), (1, 8), (2, 4))
#: Whose options take all kinds of place: every rank, any, one machine, any within one.
KINDS = ("torchrec", "mixed")
TABLES = (8, 20)
#: What is tight, and how much above the use of a random plan.
BUDGETS = (("hbm", 0.02), ("both", 0.02), ("both", 0.1), ("both", 0.3))

Answer = dict[str, Any]


def cases() -> Iterator[tuple[str, Case, Objective]]:
    """The thirty: name, what it is made of, and the objective."""
    for number, (shape, kind, objective) in enumerate(product(SHAPES, KINDS, Objective)):
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
    """What a formulation says."""
    outcome = solve(instance, formulation, settings)
    return {
        "status": outcome.status.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "seconds": round(outcome.seconds, 2),
    }


def worse(auto: Answer, cpsat: Answer) -> list[str]:
    """In which of plan and bound ``auto`` is worse, if only by one."""
    plans = [inf if a["objective"] is None else a["objective"] for a in (auto, cpsat)]
    bounds = [_bound(a) for a in (auto, cpsat)]
    return ["plan"] * (plans[0] > plans[1]) + ["bound"] * (bounds[0] < bounds[1])


def _bound(given: Answer) -> float:
    if given["status"] == "infeasible":
        return inf
    return -inf if given["bound"] is None else given["bound"]


def summary(rows: dict[str, dict[str, Answer]]) -> str:
    """How often ``auto`` is worse, and how long proofs take, of what both have solved."""
    both = {name: row for name, row in rows.items() if len(row) == 2}
    found = {name: worse(row["auto"], row["cpsat"]) for name, row in both.items()}
    lines = [f"{name}: worse {' and '.join(what)}" for name, what in found.items() if what]
    plans, bounds = (sum(what in w for w in found.values()) for what in ("plan", "bound"))
    proved = [sum(r[f]["status"] == "optimal" for r in both.values()) for f in ("auto", "cpsat")]
    lines.append(
        f"solves: {len(both)}; auto has the worse plan {plans} times, the worse bound "
        f"{bounds} times; optimal: auto {proved[0]}, cpsat {proved[1]}"
    )
    return "\n".join(lines + slower(both))


def slower(both: dict[str, dict[str, Answer]]) -> list[str]:
    """Instances that ``cpsat`` proves with every seed: the median seconds of ``auto`` for those of
    ``cpsat``, where more than `LESS`, with the spread of both."""
    instances: dict[str, list[dict[str, Answer]]] = {}
    for name, row in both.items():
        instances.setdefault(name.split(SEED)[0], []).append(row)
    lines, slow = [], 0
    for name, runs in instances.items():
        if any(run["cpsat"]["status"] != "optimal" for run in runs):
            continue
        times = {f: sorted(_proved_after(run[f]) for run in runs) for f in ("auto", "cpsat")}
        ratio = median(times["auto"]) / median(times["cpsat"])
        spread = ", ".join(f"{f} {t[0]:.2f} to {t[-1]:.2f} s" for f, t in times.items())
        if ratio > LESS:
            lines.append(f"{name}: proved after {ratio:.2f} of cpsat's time ({spread})")
        slow += ratio > LESS
    lines.append(f"instances: {len(instances)}; slower than {LESS} times cpsat: {slow}")
    return lines


def _proved_after(given: Answer) -> float:
    return float(given["seconds"]) if given["status"] == "optimal" else inf


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
        "machine": f"{available_cores()} cores, {platform.machine()}",
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
    run(document, instances(asked.folder), asked.output)
    print(summary(document["rows"]))


if __name__ == "__main__":
    main()
