"""Turns go to the parts that had least, and every live part gets some.

The whole model: solved to the end, and improved without a proof.

Boxes of peaks as a part of the search.
"""

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from formulations import solve
from formulations.clock import OutOfTime
from formulations.evidence.certify import CERTIFICATE
from formulations.instance import Instance
from formulations.instance.facts import total_use
from formulations.patterns.boxes import FUNCTIONS
from formulations.patterns.program import LEVELS
from formulations.proof.prove import symmetric_lp
from formulations.result.certificate import Certificate
from formulations.result.check import value_of
from formulations.result.placement import Placement
from formulations.search import peaked
from formulations.search.anneal import Choice
from formulations.search.bounds import Bounds
from formulations.search.context import Context
from formulations.search.lists import MAKERS, Shared, parts
from formulations.search.numbers import PEAKED
from formulations.search.peaked import Peaked
from formulations.search.plans import Plans
from formulations.search.prover import Prover
from formulations.search.turns import Part, step
from formulations.search.whole import Whole, place, solve_whole
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built
from tests.formulations.search.searches import opened
from tests.formulations.strategies import instances


def context(units: float) -> Context:
    """A clock that counts work."""
    return opened(built([]), work_limit=units, time_limit=None, workers=1)


def part(given: Context, name: str, gain: float, alive: bool = True) -> tuple[Part, list[float]]:
    """A part that uses what it is given and gains so much a unit."""
    told = [0.0]
    asked: list[float] = []

    def run(amount: float) -> bool:
        asked.append(amount)
        told[0] += gain * amount
        given.clock.spend(amount)
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


LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_solving_the_whole_proves_it(instance: Instance) -> None:
    """The optimum is found and the bound meets it, or it is told that there is no plan."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0)
    context = opened(instance, time_limit=20, work_limit=3.0, workers=1)
    solve_whole(context, 2.0, workers=1, stale=lambda: False)
    assert context.objective == truth.objective
    assert truth.objective is None or context.bound == truth.objective
    assert (context.known.refuted is not None) == (truth.objective is None)


def test_a_stale_model_ends_early() -> None:
    """The whole model ends as soon as there is a better one to solve: sixty tables on seven ranks
    take CP-SAT long to prove."""
    instance = built([at(ANY, 1000 + 37 * t % 101) for t in range(60)], machines=[range(7)])
    context = opened(instance, time_limit=20, work_limit=3.0, workers=1)
    reply = solve_whole(context, 60.0, workers=1, stale=lambda: True)
    assert not reply.answer.done


@cache
def distinct(tables: int = 14, times: int = 1) -> Instance:
    """Tables of their own compute, exchange and memory, whole or in halves, on four ranks; or each
    several times."""
    rng, found = Random(0), []
    for _ in range(tables):
        compute, exchange = rng.randint(1000, 9000), rng.randint(1, 6) * 500
        memory, half = rng.randint(2, 30), compute // 2 + 200
        found.append({"whole": at(ANY, compute, exchange, hbm=memory),
                      "halves": at(ANY, half, exchange, hbm=memory // 2, count=2)})  # fmt: skip
    phases = ["compute", "exchange"]
    return built(found * times, "step_time", [range(4)], phases=phases, hbm=70 * times)


def begun(work: float | None, times: int = 1) -> Context:
    """A search that knows a plan by greedy, and the linear program's certificate; without a limit
    on work it has some time."""
    return known(distinct(times=times), work)


def known(instance: Instance, work: float | None) -> Context:
    """Such a search of an instance."""
    limit = 30.0 if work is None else None
    context = opened(instance, time_limit=limit, work_limit=work, workers=1)
    plan, certificate = start(instance)
    assert context.offer(plan, "greedy")
    context.state.price(certificate)
    return context


@cache
def start(instance: Instance) -> tuple[Placement, Certificate]:
    """A plan by greedy, and the linear program's certificate."""
    plan, lp = solve(instance, "greedy").placement, symmetric_lp(instance)
    assert plan is not None and lp is not None
    return plan, lp.certificate


@cache
def better() -> Placement:
    """A plan that is more than 3% cheaper than greedy's."""
    best = solve(distinct(), "auto", Settings(time_limit=None, work_limit=2.0, workers=1))
    assert best.placement is not None
    return best.placement


def refused(choice: Choice) -> None:
    """Not to be called: functions take options in parts, and few tables are equal."""
    raise AssertionError(choice)


