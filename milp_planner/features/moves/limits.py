"""Plan again with a limit on how many tables, or bytes, may move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rich.console import RenderableType

from formulations import Instance, Placement
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Answer, Curve
from formulations.result.check import check, moved_bytes, moved_tables, value_of
from formulations.result.outcome import BoundSource, StoppedBy, found
from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.units import UNKNOWN, listed, show_amount, show_cost
from milp_planner.errors import BadInput
from milp_planner.features.moves.way import moves_of
from milp_planner.files import Facts
from milp_planner.plans.compile import (
    ClusterSource,
    Compiled,
    ModelSource,
)
from milp_planner.plans.placement import Plan, decode
from milp_planner.start.mapping import placed_on, start_on
from milp_planner.start.rows import StartSource

LIMITS = ("tables", "bytes")
#: Moved tables that the terminal names; --json has all.
MOST_NAMED = 12


@dataclass(frozen=True)
class ReplanStep:
    """The best plan within one limit."""

    limit: int
    """Most tables, or bytes, that may move."""
    moved_tables: int | None
    moved_bytes: int | None
    """Tables and bytes that do move; None without a plan."""
    status: str
    objective: int | None
    bound: int | None
    gap: float | None
    moved: tuple[str, ...] = ()
    """Names of the tables that move."""


@dataclass(frozen=True)
class ReplanInfo(Facts):
    """The objective at each limit on what may move."""

    by: str
    """``tables`` or ``bytes``: what ``limit`` counts."""
    objective_kind: str
    time_unit: str
    now: int | None
    """Objective of the plan to start from on the new model and cluster; None where it no longer
    fits. With ``start``, new tables take their places in the given plan."""
    new_tables: tuple[str, ...]
    """Tables missing from the plan to start from: placing them is free."""
    steps: tuple[ReplanStep, ...]
    """Ascending."""


def replan(
    current: Plan,
    limits: Sequence[int],
    budget: Budget,
    *,
    by: str = "tables",
    model: ModelSource | None = None,
    cluster: ClusterSource | None = None,
    start: StartSource | None = None,
) -> tuple[ReplanInfo, Plan | None]:
    """The trade-off between moving little and running fast, and the plan of the largest limit.

    Without ``start`` (what :func:`milp_planner.audit` takes), ``current`` is the plan to start
    from. With it, ``current`` is a better plan, and the searches also begin on the way to it.
    ``model`` and ``cluster`` are the current ones, by default the plan's. BadInput for a plan that
    places nothing, an unknown ``by`` (``tables`` or ``bytes``) or a negative limit.
    """
    if not current.tables:
        raise BadInput("the plan to start from places nothing, so nothing can move")
    if by not in LIMITS:
        raise BadInput(f"moves are limited by {by!r}; allowed: {', '.join(LIMITS)}")
    if not limits or min(limits) < 0:
        raise BadInput("limits on what moves: needs whole numbers from 0")
    grid = sorted({int(limit) for limit in limits})
    compiled, known = _known(current, model or current.model, cluster or current.cluster, start)
    base = compiled.instance
    now = known[0][2] if known else None
    if known and start is not None:
        known += _on_the_way(current, compiled, known[0][1], by, grid)
    answers = trade_off(base, by, grid, budget, known)
    there = {each.table for each in base.current}
    info = ReplanInfo(
        by, base.objective.value, base.time_unit, now,
        tuple(name for table, name in enumerate(base.table_names) if table not in there),
        tuple(_step(base, at, answer) for at, answer in answers.items()),
    )  # fmt: skip
    last = answers[grid[-1]]
    if last.placement is None:
        return info, None
    instance = limited(base, by, grid[-1])
    outcome = found(
        instance, budget.formulation, last.placement, StoppedBy.TIME_LIMIT,
        last.bound, BoundSource(budget.formulation, exact=False),
    )  # fmt: skip
    return info, decode(compiled.options, instance, outcome)


def _known(
    current: Plan, model: ModelSource, cluster: ClusterSource, start: StartSource | None
) -> tuple[Compiled, list[tuple[int, Placement, int]]]:
    """The Instance that counts moves, and the plan to start from if it fits."""
    kind = current.instance.objective.value
    if start is None:
        found = start_on(current, model, cluster, kind)
    else:
        found = start_on(start, model, cluster, kind, exact=True, later=current)
    whole = not found.displaced and -1 not in found.placement.options
    value = value_of(found.compiled.instance, found.placement) if whole else None
    return found.compiled, [] if value is None else [(0, found.placement, value)]


def _on_the_way(
    better: Plan, compiled: Compiled, start: Placement, by: str, limits: Sequence[int]
) -> list[tuple[int, Placement, int]]:
    """Within each limit, the best plan reached by the first moves to a better plan."""
    instance, after = compiled.instance, placed_on(compiled, better)
    if after is None or not check(instance, after).feasible:
        return []
    way, placements = moves_of(instance, start, after)
    found = []
    for limit in limits:
        near = [p for p in way.points[1:] if (p.tables if by == "tables" else p.bytes) <= limit]
        if near:
            best = min(near, key=lambda p: p.objective)
            found.append((limit, placements[best.moves - 1], best.objective))
    return found


def trade_off(
    instance: Instance,
    by: str,
    limits: Sequence[int],
    budget: Budget,
    known: Sequence[tuple[int, Placement, int]] = (),
) -> dict[int, Answer]:
    """The best plan within each limit on moves from the instance's ``current``."""
    curve = Curve(
        lambda limit: limited(instance, by, limit), lambda plan: _needs(instance, by, plan), budget
    )
    for limit, placement, objective in known:
        curve.take_plan(limit, placement, objective)
    return curve.sweep(limits)


