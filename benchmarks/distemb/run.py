"""distributed-embeddings' models on the A100s of its published runs: its strategies and ours.

``python benchmarks/distemb/run.py [--time-limit 20]`` prices every published run's placement by
each strategy, plans it with ``auto``, writes ``results/DATE.json`` and the tables of
docs/results.md; ``--table`` only writes the tables from what is stored.
"""

import argparse
import datetime
import itertools
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.distemb import slices
from benchmarks.distemb.slices import Strategy
from benchmarks.pages import stored, update
from formulations import Instance, Settings, solve
from formulations.clock import Clock
from formulations.settings import available_cores
from milp_planner.drawing.units import show_gap
from milp_planner.files import write_json
from milp_planner.plans.compile import compile_for
from scenarios.batch.vary import vary_cluster, vary_model
from scenarios.catalog import find_cluster, find_model

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "results.md"
BATCH = 65_536
#: Models and GPUs of published runs that ship as a model and a cluster.
RUNS = (("tiny", 8), ("small", 8), ("medium", 8), ("large", 32), ("jumbo", 128))
#: Elements above which the README's example for several GPUs cuts columns; bytes of one with
#: Adagrad's state.
CUT, BYTES = 1280 * 2**20, 8
MS = 1e9


def main() -> int:
    """Price, plan, store, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        rows = [row(size, gpus, given.time_limit) for size, gpus in RUNS]
        today = datetime.date.today().isoformat()
        document = {
            "date": today, "cores": available_cores(), "time_limit": given.time_limit, "rows": rows,
        }  # fmt: skip
        (HERE / "results").mkdir(exist_ok=True)
        write_json(HERE / "results" / f"{today}.json", document)
    return update(PAGE, tables(stored(HERE / "results")), check=False)


def instance_of(size: str, gpus: int) -> Instance:
    """A model on so many of the DGX A100's GPUs, the global batch split over them."""
    axes = {"machines": max(1, gpus // 8), "ranks_per_machine": min(8, gpus)}
    cluster = vary_cluster(find_cluster("8xa100"), axes)
    model = vary_model(find_model(f"distemb-{size}"), {"batch": BATCH // gpus}, (), 0, gpus)
    return compile_for(model, cluster, "step_time").instance


def row(size: str, gpus: int, limit: float) -> dict[str, Any]:
    """One published run: what each strategy's plan costs, and ours, in picoseconds."""
    instance, found = instance_of(size, gpus), dict[str, Any]()
    for strategy, cut in itertools.product(Strategy, (None, CUT * BYTES)):
        options = {"strategy": str(strategy)} | ({} if cut is None else {"slice_above": cut})
        settings = Settings(certificate=False, options=options)
        outcome = slices.solve(instance, settings, Clock(settings))
        name = f"{strategy}, cut" if cut else str(strategy)
        found[name] = {"objective": outcome.objective, "note": outcome.note}
    ours = solve(instance, "auto", Settings(time_limit=limit, seed=0))
    result = {
        "model": size, "gpus": gpus, "strategies": found,
        "objective": ours.objective, "certified": ours.certified_bound, "status": ours.status.value,
    }  # fmt: skip
    print(result, flush=True)
    return result


def tables(document: dict[str, Any]) -> dict[str, str]:
    """The blocks of the page."""
    rows = document["rows"]
    head = f"Measured {document['date']} on {document['cores']} cores, {document['time_limit']:g} s"
    names = [str(s) for s in Strategy]
    lines = [
        "| model | GPUs | " + " | ".join(f"`{n}`" for n in names)
        + " | with cuts | `auto` | certified gap | the best strategy is above `auto` by |",
        "|---" * (len(names) + 6) + "|",
    ]  # fmt: skip
    for each in rows:
        costs = {n: s["objective"] for n, s in each["strategies"].items()}
        cut = min((v for n, v in costs.items() if n.endswith(", cut") and v), default=None)
        best = min((v for v in costs.values() if v), default=None)
        gap = 1 - (each["certified"] or 0) / each["objective"] if each["objective"] else None
        more = None if best is None or not each["objective"] else best / each["objective"] - 1
        cells = [_ms(costs[n]) for n in names] + [_ms(cut), _ms(each["objective"])]
        above = "–" if more is None else f"{more:.0%}" if more >= 0.01 else f"{more:.1%}"
        lines.append(f"| {each['model']} | {each['gpus']} | {' | '.join(cells)} | "
                     f"{show_gap(gap)} | {above} |")  # fmt: skip
    return {"strategies": "\n".join([f"{head} for `auto`.", "", *lines])}


def _ms(cost: int | None) -> str:
    return "no plan" if cost is None else f"{cost / MS:.4g}"


if __name__ == "__main__":
    raise SystemExit(main())
