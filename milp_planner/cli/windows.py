"""``milp-planner windows``: plans against the loads of the windows of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console
from milp_planner.cli.failures import finish
from milp_planner.cli.options import JsonOption, argument, option, positive, whole
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from milp_planner.features.windows.call import Judged, WindowsInfo

MOST_STEPS = 10**9


def run(
    loads: Annotated[
        Path,
        argument(
            "LOADS.csv",
            "Columns: window; rows (those that the hottest rank returned in its worst step of the "
            "window under the first plan), or one column for each table that is row-wise; and "
            "steps, if windows differ.",
        ),
    ],
    plans: Annotated[
        list[Path], argument("PLAN...", "One or more plan.json of the same model and cluster.")
    ],
    steps: Annotated[
        int,
        option(
            "--steps N",
            "Steps of a window, if LOADS.csv has no such column.",
            parser=whole(1, MOST_STEPS),
        ),
    ] = 1000,
    change_minutes: Annotated[
        float,
        option(
            "--change-minutes M",
            "What changing plans at a checkpoint costs: writing it, and reading it under the other "
            "plan.",
            parser=positive,
        ),
    ] = 10.0,
    json: JsonOption = False,
) -> None:
    """Hold plans against the loads of a run's windows.

    Prints the first window in which each plan dies, the largest batch with which it survives all,
    and whether changing plans at a checkpoint pays. Exit code 1 if no plan, and no change of plans,
    survives all windows.
    """  # fmt: skip
    from milp_planner.features.windows.call import over_windows
    from milp_planner.features.windows.loads import read_loads
    from milp_planner.plans.plan_file import read_plan

    named = {str(path): read_plan(path) for path in plans}
    first = next(iter(named.values()))
    names = [table.name for table in first.model.tables]
    for name, plan in named.items():
        if [table.name for table in plan.model.tables] != names:
            raise BadInput(f"{name}: its tables are not those of {plans[0]}")
    found = over_windows(named, read_loads(loads, names, steps), change_minutes)
    console.tell(json, found.to_dict, lambda: list(draw(found)))
    finish("infeasible" if found.stuck else "feasible")


def draw(info: WindowsInfo) -> Iterator[RenderableType]:
    """Draw the plans, and what to run when."""
    from milp_planner.drawing.grid import Grid
    from milp_planner.drawing.units import show_bytes

    rows = []
    for each in info.plans:
        dies = "none" if each.dies is None else f"{each.dies} (rank {each.rank}, "
        dies += "" if each.needs is None else f"{show_bytes(each.needs)})"
        rows.append((
            each.plan,
            "" if each.milliseconds is None else f"{each.milliseconds:.2f}",
            f"{sum(each.fits)} of {info.windows}",
            dies,
            f"{each.batch:,}",
            _most(each),
        ))  # fmt: skip
    yield Grid.plain(
        ("plan", "#ms a step", "#windows that fit", "#dies in window", "#samples a rank",
         "#at most"), rows, {"plan": 20},
    )  # fmt: skip
    yield from _advice(info)


def _most(each: Judged) -> str:
    return "over 64 times as many" if each.largest is None else f"{each.largest:,}"


def _advice(info: WindowsInfo) -> Iterator[str]:
    if info.stuck:
        yield "some window fits under none of these plans"
        return
    ways = "; ".join(f"{s.plan} in windows {s.first} to {s.last}" for s in info.stretches)
    cost = "" if info.minutes is None else f" ({info.minutes:,.1f} minutes of embeddings)"
    if len(info.stretches) == 1:
        yield f"changing plans does not pay: {ways}{cost}"
    elif info.saved is None:
        yield f"no plan fits all windows; change plans: {ways}{cost}"
    else:
        yield (
            f"changing plans pays, {info.saved:,.1f} minutes less than {info.alone} alone, at "
            f"{info.change_minutes:g} minutes a change: {ways}{cost}"
        )
