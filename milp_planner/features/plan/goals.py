"""The secondary goals in words: what the plan reaches, and whether less is possible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from formulations import Instance, Outcome
from formulations.goals.problem import PARTS
from formulations.result.must_move import Counted, forced_of, limit_of
from formulations.result.outcome import GoalReached
from formulations.settings import EVEN_MEMORY, HOST_MEMORY, MOVED_BYTES, MOVES, SHARDS, STASHED
from milp_planner.drawing.units import show_amount, show_bytes, show_cost, show_gap


def goals_told(goals: Iterable[GoalReached], unit: str) -> list[str]:
    """What the plan reaches of every goal worth reporting.

    Parameters
    ----------
    goals : iterable of GoalReached
    unit : str
        Time unit of the instance: ``ps``, or plain numbers.
    """
    return [
        f"{_reached(goal, goal.value, unit)} ({_known(goal, unit)})"
        for goal in goals
        if goal.value or not goal.met
    ]


def given_up(objective: int | None, before: int | None, proved: bool, unit: str) -> list[str]:
    """The best plan's objective, if this plan gave up some of it for the goals. If the best one is
    ``proved``, the plan's standing already says how much was given up."""
    if objective is None or before is None:
        return []
    best = show_cost(before, unit, digits=6)
    if proved:
        return [f"the best plan costs {best} (proved)"]
    share = show_gap((objective - before) / max(1, abs(before)))
    return [f"{share} above the best plan found, {best}: given up for goals after the objective"]


def forced_told(instance: Instance, outcome: Outcome) -> list[str]:
    """What must move at least from the earlier plan, what may, and what a plan was found to
    move."""
    lines, unit = [], instance.time_unit
    found: Any = outcome.detail.get("would_move")
    least = {each.counted: each.least for each in forced_of(outcome.detail)}
    for counted in Counted:
        limit, must = limit_of(instance, counted), least.get(counted, 0)
        if limit is None and (outcome.placement is not None or not must):
            continue
        if found is None and not must:
            continue
        line = f"certified: at least {_moving(counted, must, unit)} must move"
        line += "" if limit is None else f", {_moving(counted, limit, unit)} may"
        if found is not None:
            line += f"; the least found that suffices: {_moving(counted, found[counted], unit)}"
            line += "" if found[counted] == must else " (what lies between is open)"
        lines.append(line)
    return lines


def _moving(counted: Counted, amount: int, unit: str) -> str:
    """Tables, or bytes as they can be entered as a limit, too."""
    if counted == Counted.TABLES:
        return f"{amount:,} table{'s' * (amount != 1)}"
    shown, exact = show_amount(amount, unit), f"{amount} B"
    return shown if unit != "ps" or shown == exact else f"{shown} ({exact})"


def _known(goal: GoalReached, unit: str) -> str:
    if goal.met and goal.bound is None:
        return "even enough"
    # the goal is minimised in steps, so the bound may stay up to one step below the value
    if goal.met and goal.bound is not None and goal.bound < goal.value:
        return f"least to within a step, none is below {_amount(goal.goal, goal.bound, unit)}"
    if goal.met:
        return "least"
    if goal.bound is None:
        return "open"
    return f"open, at least {_amount(goal.goal, goal.bound, unit)}"


def _reached(goal: GoalReached, value: int, unit: str) -> str:
    amount = _amount(goal.goal, value, unit)
    if goal.goal == EVEN_MEMORY:
        return f"fullest {goal.scope} {amount} of usable"
    if goal.goal in (SHARDS, MOVES):
        return f"{amount} {'shards' if goal.goal == SHARDS else 'tables moved'}"
    named = {
        HOST_MEMORY: "memory beyond ranks",
        MOVED_BYTES: "moves",
        STASHED: "largest stash of a rank",
    }
    return f"{named.get(goal.goal, goal.goal)} {amount}"


def _amount(goal: str, value: int, unit: str) -> str:
    if goal == EVEN_MEMORY:
        return f"{100 * value / PARTS:.1f}%"
    if goal in (SHARDS, MOVES):
        return f"{value:,}"
    if goal in (MOVED_BYTES, STASHED):
        return show_bytes(value)
    return show_amount(value, unit) if goal == HOST_MEMORY else show_cost(value, unit)
