"""Plans over the windows of a run: where one dies, the largest batch, and when to change plans.

Under a plan, the memory of a row-wise sequence table follows the rows that its hottest rank
returns; every other table needs the same in every window. So a window's load scales these parts of
the plan's ledger, and any rank may be the hot one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from milp_planner.errors import BadInput
from milp_planner.features.windows.loads import ROWS, Window
from milp_planner.files import Facts
from milp_planner.plans.growth import FINE, MOST_TIMES
from milp_planner.plans.ledger import PlaceBytes, hbm_of, held_of, ledger_of, ranks_of_rows
from milp_planner.plans.placement import Plan
from milp_planner.pricing.entries import SHARD_NAMES
from milp_planner.pricing.shards import Held


def cheapest(
    fits: Sequence[Sequence[bool]], cost: Sequence[float], steps: Sequence[int], change: float
) -> list[int] | None:
    """The plan of every window with the least time in all, changes included.

    Parameters
    ----------
    fits : [plans][windows]
    cost : [plans]
        Milliseconds a step.
    steps : [windows]
    change : float
        Minutes a change.

    Returns
    -------
    list of int or None
        None if some window fits under no plan.
    """
    count = len(cost)
    total = [0.0] * count
    back: list[list[int]] = []
    for window, number in enumerate(steps):
        arrive, source = [], []
        for plan in range(count):
            ways = [total[p] + (change if window and p != plan else 0.0) for p in range(count)]
            best = min(range(count), key=lambda p: (ways[p], p != plan))
            here = cost[plan] * number / 60_000 if fits[plan][window] else float("inf")
            arrive.append(ways[best] + here)
            source.append(best)
        total = arrive
        back.append(source)
    last = min(range(count), key=lambda p: total[p])
    if total[last] == float("inf"):
        return None
    path = [last]
    for source in reversed(back[1:]):
        path.append(source[path[-1]])
    return path[::-1]


def minutes_of(
    path: Sequence[int], cost: Sequence[float], steps: Sequence[int], change: float
) -> float:
    """Minutes of a way through the windows, changes included; parameters as in :func:`cheapest`."""
    changes = sum(a != b for a, b in itertools.pairwise(path))
    run = sum(cost[plan] * number for plan, number in zip(path, steps, strict=True))
    return run / 60_000 + changes * change


OUTPUT = SHARD_NAMES.index("output")


@dataclass(frozen=True)
class Judged:
    """One plan over all windows."""

    plan: str
    milliseconds: float | None
    """Its step, as priced: the embeddings' part, whatever its objective."""
    dies: str | None
    """The first window in which a rank needs more than its HBM."""
    rank: int | None
    """That rank."""
    needs: int | None
    """What it needs, in bytes."""
    tight: str | None
    """The first window in which a rank does not keep its headroom."""
    batch: int
    """Samples per rank that were planned."""
    largest: int | None
    """The most samples per rank with which every window fits, headroom kept, to one in 200; None
    beyond 64 times as many."""
    fits: tuple[bool, ...]
    """Whether every rank keeps its headroom, for each window."""


@dataclass(frozen=True)
class Stretch:
    """Windows that run under one plan."""

    plan: str
    first: str
    last: str


@dataclass(frozen=True)
class WindowsInfo(Facts):
    """Plans over windows."""

    windows: int
    plans: tuple[Judged, ...]
    change_minutes: float
    """Cost of one change of plans."""
    alone: str | None
    """Of the plans that fit every window, the fastest; None if there is none."""
    alone_minutes: float | None
    stretches: tuple[Stretch, ...]
    """The cheapest way through all windows, changes of plan included; empty if some window fits
    under no plan."""
    minutes: float | None

    @property
    def stuck(self) -> bool:
        """Whether some window fits under no plan."""
        return not self.stretches

    @property
    def saved(self) -> float | None:
        """Minutes that changing plans saves over the best plan alone."""
        if self.alone_minutes is None or self.minutes is None:
            return None
        return self.alone_minutes - self.minutes


def over_windows(
    plans: Mapping[str, Plan], windows: Sequence[Window], change_minutes: float
) -> WindowsInfo:
    """Hold plans of one model against the loads of windows.

    Parameters
    ----------
    plans : mapping of str to Plan
        By name. Where a load is one number for all tables, it is that of the first plan, and every
        plan's row-wise sequence tables are scaled alike; a column for each table is exact.
    windows : sequence of Window
    change_minutes : float
        What one change of plans costs: a checkpoint written, and read under the other plan.

    Raises
    ------
    BadInput
        For a plan without a ledger, and loads that no table of the first plan follows.
    """
    runs = [Run(name, plan) for name, plan in plans.items()]
    first = runs[0]
    judged = []
    for run in runs:
        loads = [_load(window, first, run) for window in windows]
        judged.append(_judge(run, windows, loads))
    steps = [window.steps for window in windows]
    fits = [each.fits for each in judged]
    cost = [each.milliseconds or 0.0 for each in judged]
    alone = [i for i, each in enumerate(judged) if all(each.fits)]
    best = min(alone, key=lambda i: cost[i], default=None)
    path = cheapest(fits, cost, steps, change_minutes)
    priced = all(each.milliseconds is not None for each in judged)
    return WindowsInfo(
        len(windows), tuple(judged), change_minutes,
        None if best is None else judged[best].plan,
        None if best is None or not priced else cost[best] * sum(steps) / 60_000,
        () if path is None else tuple(_stretches(path, [r.name for r in runs], windows)),
        None if path is None or not priced
        else minutes_of(path, cost, steps, change_minutes),
    )  # fmt: skip