def test_plans_begin_from_what_patterns_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once patterns raise their bound, an option that is left for every table is told, and
    placed."""
    context, told, asked = begun(None), list[Choice](), list[np.ndarray]()
    monkeypatch.setattr(peaked, "place", lambda _, options, work: asked.append(options))
    boxes = Peaked(context, LEVELS[0], told.append)
    while not told and boxes.run(1.0):
        pass
    assert told[0].value is not None and told[0].value <= (context.objective or 0)
    assert (context.instance.table_of[told[0].options] == np.arange(len(told[0].options))).all()
    assert context.keep[told[0].options].all()
    assert asked == [told[0].options]


def test_plans_begin_from_what_functions_take_of_equal_tables() -> None:
    """An option that is left for every table, whether the bound rises or not."""
    context, told = begun(3.0, times=2), list[Choice]()
    boxes = Peaked(context, FUNCTIONS, told.append)
    boxes.run(0.01)
    boxes.run(0.01)
    assert len(told) == 2
    for choice in told:
        assert (context.instance.table_of[choice.options] == np.arange(28)).all()
        assert context.keep[choice.options].all()


def test_what_patterns_take_is_placed() -> None:
    """With its options as they are, the exact model finds the places, and a better plan than the
    one known; where no places are better, nothing changes."""
    context, cost = begun(None), value_of(distinct(), better())
    assert cost is not None and cost < (context.objective or 0)
    place(context, better().options, 5.0)
    found = context.objective
    assert found is not None and found <= cost
    place(context, better().options, 5.0)
    assert context.objective == found


def test_a_cold_pass_from_a_new_choice_goes_first() -> None:
    """Once a bound has chosen options, and until a pass from them has met no plan; for half of the
    time of all that make plans, and a fifth of all."""
    context = begun(None)
    whole, plan = Whole(context), context.best
    assert plan is not None
    shared = Shared(
        context, Bounds(context, whole, refused, refused), whole, Prover(context, whole)
    )
    plans, told = Plans(context, plan.options), Choice(plan.options, value=1)
    makers = parts(MAKERS, shared, plans)
    plans.choose(told)
    assert not any(part.urgent() for part in makers)
    plans.choose(told, news=True)
    (cold,) = [part for part in makers if part.urgent()]
    plans.spent, cold.spent = 1.0, 0.6
    assert not cold.urgent()
    cold.spent = 0.4
    assert cold.urgent()
    plans.spent, cold.spent = 0.0, 0.1 * context.clock.now()
    assert cold.urgent()
    context.lift((context.objective or 0) - 1, CERTIFICATE)  # so that the pass meets nothing
    plans.spent = 0.0
    cold.run(0.01)
    assert plans.spent > 0 and not cold.urgent()


def test_what_does_not_fit_is_chosen_again_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where shards of the options taken do not fit, others are told that leave room."""
    monkeypatch.setattr(peaked, "PEAKED", replace(PEAKED, room=0.2))
    large, small = at(ANY, 1000, 700, hbm=28), at(ANY, 1700, 900, hbm=11)
    context, told = known(built(
        [{"large": large, "small": small}] * 13, "step_time", [range(4)],
        phases=["compute", "exchange"], hbm=75), 3.0), list[Choice]()  # fmt: skip
    boxes = Peaked(context, FUNCTIONS, lambda choice: told.append(choice) or len(told) > 1)
    boxes.run(0.05)
    assert len(told) == 2
    memory = total_use(context.instance)[:, 0]
    full, less = (int(memory[choice.options].sum()) for choice in told)
    assert less <= 0.8 * 4 * 75 < full


def test_functions_raise_the_certified_bound_in_counted_work() -> None:
    """Above the linear program's, the same in two runs; no work is left out of the count."""
    found = []
    for _ in range(2):
        context = begun(3.0)
        boxes = Peaked(context, FUNCTIONS, refused)
        assert not boxes.waits()
        boxes.run(0.5)
        found.append((context.clock.certified, context.clock.work))
    assert found[0] == found[1]
    certified, work = found[0]
    first = context.known.certificate
    assert first is not None and certified is not None and certified > (first.target or 0)
    assert 0.1 < work < 0.6


def test_patterns_wait_for_the_wall_clock() -> None:
    """Their work is not counted, so under a limit on work they have nothing to do."""
    context = begun(3.0)
    assert not Peaked(context, LEVELS[0], refused).run(0.5)
    assert context.clock.work == 0.0 and context.clock.certified is None


def test_a_cheaper_plan_makes_the_tree_urgent() -> None:
    """It is begun with the first plan; one that is far cheaper excludes options."""
    context = begun(3.0)
    boxes = Peaked(context, FUNCTIONS, refused)
    assert boxes.urgent(0.0) and not boxes.urgent(0.1)
    for _ in range(PEAKED.turns):  # in its first ones it has more patience
        boxes.run(0.03)
    context.clock.spend(1.0)
    context.lift((context.objective or 0) - 1, CERTIFICATE)  # so that the tree does not lead
    assert not boxes.urgent(0.1)
    assert (value_of(distinct(), better()) or 0) < 0.97 * (context.objective or 0)
    context.offer(better(), "better")
    assert boxes.urgent(0.1) and not boxes.urgent(1.0)


@pytest.mark.parametrize(("few", "urgent"), [(0, False), (10**6, True)])
def test_a_tree_stands_still_after_some_boxes(
    monkeypatch: pytest.MonkeyPatch, few: int, urgent: bool
) -> None:
    """Where no rise counts, two turns make a tree wait, unless they were too short for as many
    boxes."""
    numbers = replace(PEAKED, risen=2.0, near=0.0, few=few)
    monkeypatch.setattr(peaked, "PEAKED", numbers)
    context = begun(3.0)
    boxes = Peaked(context, FUNCTIONS, refused)
    for _ in range(2):
        boxes.run(0.05)
    context.clock.spend(1.0)
    assert boxes.urgent(0.1) == urgent
