"""Busiest rank and critical path: what minimising one costs in the other, on random models.

``python benchmarks/critical-path/run.py`` plans the models of the tests' generator three ways
(TorchRec's default planner, and ours under each objective), rates each plan by TorchRec's own two
figures, and stores them; ``… page`` puts the table into docs/torchrec.md.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results"
RATINGS = ("busiest_rank", "critical_path")
LIMIT = 5.0


def run(count: int) -> dict[str, Any]:
    """All models: figures in ms, and how far our objectives are from TorchRec's figures."""
    from importlib.metadata import version

    rows = []
    for seed in range(count):
        rows.append(one(seed))
        print(json.dumps(rows[-1]), flush=True)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "torchrec": version("torchrec"),
        "ortools": version("ortools"),
        "time_limit": LIMIT,
        "models": rows,
    }


def one(seed: int) -> dict[str, Any]:
    """One random model planned three ways."""
    from torchrec.distributed.planner import EmbeddingShardingPlanner
    from torchrec.distributed.planner.types import PlannerError

    from formulations import Settings
    from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan
    from tests.milp_planner.integrations.torchrec.models import random_case

    case = random_case(seed)
    common = {
        "topology": case.topology,
        "batch_size": case.batch_size,
        "constraints": case.constraints,
        "storage_reservation": case.reservation,
        "stats": [],
    }
    found: dict[str, Any] = {"seed": seed}
    stock = EmbeddingShardingPlanner(**common)
    try:
        stock.plan(case.module, case.sharders)
        found["torchrec"] = ratings(stock._best_plan, case.topology)
    except PlannerError as error:
        found["torchrec"] = error.error_type.value
    for objective in RATINGS:
        settings = Settings(time_limit=LIMIT, workers=2, polish=False)
        ours = MilpShardingPlanner(**common, settings=settings, objective=objective)
        try:
            ours.plan(case.module, case.sharders)
        except NoPlan as error:
            assert error.outcome is not None
            found[objective] = error.outcome.status.value
            continue
        assert ours.outcome is not None and ours.outcome.objective is not None
        rated = ratings(ours.best_plan, case.topology)
        difference = abs(ours.outcome.objective / 1e9 / rated[objective] - 1)
        found[objective] = {
            **rated, "status": ours.outcome.status.value, "gap": ours.outcome.gap,
            "relative_difference": difference,
        }  # fmt: skip
    return found


def ratings(plan: list[Any], topology: Any) -> dict[str, float]:
    """TorchRec's own two figures of a plan, ms."""
    from milp_planner.integrations.torchrec.rating import torchrec_rating

    return {name: torchrec_rating(name, plan, topology) for name in RATINGS}


def lines(document: dict[str, Any]) -> Iterator[str]:
    """The page's table: every plan's figures over the best of each kind."""
    models = document["models"]
    planned = [m for m in models if isinstance(m["critical_path"], dict)]
    both = [m for m in planned if isinstance(m["torchrec"], dict)]
    yield (
        f"{document['date']}, TorchRec {document['torchrec']}: {len(models)} models, "
        f"{len(planned)} with a plan (the others proved to have none), of which TorchRec's default "
        f"planner finds one for {len(both)}."
    )
    worst = max(m[r]["relative_difference"] for m in planned for r in RATINGS)
    proved = sum(m[r]["status"] == "optimal" for m in planned for r in RATINGS)
    yield (
        f"Our objective and TorchRec's figure differ by at most {worst:.1e}; "
        f"{proved} of {2 * len(planned)} plans are proved optimal in {document['time_limit']:g} s."
    )
    ratios = {r: [m[r][r] / m["torchrec"][r] for m in both] for r in RATINGS}
    worse, better = (
        [sum(judge(x) for x in ratios[r]) for r in RATINGS]
        for judge in (lambda x: x > 1 + 1e-6, lambda x: x < 1 - 1e-6)
    )
    yield (
        f"Under `busiest_rank` and `critical_path` our plan is better than TorchRec's for "
        f"{better[0]} and {better[1]} models, worse for {worse[0]} and {worse[1]}."
    )
    yield ""
    yield "| over our best | busiest rank: mean, worst | critical path: mean, worst |"
    yield "|---|---|---|"
    names = {"torchrec": "TorchRec's default planner"}
    for who, rows in (("torchrec", both), *((r, planned) for r in RATINGS)):
        cells = []
        for rating in RATINGS:
            over = [m[who][rating] / m[rating][rating] for m in rows]
            cells.append(f"{statistics.geometric_mean(over):.3f}, {max(over):.3f}")
        label = names.get(who, f'`objective="{who}"`')
        yield f"| {label} | {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Measure and store, or write what is stored into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"], nargs="?", default="run")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    chosen = parser.parse_args(arguments)
    if chosen.what == "page":
        text = "\n".join(lines(stored(RESULTS)))
        return update(ROOT / "docs" / "torchrec.md", {"critical-path": text}, check=chosen.check)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    document = run(chosen.count)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{document['date']}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
