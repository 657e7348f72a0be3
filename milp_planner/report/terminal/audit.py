"""An audit on a terminal: the answer first, then who is to blame."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from milp_planner.report.audit import MOST, AuditInfo, Overfull, Share, SlowRank
from milp_planner.report.units import show_bytes, show_cost, show_gap, show_share
from milp_planner.report.verdict import MEANING


def draw_audit(info: AuditInfo, title: str) -> RenderableType:
    """Fits or not, distance to the bound, the ranks and tables behind both."""
    colour = "green" if info.fits else "red"
    lines = [Text("FITS" if info.fits else "DOES NOT FIT", style=f"bold {colour}")]
    lines += [Text(line) for line in (*_violations(info), *_distance(info), *_as_run(info))]
    lines.append(Text(f"{info.objective_kind}: {MEANING[info.objective_kind]}", style="dim"))
    panel = Panel(
        Text("\n").join(lines), title=title, title_align="left", border_style=colour, width=100
    )
    return Group(panel, *(Text(line) for line in (*_full(info), *_slow(info), *_gains(info))))


def _violations(info: AuditInfo) -> Iterator[str]:
    yield from info.violations[:MOST]
    if len(info.violations) > MOST:
        yield f"… and {len(info.violations) - MOST} more (--json lists them all)"


def _distance(info: AuditInfo) -> Iterator[str]:
    cost = show_cost(info.objective, info.time_unit)
    fit = "" if info.fits else " (as if it fitted)"
    if info.bound is None:
        yield f"{info.objective_kind} {cost}{fit}; no bound is known"
    else:
        bound = show_cost(info.bound, info.time_unit)
        yield (
            f"{info.objective_kind} {cost}{fit}; proved: no plan is below {bound} "
            f"({info.bound_method}); distance {_relative(info.distance)}"
        )
    if info.best is None:
        word = {"infeasible": "no plan exists at all", "unknown": "no plan was found to compare"}
        yield word.get(info.best_status, "no better plan is known")
    elif info.saving is not None and info.saving > 0:
        best = show_cost(info.best, info.time_unit)
        yield f"best plan found: {best} ({info.best_status}), {_relative(info.saving)} less"
    elif info.saving is not None and info.saving < 0:
        best = show_cost(info.best, info.time_unit)
        yield f"best plan that fits: {best} ({info.best_status})"
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
    for place in info.overfull[:MOST]:
        yield _overfull(place)
    if len(info.overfull) > MOST:
        yield f"… and {len(info.overfull) - MOST} more places over capacity"


def _overfull(place: Overfull) -> str:
    at = "the cluster" if place.scope == "cluster" else f"{place.scope} {place.place}"
    share = show_share(place.used, place.capacity)
    tables = ", ".join(f"{s.table} {show_bytes(s.amount)}" for s in place.tables)
    return (
        f"to blame: {at}, {place.resource} {show_bytes(place.used)} of "
        f"{show_bytes(place.capacity)} ({share}), {show_bytes(place.over)} too much: {tables}"
    )


def _slow(info: AuditInfo) -> Iterator[str]:
    for rank in info.slow[:MOST]:
        yield _slow_rank(info, rank)
    if len(info.slow) > MOST:
        yield f"… and {len(info.slow) - MOST} more ranks that others wait for"


def _slow_rank(info: AuditInfo, rank: SlowRank) -> str:
    where = "" if info.objective_kind == "busiest_rank" else f" in {', '.join(rank.phases)}"
    excess = show_cost(rank.excess, info.time_unit)
    tables = ", ".join(_time(info, share) for share in rank.tables)
    return f"to blame: rank {rank.rank}, slowest{where}, {excess} above the mean rank: {tables}"


def _time(info: AuditInfo, share: Share) -> str:
    return f"{share.table} {show_cost(share.amount, info.time_unit)}"


def _gains(info: AuditInfo) -> Iterator[str]:
    for gain in info.gains:
        now, then = (show_cost(v, info.time_unit) for v in (gain.cost, gain.better_cost))
        same = gain.option == gain.better
        better = "on other ranks" if same else gain.better
        yield f"better: {gain.table} from {gain.option} ({now}) to {better} ({then})"
