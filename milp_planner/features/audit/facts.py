"""The figures of an audit, and how the terminal draws them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from formulations import Instance
from formulations.result.check import Loads
from milp_planner.drawing.units import show_amount, show_bytes, show_cost, show_gap, show_share
from milp_planner.features.moves.way import MovesInfo, moves_rows, stuck_text
from milp_planner.features.plan.use import Contributions, Share, Use, uses_of
from milp_planner.features.plan.verdict import MEANING
from milp_planner.files import Facts

#: Most places, ranks and tables to name.
MOST_NAMED = 5


@dataclass(frozen=True)
class SlowRank:
    """A rank that others wait for."""

    rank: int
    phases: tuple[str, ...]
    """The phases in which it is the slowest. Under ``busiest_rank``, all phases: every rank above
    the best known plan is listed."""
    excess: int
    """Its time above the mean of all ranks, summed over those phases."""
    tables: tuple[Share, ...]
    """The tables that take most of its time in those phases."""


@dataclass(frozen=True)
class Gain:
    """A table that costs less in the best plan found."""

    table: str
    option: str
    better: str
    """Its option in the audited plan and in the best one."""
    cost: int
    better_cost: int
    """Its largest time on one rank in each plan."""


@dataclass(frozen=True)
class AuditInfo(Facts):
    """All figures of an audit; None means unknown."""

    fits: bool
    violations: tuple[str, ...]
    objective_kind: str
    objective: int | None
    """Objective of the audited plan, whether or not it fits."""
    objectives: dict[str, int]
    bound: int | None
    """Lower bound on every plan of these tables on this cluster."""
    bound_method: str | None
    certified_bound: int | None
    """The largest bound proved by a certificate."""
    best: int | None
    """Objective of the best plan found."""
    best_status: str
    best_standing: str
    certified_distance: float | None
    distance: float | None
    saving: float | None
    """(objective − certified bound), (objective − bound) and (objective − best), as shares of the
    objective."""
    as_run: dict[str, Any] | None
    """Objectives of what the runtime makes of a plan that mixes cache ratios in a fusion group, and
    whether that fits."""
    overfull: tuple[Use, ...]
    slow: tuple[SlowRank, ...]
    gains: tuple[Gain, ...]
    """The tables on which the best plan found saves most, if it is better."""
    way: MovesInfo | None
    """The moves to the best plan found, in an order that fits at every step."""
    time_unit: str


def overfull(instance: Instance, loads: Loads, tables: Contributions) -> list[Use]:
    """The places over their capacity, the worst first, with the tables that fill them."""
    found = []
    for index, places in enumerate(uses_of(instance, loads)):
        for use in (each for each in places if each.over):
            total = tables.use[:, _ranks_of(instance, use), index].sum(axis=1)
            if use.scope == "cluster":
                total = total + tables.off[:, index]
            found.append(replace(use, tables=tables.largest(total, MOST_NAMED)))
    return sorted(found, key=lambda place: place.headroom)


def _ranks_of(instance: Instance, use: Use) -> list[int]:
    if use.scope == "rank":
        return [use.place]
    everywhere = range(instance.num_ranks)
    return list(instance.machines[use.place] if use.scope == "machine" else everywhere)


def slow(
    instance: Instance, loads: Loads, tables: Contributions, best: int | None
) -> list[SlowRank]:
    """Ranks that set the objective, by the time they add; none under ``total``.

    Under ``busiest_rank``, they are all ranks above the best known plan.
    """
    kind = instance.objective.value
    cost = loads.cost
    if kind == "total" or instance.num_ranks == 1:
        return []
    if kind == "busiest_rank":
        cost = cost.sum(axis=1, keepdims=True)
    hidden = instance.hidden_time if instance.by_phase else 0
    excess = cost - np.maximum(cost.mean(axis=0), hidden)
    critical = (cost == cost.max(axis=0)) & (excess > 0)
    if kind == "busiest_rank" and best is not None:
        critical |= (cost > best) & (excess > 0)
    added = np.where(critical, excess, 0).sum(axis=1)
    ranks = [int(r) for r in np.argsort(-added, kind="stable") if added[r] > 0]
    return [_slow_rank(instance, rank, critical[rank], int(added[rank]), tables) for rank in ranks]


def _slow_rank(
    instance: Instance, rank: int, critical: NDArray[np.bool_], added: int, tables: Contributions
) -> SlowRank:
    phases = np.flatnonzero(critical)
    if instance.objective.value == "busiest_rank":
        phases = np.arange(len(instance.phases))
    amounts = tables.cost[:, rank][:, phases].sum(axis=1)
    names = tuple(instance.phases[p] for p in phases)
    return SlowRank(rank, names, added, tables.largest(amounts, MOST_NAMED))


def draw_audit(info: AuditInfo, title: str) -> RenderableType:
    """Whether it fits, its distance from the bound, and the ranks and tables to blame."""
    colour = "green" if info.fits else "red"
    lines = [Text("FITS" if info.fits else "DOES NOT FIT", style=f"bold {colour}")]
    lines += map(Text, (*_violations(info), *_distance(info), *_as_run(info)))
    lines.append(Text(f"{info.objective_kind}: {MEANING[info.objective_kind]}", style="dim"))
    panel = Panel(
        Text("\n").join(lines), title=title, title_align="left", border_style=colour, width=100
    )
    below = (*_full(info), *_show_slow(info), *_show_gains(info), *_way(info))
    return Group(panel, *map(Text, below))


def _violations(info: AuditInfo) -> Iterator[str]:
    """The violations in readable units; the check's own sentences (in --json) are in bytes."""
    full = {
        f"{place.resource} of {place.at.removeprefix('the ')}:": f"{place.resource} of {place.at}: "
        f"{show_amount(place.used, info.time_unit)} of "
        f"{show_amount(place.capacity, info.time_unit)}, {place.room(info.time_unit)}"
        for place in info.overfull
    }
    for violation in info.violations[:MOST_NAMED]:
        where = violation.partition(":")[0] + ":"
        yield full.get(where, violation)
    if len(info.violations) > MOST_NAMED:
        yield f"… and {len(info.violations) - MOST_NAMED} more (--json lists them all)"


