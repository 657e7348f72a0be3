"""Replay lookups through a plan's tiers and routing; compare predicted with simulated.

python benchmarks/simulator/simulate.py plan.json [--trace TABLE=FILE] [--json]
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.simulator.one_table import check_keys
from benchmarks.simulator.streams import LOOKUPS, read_keys, with_skew
from benchmarks.simulator.whole import SimulationInfo, TableInfo, simulate_plan
from cuda_routing.errors import RoutingError
from milp_planner.cli import console, failures
from milp_planner.cli.options import JsonOption, argument, option, positive, whole
from milp_planner.drawing.grid import Grid
from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import read_plan
from milp_planner.pricing.units import IntArray

MOST_ROWS = 40


def run(
    plan: Annotated[Path, argument("PLAN", "plan.json, as plan writes it.")],
    batches: Annotated[int, option("--batches N", "Steps to simulate.", whole(1, 10_000))] = 20,
    seed: Annotated[
        int, option("--seed N", "Random seed for drawing lookups.", whole(0, 2**31 - 1))
    ] = 0,
    trace: Annotated[
        list[str] | None,
        option(
            "--trace TABLE=FILE",
            "Keys of a table in order (.npy, raw .bin/.i64/.i32, .txt/.csv, optionally .gz), to "
            "use instead of lookups drawn from its statistics; may be repeated.",
        ),
    ] = None,
    skew: Annotated[
        str | None,
        option(
            "--skew NAME",
            "Skew of lookups in tables without statistics: dlrm-2021 or dlrm-2022 (published, from "
            "production-like tables); default: all rows equally often.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        option(
            "--time-limit SECONDS",
            "Start no further table after this; tables finished by then are kept. Default: none.",
            positive,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Replay lookups through a plan's tiers and routing; compare predicted with simulated.

    Covers hit ratios by tier and how evenly the routing loads the ranks. Lookups are drawn from
    each table's access statistics or read from traces. Large tables are simulated on a sample of
    their rows, and the output says so.
    """
    found = assume(read_plan(plan), skew)
    traces = read_traces(trace or [], found.model)
    count = itertools.count(1)

    with console.err().status("simulating", spinner="line") as status:

        def tell(name: str) -> None:
            status.update(f"simulated {next(count):,} of {len(found.tables):,} tables, last {name}")

        info = simulate_plan(found, batches, seed, traces, tell, time_limit)
    console.tell(json, info.to_dict, lambda: draw(info))


def assume(plan: Plan, skew: str | None) -> Plan:
    """The plan with published skew for tables without statistics; its prices do not change."""
    if skew is None:
        return plan
    if skew not in LOOKUPS:
        raise BadInput(f"--skew: found {skew!r}; allowed: {', '.join(LOOKUPS)}")
    return replace(plan, model=with_skew(plan.model, skew))


def read_traces(given: list[str], model: Model) -> dict[str, IntArray]:
    """Read the keys of tables from arguments ``TABLE=FILE``."""
    tables = {table.name: table for table in model.tables}
    traces: dict[str, IntArray] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise BadInput(f"--trace: found {text!r}; allowed: TABLE=FILE")
        if name in traces:
            raise BadInput(f"--trace: table {name!r} is named twice")
        try:
            traces[name] = read_keys([Path(file)])
        except RoutingError as error:
            raise BadInput(f"--trace: {error}") from None
        if name in tables:
            check_keys(tables[name], traces[name], f"--trace: {file}")
    return traces


def draw(info: SimulationInfo) -> list[RenderableType]:
    """Draw a table of tables, the totals, and notes on the figures."""
    shown = sorted(info.tables, key=lambda t: (t.hit is None, -t.ids))[:MOST_ROWS]
    parts: list[RenderableType] = [
        f"{info.name}: {info.batches} steps, seed {info.seed}; predicted → simulated",
        _table(shown),
        f"ids of the busiest rank over the mean, all tables  {info.predicted_hot:.3f} → "
        f"{info.hot:.3f} (peak {info.hot_peak:.3f})",
    ]
    if info.left:
        parts.insert(1, f"{info.left:,} tables with the fewest lookups are left out: out of time")
    if len(info.tables) > len(shown):
        parts.append(f"{len(info.tables) - len(shown)} more tables: --json lists all")
    return [*parts, *_notes(info)]


def _table(tables: list[TableInfo]) -> RenderableType:
    head = ("table", "mode", "#hit ratio", "#source", "#hot rank (peak)", "#HBM rows a rank",
            "#sample")  # fmt: skip
    rows = []
    for row in tables:
        tiered = row.hit is not None
        rows.append((
            row.name,
            f"{row.mode} {row.cache_ratio}" if tiered else row.mode,
            f"{row.predicted_hit:.3f} → {row.hit:.3f}" if tiered else "",
            row.hit_source if tiered else "",
            f"{row.predicted_hot:.2f} → {row.hot:.2f} ({row.hot_peak:.2f})",
            f"{row.predicted_slots:,.0f} → {row.held:,.0f}" if row.mode != "HOST_ONLY" else "",
            "all rows" if row.sampled == 1 else f"{row.sampled:.2%}",
        ))  # fmt: skip
    return Grid.plain(head, rows, {"table": 12})


def _notes(info: SimulationInfo) -> list[str]:
    notes = []
    if any(t.sampled < 1 for t in info.tables):
        notes.append(
            "Sampled tables: one in several rows, by popularity, stands for the others; lookups "
            "and slots are scaled alike (SHARDS, FAST 2015)."
        )
    if any(t.exchange_part < 1 for t in info.tables):
        notes.append("Large batches: the exchange was simulated with part of each rank's lookups.")
    return [*notes, *_lost(info)]


def _lost(info: SimulationInfo) -> list[str]:
    """Tables that lose rows, the worst first, and how to keep the rows."""
    lost = sorted((t for t in info.tables if t.lost >= 1), key=lambda t: -t.lost)
    if not lost:
        return []
    named = listed([f"{table.name} {table.lost:,.0f}" for table in lost], 6)
    return [
        f"Rows per step evicted from full buckets and lost: {named}. Fewer are lost with a "
        "larger bucket_capacity, or with more rows (the table's capacity) than different ids."
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; failures are sentences and exit codes, as of milp-planner's commands."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(run)
    try:
        app(args=arguments, standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return failures.report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
