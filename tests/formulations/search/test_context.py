"""What the parts of the search share: it takes only what is better and true."""

from __future__ import annotations

import threading

import pytest

from formulations.clock import Clock
from formulations.presolve import usable
from formulations.result.certificate import Certificate
from formulations.result.outcome import BoundSource
from formulations.search.context import Context, Either
from formulations.settings import Settings
from tests.formulations.search.test_conductor import on, three_on_two

SOURCE = BoundSource("lp", exact=True)


def opened(**changes: object) -> Context:
    """Nothing known yet of tables of cost 4, 3 and 3 on two ranks."""
    limits = Settings(time_limit=60, workers=1, **changes)  # type: ignore[arg-type]
    instance = three_on_two()
    return Context(instance, limits, Clock(limits), usable(instance))


def test_only_better_plans_are_taken() -> None:
    """7, then 10 and 7 again are refused, then 6; the trace tells what was taken."""
    context = opened()
    offers = [
        context.offer(on(*ranks), "x") for ranks in ((0, 0, 1), (0, 0, 0), (0, 1, 0), (0, 1, 1))
    ]
    assert offers == [True, False, False, True]
    assert context.objective == 6
    assert context.best is not None and context.best.to_lists(0) == [[0]]
    assert [point.objective for point in context.clock.trace] == [7, 6]


def test_a_plan_that_the_check_rejects_is_refused() -> None:
    """Rank 2 does not exist."""
    context = opened()
    assert not context.offer(on(0, 1, 2), "x")
    assert context.best is None and context.objective is None


def test_only_higher_bounds_are_taken() -> None:
    """5, then 4 and nothing are passed over, then 6, which proves the plan of 6."""
    context = opened()
    for bound in (5, 4, None, 6):
        context.lift(bound, SOURCE)
    assert (context.bound, context.known.source) == (6, SOURCE)
    assert [point.bound for point in context.clock.trace] == [5, 6]
    assert not context.known.proved
    context.offer(on(0, 1, 1), "x")
    assert context.known.proved and context.over()


def test_how_far_the_plan_is_above_the_bound() -> None:
    """A plan of 7 over a bound of 5 is more than a third and less than a half above."""
    context = opened()
    assert context.known.above(9.0)  # nothing is known
    context.offer(on(0, 0, 1), "x")
    context.lift(5, SOURCE)
    assert context.known.above(1 / 3) and not context.known.above(1 / 2)


def test_options_that_cost_as_much_as_the_plan_go() -> None:
    """With a plan of 4 none is left for the table of 4, so that 4 is proved; with 6 all stay."""
    context = opened()
    assert context.left_below(6).all()
    assert context.left_below(4).tolist() == [False, True, True]
    context.drop()
    assert context.bound is None  # no plan yet
    context.offer(on(0, 1, 1), "x")
    context.drop()
    assert context.keep.all() and context.bound is None


def test_limits_stay_within_what_is_left() -> None:
    """Counted work: no more than remains, and the caller's own flag."""
    context = opened(work_limit=3.0)
    assert context.limits(2.0).work == 2.0
    context.spend(2.5)
    left = context.limits(2.0, seed=7, workers=2, gap=0.1)
    assert left.work == pytest.approx(0.5)
    assert (left.seed, left.workers, left.gap) == (7, 2, 0.1)
    assert left.stop is context.settings.stop


def test_a_solve_on_the_wall_ends_when_all_is_over() -> None:
    """Its flag is the caller's, or that the search has closed."""
    context = opened()
    stop = context.limits(1.0).stop
    assert stop is not None and not stop.is_set()
    context.state.close()
    assert stop.is_set()


def test_either_flag_counts() -> None:
    """The event itself, or the question."""
    event, answer = threading.Event(), [False]
    either = Either(event, lambda: answer[0])
    assert not either.is_set()
    answer[0] = True
    assert either.is_set()
    answer[0] = False
    event.set()
    assert either.is_set()


def test_a_malformed_certificate_is_left_out_and_told() -> None:
    """A negative multiplier is a bug of whoever made it: it ends nothing, and the note tells it."""
    context = opened()
    malformed = Certificate("bound", 6, ([{"row": "cost", "times": -1}],), ({"use": [0]},))
    assert not context.accepts(context.instance, malformed)
    assert context.clock.certified is None
    assert len(context.clock.notes) == 1 and "malformed" in context.clock.notes[0]
