"""Which plans change when Criteo's measured frequencies replace Zipf 1.05.

    python benchmarks/frequencies/run.py          # solves and writes docs/trust/frequencies.md

Plans criteo-terabyte on one H100 with less and less HBM, once with every table's access as the
model has it and once with Zipf 1.05 in all tables, and prices each plan under the other's access.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from milp_planner import Plan, plan
from milp_planner.inputs import Cluster, Model, Table
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import hot_share, popularity, unique_fraction
from scenarios.catalog import find_cluster, find_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trust" / "frequencies.md"
HBM = ("80GiB", "40GiB", "20GiB", "10GiB")
LIMIT = 20.0
"""Seconds of a solve."""
ROWS, BATCH = 40_000_000, 8192
ZIPF = {"kind": "zipf", "alpha": 1.05}
CURVES = {
    "Zipf 1.05": ZIPF,
    "criteo-large": {"kind": "frequency", "curve": "criteo-large"},
    "criteo": {"kind": "frequency", "curve": "criteo"},
}


def statistics() -> str:
    """What each access says of one table of 40M rows."""
    ratios = np.array([0.001, 0.01, 0.1])
    head = " | ".join(f"cache of {100 * x:g}%" for x in ratios)
    lines = [f"| access | {head} | distinct ids of 8,192 | hot rank of 8, over the mean |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for name, access in CURVES.items():
        table = Table.from_dict({"name": "t", "rows": ROWS, "dim": 128, "access": access})
        policy = CachePolicy("CACHING", False, 8 * BATCH)
        hits = hit_ratios(table.access, ROWS, ratios, policy).values.tolist()
        unique = unique_fraction(table.access, ROWS, BATCH)
        hot = 8 * hot_share(popularity(table.access, ROWS), 8)
        cells = [f"{h:.3f}" for h in hits] + [f"{unique:.1%}", f"{hot:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plans() -> str:
    """Step time and modes of both plans for each HBM, and what the wrong access costs."""
    lines = [
        "| HBM | planned for | step time | of the other's plan under this access "
        "| modes of the eight large tables |",
        "|---|---|---|---|---|",
    ]
    measured, assumed = find_model("criteo-terabyte"), as_zipf(find_model("criteo-terabyte"))
    for hbm in HBM:
        cluster = with_hbm(hbm)
        both = {"criteo-large": measured, "Zipf 1.05": assumed}
        found = {name: plan(model, cluster, time_limit=LIMIT) for name, model in both.items()}
        for name, other in (("criteo-large", "Zipf 1.05"), ("Zipf 1.05", "criteo-large")):
            cost = under(found[other], found[name])
            lines.append(
                f"| {hbm} | {name} | {milliseconds(found[name])} | {cost} | {modes(found[name])} |"
            )
    return "\n".join(lines)


def as_zipf(model: Model) -> Model:
    """The model with Zipf 1.05 in every table."""
    data = model.to_dict()
    for table in data["tables"]:
        table["access"] = ZIPF
    return Model.from_dict(data)


def with_hbm(hbm: str) -> Cluster:
    """One rank of 8xh100 with so much HBM."""
    data = find_cluster("8xh100").to_dict()
    for machine in data["machines"]:
        machine["ranks"] = [{**machine["ranks"][0], "hbm": hbm}]
    return Cluster.from_dict(data)


def milliseconds(found: Plan) -> str:
    """Step time, and the gap unless it is proved."""
    gap = found.outcome.gap
    shown = "" if not gap else f" (gap {100 * gap:.1f}%)"
    return f"{found.objective_ms:.2f} ms{shown}"


def under(other: Plan, mine: Plan) -> str:
    """Step time of another plan's options and ranks at my prices."""
    from formulations.result.check import check

    placement = other.outcome.placement
    assert placement is not None
    same = [mine.instance.option_names[o] for o in placement.options.tolist()]
    theirs = [other.instance.option_names[o] for o in placement.options.tolist()]
    assert same == theirs
    result = check(mine.instance, placement)
    if not result.feasible:
        return "does not fit"
    return f"{result.objectives['step_time'] / 1e9:.2f} ms"


def modes(found: Plan) -> str:
    """Modes and ratios of the large tables, counted."""
    large = [found.table(t.name) for t in found.model.tables if t.rows > 39_060]
    said = Counter(
        t.mode + (f" {float(t.cache_ratio):g}" if t.mode == "CACHING" else "") for t in large
    )
    return ", ".join(f"{count} × {what}" for what, count in sorted(said.items()))


if __name__ == "__main__":
    sys.exit(update(PAGE, {"statistics": statistics(), "plans": plans()}))
