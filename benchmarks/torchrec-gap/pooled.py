"""Hold HiGHS's *optimal* of the program over pooled places against CP-SAT's, which is exact.

    python benchmarks/torchrec-gap/pooled.py FOLDER…

One line an instance. HiGHS's value is too high where it proves what is not so, and too low where
its solution breaks a row within its tolerance.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from formulations import read_instance
from formulations.clock import Limits
from formulations.model.build import Parts, build
from formulations.model.linear import LinearModel
from formulations.model.partition import by_class
from formulations.presolve import presolve
from formulations.solvers.answer import Answer
from formulations.solvers.cpsat import solve_cpsat
from formulations.solvers.highs import solve_highs

LIMITS = Limits(seconds=60.0)


def programs(folder: Path) -> dict[str, LinearModel]:
    """The program over pooled places of every instance in a folder."""
    found = {}
    for path in sorted(p for p in folder.iterdir() if p.name.endswith((".json", ".json.gz"))):
        instance = read_instance(path)
        kept = Parts(keep=presolve(instance).kept)
        name = path.name.removesuffix(".gz").removesuffix(".json").removeprefix("torchrec_")
        found[name] = build(instance, by_class(instance), kept).linear
    return found


def said(answer: Answer) -> str:
    """A claim and its value in ms."""
    value = "none" if answer.value is None else f"{answer.value / 1e9:.4f}"
    return f"{answer.status.value} {value}"


def main() -> None:
    """Solve and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    for folder in parser.parse_args().folders:
        for name, model in programs(folder).items():
            start = time.monotonic()
            exact = solve_cpsat(model, LIMITS)
            middle = time.monotonic()
            other = solve_highs(model, LIMITS)
            seconds = f"{middle - start:.1f} s, {time.monotonic() - middle:.1f} s"
            off = ""
            if exact.value and other.value and exact.bound == exact.value:
                off = f"; off by {other.value / exact.value - 1:+.5%}"
            print(f"{name}: CP-SAT {said(exact)}, HiGHS {said(other)}, {seconds}{off}", flush=True)


if __name__ == "__main__":
    main()
