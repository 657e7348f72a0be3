"""The conductor: what it starts from, and that nothing counts once it has answered."""

from collections.abc import Callable

import numpy as np
import pytest

from formulations import Settings
from formulations.clock import Clock
from formulations.cpsat import Answer, Found
from formulations.result.outcome import BoundSource, Outcome, Status, StoppedBy
from formulations.result.placement import Placement
from formulations.search import conductor
from formulations.search.bounds import Bounds
from formulations.search.conductor import _seek, conduct
from formulations.search.context import Context
from formulations.search.lists import LARGE, Shared, parts
from formulations.search.loops import Loops
from formulations.search.plans import Plans
from formulations.search.prover import Prover
from formulations.search.question import WHOLE, Reply
from formulations.search.turns import Part
from formulations.search.whole import Whole
from tests.formulations.examples import ANY, at, built
from tests.formulations.search.searches import noted, on, opened, three_on_two


def solved(**settings: object) -> Outcome:
    """The answer for three tables on two ranks."""
    asked = Settings(**settings)  # type: ignore[arg-type]
    return conduct(three_on_two(), asked, Clock(asked), "auto")


def test_a_hint_is_improved() -> None:
    """From ten on one rank to six, proved."""
    outcome = solved(time_limit=None, work_limit=20.0, workers=1, hint=on(0, 0, 0))
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, 6, 6)


def test_time_held_back_for_a_proof_is_no_end_of_ideas(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker that leaves what is held back stopped for time, not for want of more to try."""
    monkeypatch.setattr(conductor, "kept_to_prove", lambda instance, settings: 60.0)
    outcome = solved(time_limit=60.0, workers=1, options={"small_columns": 1})
    assert (outcome.objective, outcome.stopped_by) == (6, StoppedBy.TIME_LIMIT)


def test_what_comes_late_is_neither_taken_nor_told() -> None:
    """A thread left behind may still find plans and bounds: outcome and trace agree without."""
    context = opened(three_on_two(), workers=1, time_limit=60)
    assert context.offer(on(0, 0, 1), "early")
    context.state.close()
    assert not context.offer(on(0, 1, 1), "late")
    context.lift(6, BoundSource("late", exact=True))
    assert (context.objective, context.bound, context.over()) == (7, None, True)
    assert [point.objective for point in context.clock.trace] == [7]


def test_the_exact_model_is_left_alone_first() -> None:
    """On small instances the side that makes plans begins one turn later."""
    context, began = opened(three_on_two(), time_limit=10.0, options={"longest_turn": 0.1}), []
    clock, whole = context.clock, Whole(context)

    def run(amount: float) -> bool:
        began.append(clock.now())
        return False

    start = clock.now()
    _seek(context, whole, [Part("plans", run, lambda: 0.0)])
    assert began[0] - start >= 0.1 * (10.0 - start) - 0.06


@pytest.mark.parametrize(("cores", "workers", "makers"), [(4, 4, 4), (2, 8, 2), (64, 3, 3)])
@pytest.mark.parametrize("small", [1, 6000])
def test_every_core_that_was_asked_for_makes_plans(
    monkeypatch: pytest.MonkeyPatch, cores: int, workers: int, makers: int, small: int
) -> None:
    """Each worker has makers with a seed of their own; there are no more of them than cores."""
    begun, made = noted(monkeypatch, conductor, "_improve"), noted(monkeypatch, Plans, "__init__")
    monkeypatch.setattr("formulations.search.context.available_cores", lambda: cores)
    outcome = solved(time_limit=30.0, workers=workers, options={"small_columns": small})
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 6)
    assert len({plans._seed for plans, *_ in made}) == len(made) == makers
    assert len(begun) == makers - 2


@pytest.mark.parametrize(("dearer", "stale"), [(1, False), (2, True)])
def test_the_exact_model_starts_anew_where_few_options_are_left(
    monkeypatch: pytest.MonkeyPatch, dearer: int, stale: bool
) -> None:
    """A plan of 6 rules out options that cost that: one of four is no reason, two of five are."""
    first = {f"o{number}": at(ANY, cost) for number, cost in enumerate((4, *[9] * dearer))}
    instance = built([first, at(ANY, 3), at(ANY, 3)])
    context = opened(instance, time_limit=60, options={"news_left": 0.7})
    whole, said = Whole(context), list[bool]()

    def solve(context: Context, work: float, workers: int, stale: Callable[[], bool]) -> Reply:
        said.append(stale())
        assert context.offer(
            Placement(np.asarray([0, dearer + 1, dearer + 2]), on(0, 1, 1).ranks), "late"
        )
        said.append(stale())
        return Reply(Answer(Found.UNKNOWN), WHOLE.source)

    monkeypatch.setattr("formulations.search.whole.solve_whole", solve)
    assert whole.run(1.0)
    assert said == [False, stale]


def test_the_exact_model_is_asked_again_where_few_options_are_left() -> None:
    """Far fewer than it last had may be proved at once, if they are not too many."""
    context = opened(three_on_two(), time_limit=60, options={"news_left": 0.7})
    whole = Whole(context)
    assert not whole.news()
    context.state.rule_out(np.arange(3) != 2)
    assert whole.news()
    whole.run(1.0)
    assert not whole.news()


def test_the_exact_model_waits_while_it_is_too_large() -> None:
    """Every turn of others may rule out options; until then it does nothing if asked."""
    context = opened(three_on_two(), workers=1, time_limit=60, options={"whole_columns": 5})
    plans, whole = Plans(context, np.arange(3), 0), Whole(context)
    assert whole.large()
    assert whole.run(1.0)
    assert (context.objective, context.bound) == (None, None)
    context.state.rule_out(np.arange(3) != 2)
    assert not whole.large()
    bounds = Bounds(context, whole, plans.choose, plans.choose)
    shared = Shared(context, bounds, whole, Prover(context, whole))
    (part,) = (p for p in parts(LARGE.dual, shared, plans) if p.name == "whole")
    assert not part.waits()


def test_compiling_comes_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the loops are missing, they are waited for first, unless one turn of the exact model
    solves the instance."""
    waited = list[bool]()
    monkeypatch.setattr(Loops, "compiled", lambda self, over: waited.append(over()))
    monkeypatch.setattr(Loops, "missing", True)
    assert solved(time_limit=30, workers=1).status == Status.OPTIMAL and not waited
    monkeypatch.setattr(Whole, "run", lambda self, amount: False)
    solved(time_limit=1, workers=1)
    assert waited == [False]
    monkeypatch.setattr(Loops, "missing", False)
    solved(time_limit=1, workers=1)
    assert waited == [False]
