"""Plans under ``--goals``: fewer moves from today's plan for a share of the objective.

``python -m benchmarks.production.goals PLAN TODAY`` prints the table of docs/production.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from formulations import Instance, Placement, Settings
from formulations.clock import Clock
from formulations.goals.seek import improve
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.result.outcome import StoppedBy, found
from formulations.settings import DEFAULT_GOALS, Goals, parse_goals
from milp_planner import read_plan
from milp_planner.drawing.units import show_amount, show_cost
from milp_planner.start.mapping import placed_on, start_on

SHARES = ("1%", "2%", "5%", "10%")


def line(name: str, instance: Instance, placement: Placement, now: int, best: int) -> str:
    """Moves, bytes and objective of a finished plan, and its share of the whole gain."""
    verdict, moved = check(instance, placement), moved_tables(instance, placement)
    assert verdict.feasible
    value = verdict.objectives[instance.objective.value]
    size = show_amount(moved_bytes(instance, placement, moved), instance.time_unit)
    return (
        f"| {name} | {len(moved):,} | {size} | {show_cost(value, instance.time_unit)} | "
        f"{(now - value) / (now - best):.0%} |"
    )


def finished(instance: Instance, placement: Placement, goals: Goals) -> Placement:
    """A plan after the goals."""
    asked = Settings(goals=goals)
    start = found(instance, "auto", placement, StoppedBy.TIME_LIMIT)
    better = improve(instance, start, asked, Clock(asked)).placement
    assert better is not None
    return better


def main() -> None:
    """Finish the plan once with every tolerance."""
    plan, today = read_plan(sys.argv[1]), Path(sys.argv[2])
    kind = plan.instance.objective.value
    first = start_on(today, plan.model, plan.cluster, kind, exact=True)
    compiled, known = first.compiled, first.placement
    instance = compiled.instance
    now = check(instance, known).objectives[kind]
    start = placed_on(compiled, plan)
    assert start is not None
    best = check(instance, start).objectives[kind]
    print(f"| `--goals` | moves | bytes | {kind} | of the gain |\n|---|---|---|---|---|")
    print(line("(default)", instance, finished(instance, start, DEFAULT_GOALS), now, best))
    for share in SHARES:
        text = f"{kind}:{share},moves"
        placement = finished(instance, start, parse_goals(text, kind))
        print(line(f"`{text}`", instance, placement, now, best))


if __name__ == "__main__":
    main()
