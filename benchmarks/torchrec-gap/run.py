"""Solve instances written from TorchRec's enumerator and compare with its own plan.

    python benchmarks/torchrec-gap/run.py FOLDER [--seeds 0 1 2] [--peers cpsat mip] [--output FILE]
        [--objective step_time] [--busy N] [--seconds 60] [--few 100]

FOLDER holds instances (``*.json`` or ``*.json.gz``) whose ``reference`` is TorchRec's default plan.
One row per instance, formulation and seed goes to ``results/DATE.json`` as soon as it is known; a
second call skips what is there. Peers are formulations that solve with the first seed only. Under
another objective than the instance's, TorchRec's plan is no reference. ``--busy N`` keeps
N processes counting beside every run, to show what other work on the machine costs. ``--seconds``
is the limit of every run; ``--few N`` leaves out the seeds after the first where there are N tables
or more.
``table.py`` turns a result into a table.
"""

import argparse
import datetime
import itertools
import json
import multiprocessing
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from formulations import Instance, Objective, Outcome, Settings, read_instance, solve
from formulations.evidence.verify import verify
from formulations.settings import available_cores
from milp_planner.features.calibrate.machine import processor

HERE = Path(__file__).resolve().parent


def time_limit(instance: Instance) -> float:
    """60 seconds up to 100 tables, 120 above."""
    return 60.0 if instance.num_tables <= 100 else 120.0


def reference_of(instance: Instance) -> tuple[int | None, float | None]:
    """Busiest rank (ps) and seconds of TorchRec's plan; None where it found none."""
    for entry in instance.reference:
        cost, seconds = entry.get("busiest_rank_ps"), entry.get("seconds")
        return (
            cost if isinstance(cost, int) else None,
            float(seconds) if isinstance(seconds, (int, float)) else None,
        )
    return None, None


def first_better(outcome: Outcome, reference: int | None) -> float | None:
    """Seconds until the first plan no worse than the reference (or the first plan at all)."""
    for point in outcome.trace:
        if point.objective is not None and (reference is None or point.objective <= reference):
            return point.seconds
    return None


def name_of(path: Path) -> str:
    """The instance's name in tables."""
    return path.name.removesuffix(".gz").removesuffix(".json").removeprefix("torchrec_")


def row(
    path: Path,
    formulation: str,
    workers: int,
    seed: int,
    objective: Objective | None,
    seconds: float | None = None,
) -> dict[str, object]:
    """Solve one instance with one seed."""
    instance = read_instance(path)
    if objective not in (None, instance.objective):
        instance = replace(instance, objective=objective, reference=())
    limit = seconds or time_limit(instance)
    outcome = solve(instance, formulation, Settings(time_limit=limit, workers=workers, seed=seed))
    reference, reference_seconds = reference_of(instance)
    source = outcome.bound_source
    return {
        "instance": name_of(path),
        "fingerprint": instance.fingerprint,
        "objective_kind": instance.objective.value,
        "seed": seed,
        "tables": instance.num_tables,
        "ranks": instance.num_ranks,
        "reference": reference,
        "reference_seconds": reference_seconds,
        "status": outcome.status.value,
        "stopped_by": outcome.stopped_by.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "bound_source": None
        if source is None
        else {"method": source.method, "exact": source.exact},
        "certified_bound": outcome.certified_bound,
        "gap": outcome.gap,
        "seconds": round(outcome.seconds, 2),
        "first_better_seconds": first_better(outcome, reference),
        "verified": verify(instance, outcome).ok,
        "time_limit": limit,
        "workers": workers,
        "formulation": formulation,
        "trace": [[p.seconds, p.objective, p.bound, p.source] for p in outcome.trace],
    }


def _count() -> None:
    while True:
        pass


@contextmanager
def beside(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    busy = [multiprocessing.Process(target=_count, daemon=True) for _ in range(processes)]
    for each in busy:
        each.start()
    try:
        yield
    finally:
        for each in busy:
            each.kill()


def main() -> None:
    """Run what is missing from the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="parts of instance names")
    parser.add_argument("--formulation", default="auto")
    parser.add_argument("--peers", nargs="*", default=[], help="cpsat, mip, greedy, …")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--objective", type=Objective, choices=[*Objective])
    parser.add_argument("--busy", type=int, default=0, help="processes that count beside it")
    parser.add_argument("--seconds", type=float, help="default: 60 up to 100 tables, 120 above")
    parser.add_argument("--few", type=int, help="tables from which on only the first seed runs")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    today = datetime.date.today().isoformat()
    stem = f"{args.objective}-{today}" if args.objective else today
    output = args.output or HERE / "results" / f"{stem}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "date": today,
        "machine": f"{available_cores()} cores, {processor()}",
        "python": platform.python_version(),
        "rows": [],
    }
    if output.exists():
        document = json.loads(output.read_text())
    done = {(r["instance"], r["formulation"], r["seed"]) for r in document["rows"]}
    read = [p for p in args.folder.iterdir() if p.name.endswith((".json", ".json.gz"))]
    size = {p: (i.num_options, i.num_tables) for p in read for i in [read_instance(p)]}
    paths = sorted(size, key=lambda p: (size[p], p.name))
    first, *others = args.seeds
    games = [(args.formulation, first), *((peer, first) for peer in args.peers)]
    games += [(args.formulation, seed) for seed in others]
    for (formulation, seed), path in itertools.product(games, paths):
        name = name_of(path)
        chosen = not args.only or any(part in name for part in args.only)
        chosen &= args.few is None or seed == first or size[path][1] < args.few
        if (name, formulation, seed) in done or not chosen:
            continue
        with beside(args.busy):
            found = row(path, formulation, args.workers, seed, args.objective, args.seconds)
        document["rows"].append(found)
        temporary = output.with_suffix(".tmp")
        temporary.write_text(json.dumps(document, indent=1))
        temporary.replace(output)
        print(
            f"{name} {formulation} seed {seed}: {found['status']} {found['objective']} "
            f"gap {found['gap']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
