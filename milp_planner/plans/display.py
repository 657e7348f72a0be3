"""A plan in a notebook: a few lines of text, a short table, a data frame, a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.instance import Scope
from formulations.instance.restrictions import restrictions
from formulations.result.outcome import standing
from milp_planner.drawing.grid import Grid
from milp_planner.drawing.units import memory_name, show_cost, show_gap, show_ranks
from milp_planner.errors import BadInput
from milp_planner.plans.compile import memories, per_memory
from milp_planner.pricing.options import TIERED
from milp_planner.pricing.units import FloatArray

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan

#: Most tables listed by a repr and by an HTML repr; of the others they show the number.
LINES, ROWS = 6, 20
HEADERS = ("table", "sharding", "mode", "ratio", "ranks")


def headline(plan: Plan) -> str:
    """Certified status, objective, bound, gap and restrictions in one line."""
    outcome, unit = plan.outcome, plan.instance.time_unit
    parts = [
        f"{plan.model.name} on {plan.cluster.name}: {standing(outcome)}",
        f"{plan.instance.objective.value} {show_cost(outcome.objective, unit)}",
        f"bound {show_cost(outcome.bound, unit)}",
        f"gap {show_gap(outcome.gap)}",
    ]
    keys = [f"restricted by {text.partition(':')[0]}" for text in restrictions(plan.instance)]
    return ", ".join([*(parts if outcome.objective is not None else parts[:1]), *keys])


def as_text(plan: Plan) -> str:
    """At most ten lines: the headline, then the first tables."""
    lines = [
        f"  {name}: {sharding} {mode} {ratio} on ranks {ranks}".replace("  on", " on")
        for name, sharding, mode, ratio, ranks in _rows(plan, LINES)
    ]
    return "\n".join([f"Plan of {headline(plan)}", *lines, *_rest(plan, LINES)])


def as_html(plan: Plan) -> str:
    """The headline and a table of the first tables, escaped."""
    rest = "".join(f"<p>{escape(line.strip())}</p>" for line in _rest(plan, ROWS))
    table = Grid.plain(HEADERS, _rows(plan, ROWS)).html()
    return f"<p><b>{escape(headline(plan))}</b></p>{table}{rest}"


def to_frame(plan: Plan) -> Any:
    """One row per table, as a pandas DataFrame indexed by the table's name; ImportError without it.

    Columns: option, kind, sharding_type, mode, cache_ratio (float), column_shards, dist_type, ranks
    (list), hbm_bytes, ddr_bytes and ssd_bytes (over all its shards), slowest_rank_ms (its largest
    time on one rank).
    """
    try:
        import pandas
    except ModuleNotFoundError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    rows = [_record(plan, name.name) for name in plan.tables]
    return pandas.DataFrame(rows).set_index("table") if rows else pandas.DataFrame()


def _record(plan: Plan, name: str) -> dict[str, object]:
    placed, by_rank, used = plan.table(name), Counter[int](), Counter[str]()
    for shard in plan.shards(name):
        by_rank[shard.rank] += sum(shard.cost)
        used.update(shard.use)
    held = per_memory(used)
    return {
        "table": name,
        "option": placed.option,
        "kind": placed.kind,
        "sharding_type": placed.sharding_type,
        "mode": placed.mode,
        "cache_ratio": float(placed.cache_ratio),
        "column_shards": placed.column_shards,
        "dist_type": placed.dist_type,
        "ranks": [rank for block in placed.ranks for rank in block],
        "hbm_bytes": held.get("hbm", 0),
        "ddr_bytes": held.get("ddr", 0),
        "ssd_bytes": held.get("ssd", 0),
        "slowest_rank_ms": max(by_rank.values(), default=0) / 1e9,
    }


def _rows(plan: Plan, most: int) -> list[Sequence[str]]:
    ranks = plan.cluster.num_ranks
    return [
        (
            t.name,
            t.sharding_type if t.column_shards == 1 else f"{t.sharding_type}:{t.column_shards}",
            t.mode,
            str(t.cache_ratio) if t.mode in TIERED else "",
            show_ranks([rank for block in t.ranks for rank in block], ranks),
        )
        for t in plan.tables[:most]
    ]


def _rest(plan: Plan, most: int) -> list[str]:
    left = len(plan.tables) - most
    return [f"  … and {left:,} more tables"] if left > 0 else []


def draw_plan(plan: Plan) -> Any:
    """Two panels over the ranks: milliseconds stacked by phase, memory in percent.

    Returns a matplotlib figure, which a notebook displays and ``savefig`` writes. ImportError
    without matplotlib, BadInput for a plan without a placement.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError("plot() needs matplotlib: pip install 'milp-planner[plot]'") from None

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    verdict, instance = plan.verdict, plan.instance
    if verdict is None or verdict.loads is None:
        raise BadInput("plot: the plan places nothing")
    figure = Shown(figsize=(9, 5), layout="constrained")
    times, memory = figure.subplots(2, 1, sharex=True)
    ranks = np.arange(instance.num_ranks)
    below = np.zeros(len(ranks))
    for phase, name in enumerate(instance.phases):
        height = verdict.loads.cost[:, phase] / 1e9
        times.bar(ranks, height, bottom=below, width=0.9, label=name)
        below += height
    times.set_ylabel("ms")
    times.set_title(f"{plan.model.name} on {plan.cluster.name}: time of every rank", loc="left")
    shares: dict[str, FloatArray] = {}  # the fullest of several moments or collectives
    for index, resource in memories(instance):
        use = verdict.loads.use[index]
        share = 100 * use / np.maximum(1, resource.capacity)
        if resource.scope == Scope.MACHINE:
            share = share[instance.machine_of]
        if resource.scope != Scope.CLUSTER:
            label = f"{memory_name(resource.name).upper()} of the {resource.scope.value}"
            shares[label] = np.maximum(share, shares.get(label, 0.0))
    for label, share in shares.items():
        memory.plot(ranks, share, ".-", drawstyle="steps-mid", label=label)
    memory.set(ylabel="% full", xlabel="rank", ylim=(0, 105))
    memory.xaxis.get_major_locator().set_params(integer=True)
    for axis in (times, memory):
        axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
