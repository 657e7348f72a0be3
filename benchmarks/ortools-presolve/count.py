"""How often CP-SAT is wrong on the fuzz's instances: with presolve, part of it, and without.

``python benchmarks/ortools-presolve/count.py --count 5000`` asks the exact model and the one that
keeps machines apart (a relaxation) each way, without the guards of ``formulations.solve``, and
compares their claims with enumeration. Ctrl-C keeps what was done; the same command resumes.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ortools import __version__ as ortools_version  # noqa: E402

from formulations import Instance, Objective, Settings  # noqa: E402
from formulations import cpsat as adapter  # noqa: E402
from formulations.clock import Clock, Limits  # noqa: E402
from formulations.errors import UnsupportedInstance  # noqa: E402
from formulations.methods import exact  # noqa: E402
from formulations.search.question import APART, ask  # noqa: E402
from tests.formulations.brute_force import brute_force  # noqa: E402
from tests.formulations.fuzz.generate import COSTS, generate  # noqa: E402

_CONFIGURE = adapter._configure
#: Parameters under which each instance is asked: the default, what has been advised, and ours.
CASES = {
    "default": "",
    "inclusion limit 0": "presolve_inclusion_work_limit:0",
    "no probing": "cp_model_probing_level:0",
    "no iterations": "max_presolve_iterations:0",
    "no presolve": "cp_model_presolve:false",
}


def main() -> None:
    """Ask, count, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "ortools-presolve.json")
    args = parser.parse_args()
    counts: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "ortools": ortools_version,
        "next": 0,
        "asked": dict.fromkeys(COSTS, 0),
        "wrong": {c: {} for c in CASES},
        "numbers": [],
    }
    if args.output.exists():
        counts = json.loads(args.output.read_text())
    written = time.monotonic()
    try:
        for number in range(counts["next"], args.count):
            _play(number, counts)
            if time.monotonic() - written > 20:
                args.output.write_text(json.dumps(counts, indent=1) + "\n")
                written = time.monotonic()
    except KeyboardInterrupt:
        pass
    args.output.write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps({k: v for k, v in counts.items() if k != "numbers"}, indent=1))


def _play(number: int, counts: dict[str, Any]) -> None:
    instance = generate(number)
    truth = brute_force(instance).objective
    for case, wish in CASES.items():

        def wished(parameters: Any, *rest: Any, wish: str = wish) -> None:
            _CONFIGURE(parameters, *rest)
            parameters.cp_model_presolve = True
            parameters.parse_text_format(wish)

        adapter._configure = wished
        for what in _wrong(instance, truth, number):
            wrong = counts["wrong"][case]
            wrong[what] = wrong.get(what, 0) + 1
            counts["numbers"].append([number, instance.source, case, what])
    counts["asked"][instance.source] += 1
    counts["next"] = number + 1


def _wrong(instance: Instance, truth: int | None, number: int) -> Iterator[str]:
    settings = Settings(time_limit=20, workers=1, seed=number, polish=False, certificate=False)
    try:
        told = exact.solve(instance, settings, Clock(settings))
        if told.status == "infeasible" and truth is not None:
            yield "exact model: infeasible, but there is a plan"
        elif truth is not None and told.bound is not None and told.bound > truth:
            yield "exact model: a bound above the optimum"
        if instance.objective == Objective.TOTAL or truth is None:
            return
        bound = ask(APART, instance, Limits(seconds=20, seed=number))
    except UnsupportedInstance:
        return
    if bound.infeasible:
        yield "relaxation: infeasible, but there is a plan"
    elif bound.bound is not None and bound.bound > truth:
        yield "relaxation: a bound above the optimum"


if __name__ == "__main__":
    main()
