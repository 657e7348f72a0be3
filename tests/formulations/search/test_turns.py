"""Turns go to the parts that had least, and every live part gets some."""

from __future__ import annotations

import numpy as np
import pytest

from formulations.clock import Clock, OutOfTime
from formulations.instance.build import InstanceBuilder
from formulations.search.context import Context
from formulations.search.turns import Part, step
from formulations.settings import Settings


def context(units: float) -> Context:
    """A clock that counts work."""
    asked = Settings(work_limit=units, time_limit=None, workers=1)
    instance = InstanceBuilder([[0]], ["p"], []).build()
    return Context(instance, asked, Clock(asked), np.zeros(0, dtype=bool))


def part(given: Context, name: str, gain: float, alive: bool = True) -> tuple[Part, list[float]]:
    """A part that uses what it is given and gains so much a unit."""
    told = [0.0]
    asked: list[float] = []

    def run(amount: float) -> bool:
        asked.append(amount)
        told[0] += gain * amount
        given.spend(amount)
        return alive

    return Part(name, run, lambda: told[0]), asked


def test_time_is_shared() -> None:
    """Equally, whatever a part gains, but two shares are twice as much."""
    given = context(400.0)
    parts, asked = zip(*(part(given, str(gain), gain) for gain in (0.0, 1.0, 1.0)), strict=True)
    parts[2].shares = 2
    for _ in range(100):
        assert step(given, list(parts))
    spent = [sum(a) for a in asked]
    assert spent[2] == pytest.approx(2 * spent[1], abs=2)
    assert spent[0] == pytest.approx(spent[1], abs=max(asked[0]))


def test_what_delivers_nothing_is_given_longer_turns() -> None:
    """A turn without progress doubles the next, up to a share of what is left."""
    given = context(1000.0)
    one, asked = part(given, "none", 0.0)
    for _ in range(4):
        assert step(given, [one])
    assert asked == [1.0, 2.0, 4.0, 8.0]


def test_what_has_ended_gets_no_turn() -> None:
    """A part that says it is done is not asked again."""
    given = context(100.0)
    one, asked = part(given, "done", 1.0, alive=False)
    assert step(given, [one])
    assert not step(given, [one])
    assert len(asked) == 1


def test_what_waits_is_asked_where_no_other_is_left() -> None:
    """Others go first for as long as it waits, and it is not charged; alone it is asked."""
    given, waiting = context(1000.0), True
    one, asked = part(given, "waits", 1.0)
    other, _ = part(given, "other", 0.0)
    one.waits = lambda: waiting
    for _ in range(3):
        assert step(given, [one, other])
    assert asked == [] and one.spent == 0
    waiting = False
    assert step(given, [one, other]) and asked == [1.0]
    waiting, other.alive = True, False
    assert step(given, [one, other]) and len(asked) == 2


def test_what_is_urgent_goes_first() -> None:
    """However much it had, while it is; unless it waits."""
    given = context(100.0)
    (hurried, mine), (other, others) = part(given, "hurried", 0.0), part(given, "other", 0.1)
    hurried.spent, hurried.urgent = 50.0, lambda: len(mine) < 2
    for _ in range(4):
        step(given, [other, hurried])
    assert (len(mine), len(others)) == (2, 2)
    hurried.urgent, hurried.waits = lambda: True, lambda: True
    step(given, [other, hurried])
    assert (len(mine), len(others)) == (2, 3)


def test_a_part_without_time_left_ends() -> None:
    """One that leaves a long step half done gets no other turn."""

    def run(amount: float) -> bool:
        raise OutOfTime

    given = context(10.0)
    one = Part("late", run, lambda: 0.0)
    assert step(given, [one])
    assert not step(given, [one])


def test_what_begins_anew_is_not_cut_short() -> None:
    """Its turns grow even where it gains, and the last takes all that is left."""
    given = context(100.0)
    one, asked = part(given, "whole", 1.0)
    one.anew = True
    while not given.clock.over():
        assert step(given, [one])
    assert asked == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 37.0]
