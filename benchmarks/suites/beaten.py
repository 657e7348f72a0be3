"""Is a row of a batch beaten by a plan of its inputs? ``python benchmarks/suites/beaten.py``.

Every shipped suite, with all three objectives, so that each scenario has two neighbours of the same
inputs, and with all its formulations, at a short limit (``--time-limit``), so that neighbours often
find what a row did not. The script counts the rows that some plan of the same inputs beats in the
row's own objective, whatever that plan was made for: among formulations that prove there must be
none; baselines take no plan from others, and their rows say how far above the best they are.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from formulations import registry  # noqa: E402
from scenarios.batch.curves import Row, contradictions, rows_of  # noqa: E402
from scenarios.batch.runner import run_batch  # noqa: E402
from scenarios.batch.suite import find_suite, suites  # noqa: E402


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=list(suites()), help="default: all")
    parser.add_argument("--time-limit", type=float, default=1.0, help="seconds of each solve")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, help="where the counts go, as JSON")
    args = parser.parse_args()
    found, wrong = {}, list[str]()
    for name in args.suites:
        rows = solved(name, args.time_limit, args.workers)
        found[name] = counted(rows)
        wrong += [*contradictions(rows), *map(said, beaten(rows, proving=True))]
        print(json.dumps({name: found[name]}), flush=True)
    print("\n".join(wrong))
    if args.output:
        args.output.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(bool(wrong))


def solved(name: str, time_limit: float, workers: int) -> tuple[Row, ...]:
    """The rows of a suite, for all objectives but ``pipelined_step``, which some prices lack."""
    suite, folder = find_suite(name)
    objectives = ("total", "busiest_rank", "step_time")
    asked = suite.model_copy(
        update={"objectives": objectives, "time_limit": time_limit, "assertions": ()}
    )
    with tempfile.TemporaryDirectory() as output:
        return rows_of(run_batch(asked, output, folder=folder, workers=workers).results)


def counted(rows: tuple[Row, ...]) -> dict[str, Any]:
    """How many rows there are, have a plan, and are beaten."""
    return {
        "rows": len(rows),
        "with a plan": sum(row.objective is not None for row in rows),
        "failed": sum(row.status == "failed" for row in rows),
        "beaten": len(list(beaten(rows, proving=True))),
        "baselines above the best": len(list(beaten(rows, proving=False))),
    }


def beaten(rows: tuple[Row, ...], proving: bool) -> Iterator[Row]:
    """Rows that a plan of the same inputs beats, of formulations that prove, or of the others."""
    for row in rows:
        proves = registry.get(row.formulation).proves in ("optimum", "optimum or gap")
        if proves == proving and row.above_best:
            yield row


def said(row: Row) -> str:
    """A beaten row in a sentence."""
    return f"{row.instance}: {row.series} has {row.objective}, a plan of the same inputs {row.best}"


if __name__ == "__main__":
    main()
