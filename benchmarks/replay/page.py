"""Tables of docs/from-plan-to-run.md: ``python benchmarks/replay/page.py [--time-limit 20]``.

Every row plans twice, for any trainer and with ``--for``, each within the time limit.
"""

import argparse
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from milp_planner import plan
from milp_planner.errors import FallsShort
from milp_planner.inputs import Model
from milp_planner.integrations.exports import with_workload
from milp_planner.integrations.exports.dlrmv4 import DEFAULT_CAP, HBM
from milp_planner.integrations.replay.dlrmv4 import runs_now
from milp_planner.integrations.replay.estimate import GIB
from milp_planner.integrations.replay.judge import cost_of, judge, placed
from milp_planner.integrations.replay.plan_for import plan_for
from milp_planner.plans.placement import Plan
from scenarios import catalog

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-plan-to-run.md"
DLRM = "dlrmv4-yambda5b"
CLUSTERS = ("8xmi350x", "8xb200-tight", "4x8xmi350x", "4x8xb200", "16x8xmi350x")
ON = {"dedup": True, "codec": "low_memory"}
"""What the trainer has on by default."""
OTHERS = (
    ("tzrec", "criteo-terabyte", "8xh100"), ("tzrec", "mlperf-dlrm-dcnv2", "8xh100"),
    ("tzrec", "distemb-tiny", "8xa100"), ("tzrec", "distemb-small", "8xa100"),
    ("tzrec", "embark-t180", "4x8xh100"),
    ("dynamicemb", "kuairand-27k", "8xh100"), ("dynamicemb", "criteo-terabyte", "8xh100"),
)  # fmt: skip


def alone(best: Plan) -> str:
    """What the trainer's planner does with nothing pinned, at our prices."""
    smallest = min(rank.hbm_bytes for rank in best.cluster.ranks) // GIB
    cap = f"{HBM}={min(DEFAULT_CAP, smallest)}"
    try:
        pins = runs_now(cap, best.model, best.cluster)
    except FallsShort:
        return "stops: no plan"
    found = placed(best, pins)
    assert found.verdict is not None
    kinds = sorted({placed.sharding_type for placed in found.tables})
    cost = f"{cost_of(found) / 1e9:.4g} ms" if found.verdict.feasible else "out of memory"
    return f"{cost} ({', '.join(kinds)})"


def exported(best: Plan, to: str) -> str:
    """What the trainer makes of the plan for any trainer."""
    try:
        judgement, _ = judge(best, to)
    except FallsShort as refusal:
        return "refused: " + ("memory" if "does not fit" in str(refusal) else "it would stop")
    return f"{judgement.runs / 1e9:.4g} ms"


def found_for(trainer: str, model: Model, cluster: str, limit: float) -> str:
    """What ``--for`` finds, and its gap to the bound of all plans."""
    try:
        found = plan_for(trainer, model, catalog.find_cluster(cluster), time_limit=limit)
    except FallsShort as why:
        return "none fits, proved" if "proved" in str(why) else "none found"
    gap = 0.0 if found.gap is None else found.gap
    return f"{cost_of(found) / 1e9:.4g} ms (gap {gap:.1%})"


def dlrmv4(limit: float) -> Iterator[str]:
    """The rows of the first table."""
    yield "| cluster | workload | planner alone | our plan exported | `--for` | any trainer |"
    yield "|---|---|---|---|---|---|"
    for cluster in CLUSTERS:
        for name, changes in (("as shipped", {}), ("trainer's defaults", ON)):
            model = with_workload(catalog.find_model(DLRM), changes)
            best = plan(model, catalog.find_cluster(cluster), time_limit=limit)
            text = found_for("dlrmv4", model, cluster, limit)
            row = (
                cluster, name, alone(best), exported(best, "dlrmv4"), text,
                f"{cost_of(best) / 1e9:.4g} ms",
            )  # fmt: skip
            print(*row, sep=" | ", flush=True)
            yield f"| {' | '.join(row)} |"


def others(limit: float) -> Iterator[str]:
    """The rows of the second table."""
    yield "| trainer | model | cluster | our plan exported | `--for` | any trainer |"
    yield "|---|---|---|---|---|---|"
    for trainer, name, cluster in OTHERS:
        model = catalog.find_model(name)
        best = plan(model, catalog.find_cluster(cluster), time_limit=limit)
        if best.outcome.placement is None:
            raise SystemExit(f"{name} on {cluster}: no plan within {limit} s; use a longer limit")
        text = found_for(trainer, model, cluster, limit)
        cost = f"{cost_of(best) / 1e9:.4g} ms"
        row = (trainer, name, cluster, exported(best, trainer), text, cost)
        print(*row, sep=" | ", flush=True)
        yield f"| {' | '.join(row)} |"


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", choices=("dlrmv4", "others"), help="one of the tables")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    stale = 0
    for name, rows in (("dlrmv4", dlrmv4), ("others", others)):
        if given.only not in (None, name):
            continue
        stale |= update(PAGE, {name: "\n".join(rows(given.time_limit))}, check=given.check)
    return stale


if __name__ == "__main__":
    sys.exit(main())