def _distance(info: AuditInfo) -> Iterator[str]:
    cost = show_cost(info.objective, info.time_unit)
    fit = "" if info.fits else " (as if it fitted)"
    yield f"{info.objective_kind} {cost}{fit}" + (
        "; no bound is known" if info.bound is None else ""
    )
    if info.certified_bound is not None:
        bound = show_cost(info.certified_bound, info.time_unit)
        distance = _relative(info.certified_distance)
        yield f"certified: no plan is below {bound}; distance {distance}"
    if info.bound is not None and info.bound != info.certified_bound:
        bound, distance = show_cost(info.bound, info.time_unit), _relative(info.distance)
        yield f"proved: no plan is below {bound} ({info.bound_method}); distance {distance}"
    if info.best is None:
        none = f"no plan exists at all ({info.best_standing})"
        word = {"infeasible": none, "unknown": "no plan was found to compare"}
        yield word.get(info.best_status, "no better plan is known")
    elif info.saving is not None and info.saving > 0:
        best = show_cost(info.best, info.time_unit)
        yield f"best plan found: {best} ({info.best_standing}), {_relative(info.saving)} less"
    elif info.saving is not None and info.saving < 0:
        best = show_cost(info.best, info.time_unit)
        yield f"best plan that fits: {best} ({info.best_standing})"
    else:
        yield "no better plan was found"


def _relative(value: float | None) -> str:
    if value is not None and value < 0:
        return f"{show_gap(value)} (it is below the bound because it breaks a constraint)"
    return show_gap(value)


def _as_run(info: AuditInfo) -> Iterator[str]:
    if info.as_run is None:
        return
    cost = show_cost(info.as_run["objectives"].get(info.objective_kind), info.time_unit)
    fits = "fits" if info.as_run["fits"] else "does not fit"
    yield f"the runtime gives every table of a fusion group one ratio: {cost}, which {fits}"


def _full(info: AuditInfo) -> Iterator[str]:
    for place in info.overfull[:MOST_NAMED]:
        share = show_share(place.used, place.capacity)
        tables = ", ".join(f"{s.table} {show_bytes(s.amount)}" for s in place.tables)
        yield (
            f"to blame: {place.at}, {place.resource} {show_bytes(place.used)} of "
            f"{show_bytes(place.capacity)} ({share}), {place.room('ps')}: {tables}"
        )
    if len(info.overfull) > MOST_NAMED:
        yield f"… and {len(info.overfull) - MOST_NAMED} more places over capacity"


def _show_slow(info: AuditInfo) -> Iterator[str]:
    for rank in info.slow[:MOST_NAMED]:
        yield _show_slow_rank(info, rank)
    if len(info.slow) > MOST_NAMED:
        what = "above the best plan" if info.objective_kind == "busiest_rank" else "others wait for"
        yield f"… and {len(info.slow) - MOST_NAMED} more ranks {what}"


def _show_slow_rank(info: AuditInfo, rank: SlowRank) -> str:
    busiest = info.objective_kind == "busiest_rank"
    where = "slow" if busiest else f"slowest in {', '.join(rank.phases)}"
    excess = show_cost(rank.excess, info.time_unit)
    tables = ", ".join(f"{s.table} {show_cost(s.amount, info.time_unit)}" for s in rank.tables)
    return f"to blame: rank {rank.rank}, {where}, {excess} above the mean rank: {tables}"


def _show_gains(info: AuditInfo) -> Iterator[str]:
    for gain in info.gains:
        now, then = (show_cost(v, info.time_unit) for v in (gain.cost, gain.better_cost))
        better = "on other ranks" if gain.option == gain.better else gain.better
        yield f"better: {gain.table} from {gain.option} ({now}) to {better} ({then})"


def _way(info: AuditInfo) -> Iterator[str]:
    """What the first moves gain, and whether all of them can be made one after the other."""
    if info.way is None or info.way.way is None:
        return
    total = info.way.points[-1].moves if info.way.points else 0
    for moves, _, size, cost, share in moves_rows(info.way):
        yield f"after {moves} of {total:,} moves ({size}): {cost}, {share} of the gain"
    if info.way.way.stuck:
        yield stuck_text(info.way.way.stuck, MOST_NAMED)
