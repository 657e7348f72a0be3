"""The conductor: what it starts from, and that nothing counts once it has answered."""

from collections.abc import Callable

import numpy as np
import pytest

from formulations import Settings
from formulations.clock import Clock
from formulations.cpsat import Answer, Found
from formulations.instance import Instance
from formulations.presolve import usable
from formulations.result.outcome import BoundSource, Status, StoppedBy
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


def three_on_two() -> Instance:
    """Tables of cost 4, 3 and 3 on two ranks: 6 is the best, 5 the mean."""
    return built([at(ANY, cost) for cost in (4, 3, 3)])


def on(*ranks: int) -> Placement:
    """Each table on its rank."""
    return Placement(np.arange(3), [[np.asarray([rank])] for rank in ranks])


def test_a_hint_is_improved() -> None:
    """From ten on one rank to six, proved."""
    settings = Settings(time_limit=None, work_limit=20.0, workers=1, hint=on(0, 0, 0))
    outcome = conduct(three_on_two(), settings, Clock(settings), "auto")
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, 6, 6)


def test_time_held_back_for_a_proof_is_no_end_of_ideas(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker that leaves what is held back stopped for time, not for want of more to try."""
    settings = Settings(time_limit=60.0, workers=1, options={"small_columns": 1})
    monkeypatch.setattr(conductor, "kept_to_prove", lambda instance, settings: 60.0)
    outcome = conduct(three_on_two(), settings, Clock(settings), "auto")
    assert (outcome.objective, outcome.stopped_by) == (6, StoppedBy.TIME_LIMIT)


def test_what_comes_late_is_neither_taken_nor_told() -> None:
    """A thread left behind may still find plans and bounds: outcome and trace agree without."""
    instance, settings = three_on_two(), Settings(workers=1, time_limit=60)
    clock = Clock(settings)
    context = Context(instance, settings, clock, usable(instance))
    assert context.offer(on(0, 0, 1), "early")
    context.state.close()
    assert not context.offer(on(0, 1, 1), "late")
    context.lift(6, BoundSource("late", exact=True))
    assert (context.objective, context.bound, context.over()) == (7, None, True)
    assert [point.objective for point in clock.trace] == [7]


def test_the_exact_model_is_left_alone_first() -> None:
    """On small instances the side that makes plans begins one turn later."""
    settings = Settings(time_limit=10.0, options={"longest_turn": 0.1})
    clock = Clock(settings)
    instance, began = three_on_two(), list[float]()
    context = Context(instance, settings, clock, usable(instance))
    whole = Whole(context)

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
    seeds, begun, improve = list[int](), list[Plans](), conductor._improve

    def noted(context: Context, plans: Plans) -> None:
        begun.append(plans)
        improve(context, plans)

    of = Plans.__init__

    def made(plans: Plans, context: Context, options: np.ndarray, seed: int = 0) -> None:
        of(plans, context, options, seed)
        seeds.append(plans._seed)

    monkeypatch.setattr(conductor, "_improve", noted)
    monkeypatch.setattr(Plans, "__init__", made)
    monkeypatch.setattr("formulations.search.context.available_cores", lambda: cores)
    settings = Settings(time_limit=30.0, workers=workers, options={"small_columns": small})
    outcome = conduct(three_on_two(), settings, Clock(settings), "auto")
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 6)
    assert len(set(seeds)) == len(seeds) == makers and len(begun) == makers - 2


@pytest.mark.parametrize(("dearer", "stale"), [(1, False), (2, True)])
def test_the_exact_model_starts_anew_where_few_options_are_left(
    monkeypatch: pytest.MonkeyPatch, dearer: int, stale: bool
) -> None:
    """A plan of 6 rules out options that cost that: one of four is no reason, two of five are."""
    first = {f"o{number}": at(ANY, cost) for number, cost in enumerate((4, *[9] * dearer))}
    instance = built([first, at(ANY, 3), at(ANY, 3)])
    settings = Settings(time_limit=60, options={"news_left": 0.7})
    context = Context(instance, settings, Clock(settings), usable(instance))
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
    settings = Settings(time_limit=60, options={"news_left": 0.7})
    instance = three_on_two()
    context = Context(instance, settings, Clock(settings), usable(instance))
    whole = Whole(context)
    assert not whole.news()
    context.state.rule_out(np.arange(3) != 2)
    assert whole.news()
    whole.run(1.0)
    assert not whole.news()


def test_the_exact_model_waits_while_it_is_too_large() -> None:
    """Every turn of others may rule out options; until then it does nothing if asked."""
    settings = Settings(workers=1, time_limit=60, options={"whole_columns": 5})
    instance = three_on_two()
    context = Context(instance, settings, Clock(settings), usable(instance))
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

    def solved(seconds: float) -> Status:
        settings = Settings(time_limit=seconds, workers=1)
        return conduct(three_on_two(), settings, Clock(settings), "auto").status

    monkeypatch.setattr(Loops, "missing", True)
    assert solved(30) == Status.OPTIMAL and not waited
    monkeypatch.setattr(Whole, "run", lambda self, amount: False)
    solved(1)
    assert waited == [False]
    monkeypatch.setattr(Loops, "missing", False)
    solved(1)
    assert waited == [False]
