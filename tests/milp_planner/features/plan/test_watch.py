"""What a caller learns while a plan is made, and how the caller ends the search."""

from __future__ import annotations

import io
import threading

import pytest

from formulations import Settings, StoppedBy
from formulations.runtime.timing import COMPILING
from formulations.settings import News
from milp_planner import Plan, plan
from milp_planner.errors import BadInput
from milp_planner.features.plan.watch import Line, Newest, progress_line
from milp_planner.inputs import Cluster, Model
from scenarios import catalog


@pytest.fixture(scope="module")
def inputs() -> tuple[Model, Cluster]:
    """Thirty tables on eight ranks: no solve ends by itself in seconds."""
    model = catalog.find_model("generated:tables=30,seed=3,kind=torchrec")
    return model, catalog.find_cluster("8xh100")


def test_plans_are_checked_and_the_gap_ends_it(inputs: tuple[Model, Cluster]) -> None:
    """Every reported plan passed the check and costs no more than the one before; reports come in
    the caller's own thread, and the search ends at the gap."""
    seen: list[tuple[Plan, int | None]] = []
    threads = set()

    def told(found: Plan, bound: int | None) -> None:
        threads.add(threading.current_thread())
        seen.append((found, bound))

    settings = Settings(time_limit=300, workers=1, polish=False)
    best = plan(*inputs, settings=settings, gap=0.4, on_plan=told)
    assert best.outcome.stopped_by is StoppedBy.GAP and seen
    assert threads == {threading.current_thread()}
    for found, bound in seen:
        assert found.verdict is not None and found.verdict.feasible and found.tables
        assert found.outcome.bound == bound
    values = [found.objective_ms or 0.0 for found, _ in seen]
    assert values == sorted(values, reverse=True) and values[-1] == best.objective_ms


@pytest.mark.parametrize("how", ["False", "KeyboardInterrupt"])
def test_a_caller_ends_it_and_keeps_the_plan(inputs: tuple[Model, Cluster], how: str) -> None:
    """False and KeyboardInterrupt act like Ctrl-C: no more reports come, and the settings can be
    used again."""
    seen: list[Plan] = []

    def told(found: Plan, bound: int | None) -> bool:
        seen.append(found)
        if how == "False":
            return False
        raise KeyboardInterrupt

    settings = Settings(time_limit=300, workers=1)
    best = plan(*inputs, settings=settings, on_plan=told)
    assert best.outcome.stopped_by is StoppedBy.INTERRUPTED and len(seen) == 1
    assert (best.objective_ms or 0) <= (seen[0].objective_ms or 0)
    assert not settings.stop.is_set()


def test_its_errors_are_raised(inputs: tuple[Model, Cluster]) -> None:
    """The callback's error reaches the caller, also outside the main thread, and the solve ends."""
    errors: list[BaseException] = []

    def told(found: Plan, bound: int | None) -> None:
        raise ZeroDivisionError

    def call() -> None:
        try:
            plan(*inputs, settings=Settings(time_limit=300, workers=1), on_plan=told)
        except ZeroDivisionError as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(200)
    assert len(errors) == 1 and not thread.is_alive()


@pytest.mark.parametrize("gap", [-0.1, 1.0, float("nan")])
def test_a_gap_is_a_share(inputs: tuple[Model, Cluster], gap: float) -> None:
    """Any other value is refused before anything is priced."""
    with pytest.raises(BadInput, match="a share below 1"):
        plan(*inputs, gap=gap)


def test_the_line_keeps_what_is_known_of_the_other_side() -> None:
    """A plan of 2 ms, then a bound of 1.5 ms, then 1 ms of it certified; a shorter line erases the
    longer one before it."""
    newest, stream = Newest(), io.StringIO()
    newest(News(0.1, 2_000_000_000, None, "hint"))
    newest(News(0.2, None, 1_500_000_000, "bound"))
    newest(News(0.3, None, None, "certificate", 1_000_000_000))
    text = progress_line(newest.point, 12.3)
    assert text == "12.3 s  best 2 ms  bound 1.5 ms  gap 25%  certified gap 50%"
    line = Line(newest, stream)
    line()
    newest.point = None
    line()
    line.end()
    _, first, second = stream.getvalue().rstrip("\n").split("\r")
    assert "gap 25%" in first and "best" not in second and len(second) == len(first)


def test_the_line_tells_that_the_search_is_compiled() -> None:
    """Half a minute without a plan needs a reason."""
    with COMPILING:
        assert progress_line(None, 3.0) == "3.0 s  compiling the search, once"
    assert progress_line(None, 4.0) == "4.0 s"