class Run:
    """A plan with the parts of its ledger that follow the load."""

    def __init__(self, name: str, plan: Plan) -> None:
        self.name, self.plan = name, plan
        if ledger_of(plan) is None:
            raise BadInput(f"{name}: its bytes are not this version's; plan again")

    @cached_property
    def held(self) -> Held:
        """Entries of the plan's shards, as planned."""
        found = held_of(self.plan)
        assert found is not None
        return found

    @cached_property
    def rows(self) -> dict[str, float]:
        """Rows that the hottest rank returns as planned, by table whose load can change."""
        found = {}
        follows = self.held.follows[:, [OUTPUT]]
        for index, table in enumerate(self.plan.model.tables):
            most = int(ranks_of_rows(self.plan, follows, [index]).max())
            if most:
                found[table.name] = most / (table.dim * table.element_bytes)
        return found

    def places(self, load: Mapping[str, float], batch: int | None = None) -> list[PlaceBytes]:
        """The HBM of every rank under a load (times what was planned, by table) and a batch."""
        plan, held = self.plan, self.held
        if batch is not None:
            workload = plan.model.workload.model_copy(update={"batch_per_rank": batch})
            changed = plan.model.model_copy(update={"workload": workload})
            plan = replace(plan, model=changed)
            again = held_of(plan)
            assert again is not None
            held = again
        factors = [load.get(table.name, 1.0) for table in plan.model.tables]
        each = np.repeat(factors, np.diff(held.first))
        more = np.ceil((each - 1)[:, None] * held.follows).astype(np.int64)
        return list(hbm_of(plan, held._replace(ledger=held.ledger + more)))


def _load(window: Window, first: Run, run: Run) -> dict[str, float]:
    """A window's load under a plan, over what was planned, by table."""
    if ROWS in window.rows:
        planned = sum(first.rows.values())
        if not planned:
            raise BadInput(
                f"{first.name}: rows need a row-wise sequence table, whose load they are; name the "
                "plan first under which they were measured"
            )
        return dict.fromkeys(run.rows, window.rows[ROWS] / planned)
    return {
        name: window.rows[name] / rows for name, rows in run.rows.items() if name in window.rows
    }


def _judge(run: Run, windows: Sequence[Window], loads: Sequence[dict[str, float]]) -> Judged:
    known: dict[tuple[float, ...], tuple[PlaceBytes, PlaceBytes]] = {}
    dies: tuple[str, PlaceBytes] | None = None
    fits = []
    for window, load in zip(windows, loads, strict=True):
        key = tuple(load.values())
        if key not in known:
            places = run.places(load)
            known[key] = (
                min(places, key=lambda p: p.whole - p.used), min(places, key=lambda p: p.room)
            )  # fmt: skip
        fullest, least = known[key]
        if dies is None and fullest.used > fullest.whole:
            dies = window.name, fullest
        fits.append(least.room >= 0)
    tight = next((w.name for w, kept in zip(windows, fits, strict=True) if not kept), None)
    return Judged(
        run.name, _milliseconds(run.plan), dies and dies[0], dies and dies[1].place,
        dies and dies[1].used, tight, run.plan.model.workload.batch_per_rank,
        _largest(run, _worst(loads)), tuple(fits),
    )  # fmt: skip


def _milliseconds(plan: Plan) -> float | None:
    time = plan.outcome.objectives.get("step_time")
    return None if time is None or plan.instance.time_unit != "ps" else time / 1e9


def _worst(loads: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """The loads that no other one exceeds in every table."""
    distinct = [dict(each) for each in {tuple(sorted(load.items())) for load in loads}]
    return [
        load for load in distinct
        if not any(
            other != load and all(other[name] >= load[name] for name in load) for other in distinct
        )
    ]  # fmt: skip


def _largest(run: Run, worst: Sequence[dict[str, float]]) -> int | None:
    """The most samples per rank with which every load fits, to one in :data:`FINE`."""

    def fits(batch: int) -> bool:
        return all(p.room >= 0 for load in worst for p in run.places(load, batch))

    now = run.plan.model.workload.batch_per_rank
    low, high = 0, now
    while fits(high):
        low, high = high, 2 * high
        if high > MOST_TIMES * now:
            return None
    while high - low > max(1, low // FINE):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _stretches(
    path: Sequence[int], names: Sequence[str], windows: Sequence[Window]
) -> list[Stretch]:
    starts = [i for i in range(len(path)) if i == 0 or path[i] != path[i - 1]]
    ends = [*(i - 1 for i in starts[1:]), len(path) - 1]
    return [
        Stretch(names[path[a]], windows[a].name, windows[b].name)
        for a, b in zip(starts, ends, strict=True)
    ]