def _needs(instance: Instance, by: str, placement: Placement) -> int:
    """The least limit that a plan keeps."""
    tables, size = _moved(instance, placement)
    return len(tables) if by == "tables" else size


def limited(instance: Instance, by: str, limit: int) -> Instance:
    """The instance with one limit on moves."""
    if by == "tables":
        return replace(instance, max_moved_tables=limit, max_moved_bytes=None)
    return replace(instance, max_moved_tables=None, max_moved_bytes=limit)


def _step(instance: Instance, limit: int, answer: Answer) -> ReplanStep:
    plan = answer.placement
    tables, size = (None, None) if plan is None else _moved(instance, plan)
    return ReplanStep(
        limit=limit,
        moved=tuple(instance.table_names[t] for t in tables or ()),
        moved_tables=None if tables is None else len(tables),
        moved_bytes=size,
        status=answer.status,
        objective=answer.objective,
        bound=None if answer.infeasible else answer.bound,
        gap=answer.gap,
    )


def _moved(instance: Instance, placement: Placement) -> tuple[list[int], int]:
    """Which tables move, and their bytes."""
    tables = moved_tables(instance, placement)
    return tables, moved_bytes(instance, placement, tables)


def draw_replan(info: ReplanInfo) -> RenderableType:
    """The terminal's table: one row per limit."""
    now = "no longer fits" if info.now is None else show_cost(info.now, info.time_unit)
    new = [f"new tables, free to place: {', '.join(info.new_tables[:12])}"]
    named = []
    for before, step in pairwise((None, *info.steps)):
        if step is not None and step.moved and (before is None or before.moved != step.moved):
            limit = show_amount(step.limit, info.time_unit) if info.by == "bytes" else step.limit
            named.append(f"moved within limit {limit}: {listed(step.moved, MOST_NAMED)}")
    title = f"re-plan: the plan in production: {now}"
    return headed(title, replan_grid(info), *named, *(new if info.new_tables else []))


def replan_grid(info: ReplanInfo) -> Grid:
    """One row per limit."""
    unit = info.time_unit
    head = ("#may move", "#tables", "#bytes", f"#{info.objective_kind}", "#change", "#gap",
            "status")  # fmt: skip
    rows = [
        (
            Cell.amount(s.limit, unit) if info.by == "bytes" else Cell.count(s.limit),
            Cell.count(s.moved_tables),
            Cell.amount(s.moved_bytes, unit),
            Cell.cost(s.objective, unit),
            change_text(s.objective, info.now),
            Cell.gap(s.gap),
            s.status,
        )
        for s in info.steps
    ]
    return Grid.of("replan-steps", "limits", "The best plan within each limit", head, rows)


def change_text(value: int | None, now: int | None) -> str:
    """The change from now, in percent; ≈ where it rounds to 0.0%."""
    if value is None or now is None:
        return UNKNOWN
    if value == now:
        return "="
    percent = 100 * (value - now) / max(1, abs(now))
    return f"{percent:+.1f}%" if abs(percent) >= 0.05 else "≈"
