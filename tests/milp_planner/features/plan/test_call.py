"""``plan`` as a Python call.

What a caller learns while a plan is made, and how the caller ends the search.
"""

import io
import threading
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import milp_planner
from formulations import Settings, Status, StoppedBy, solve
from formulations.result.check import check
from formulations.runtime.timing import COMPILING
from formulations.settings import News
from milp_planner import Plan, plan
from milp_planner.errors import BadInput
from milp_planner.features.plan.watch import Line, Newest, progress_line
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_for
from scenarios import catalog
from tests.milp_planner.features.small import MODEL, cluster


def test_an_exact_plan_is_proved_and_checked() -> None:
    """Optimal in integers, accepted by the check, a row per table."""
    found = plan(MODEL, cluster(), formulation="cpsat", time_limit=30)
    assert found.outcome.status == Status.OPTIMAL
    assert found.outcome.placement is not None
    assert check(found.instance, found.outcome.placement).feasible
    assert [t.name for t in found.tables] == [t.name for t in MODEL.tables]


def test_the_time_limit_holds_for_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of pricing are not given to the solve again, and the plan says where they went."""
    left: list[float] = []

    def slow(*inputs: Any) -> Any:
        time.sleep(0.4)
        return compile_for(*inputs)

    def solved(instance: Any, formulation: str, settings: Settings) -> Any:
        left.append(settings.timed.left())
        return solve(instance, formulation, settings)

    monkeypatch.setattr("milp_planner.features.plan.call.compile_for", slow)
    monkeypatch.setattr("milp_planner.features.plan.call.solve", solved)
    found = plan(MODEL, cluster(), formulation="cpsat", time_limit=30)
    stages = found.outcome.detail["stages"]
    assert left[0] <= 29.6 and isinstance(stages, dict) and stages["pricing"] >= 0.4
    assert found.outcome.seconds >= sum(stages.values()) - 0.01


def test_a_limit_that_is_none_is_refused() -> None:
    """By every public call that takes one, before any work."""
    place, best = cluster(), plan(MODEL, cluster(), formulation="greedy")
    calls: list[Callable[[Any], object]] = [
        lambda wrong: plan(MODEL, place, time_limit=wrong),
        lambda wrong: plan(MODEL, place, settings=Settings(time_limit=wrong)),
        lambda wrong: milp_planner.audit(best, MODEL, place, time_limit=wrong),
        lambda wrong: milp_planner.compare(MODEL, place, time_limit=wrong),
        lambda wrong: milp_planner.explain(best, time_limit=wrong),
    ]
    for call, wrong in product(calls, (-1, 0, float("nan"), float("inf"), "5", True)):
        with pytest.raises(BadInput, match=rf"time_limit: found {wrong!r}; allowed: "):
            call(wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": {"workers": 8}}, r"settings: found a dict; allowed: .*Settings\(time_limit"),
        ({"settings": Settings(workers=0)}, "workers: found 0; allowed: at least 1"),
        ({"settings": Settings(work_limit=-2)}, "work_limit: found -2; allowed: above 0"),
        ({"settings": Settings(seed=-1)}, "seed: found -1"),
        ({"gap": "5"}, "gap: found '5'; allowed: a share below 1, such as 0.5% or 0.005"),
        ({"gap": float("nan")}, "gap: found nan"),
        ({"gap": -0.1}, "gap: found -0.1"),
    ],
)
def test_settings_of_another_kind_are_refused(given: dict[str, Any], said: str) -> None:
    """By ``plan`` and ``compare`` alike."""
    for call in (plan, milp_planner.compare):
        with pytest.raises(BadInput, match=said):
            call(MODEL, cluster(), **given)  # type: ignore[operator]


def test_compare_takes_the_limits_of_plan() -> None:
    """Each solve gets them."""
    found = milp_planner.compare(
        MODEL, cluster(), formulations=["cpsat"], objectives=["total"], time_limit=7, gap=0.5
    )
    outcome = found.rows[0].outcome
    assert outcome is not None
    assert outcome.settings["time_limit"] == 7
    assert outcome.settings["gap"] == 0.5


def test_a_table_that_is_not_there() -> None:
    """The sentence names the nearest; the error is BadInput and, for lookups, a KeyError."""
    best = plan(MODEL, cluster(), formulation="greedy")
    name = best.tables[0].name
    for call in (best.table, best.shards, best.model.table):
        with pytest.raises(BadInput, match=f"no table is called '{name}x'; did you mean {name}"):
            call(f"{name}x")
        with pytest.raises(KeyError):
            call("zz")


def test_infeasible_carries_its_diagnosis() -> None:
    """The outcome proves it and says what is lacking; a stopped search asks nothing more."""
    tiny = cluster(hbm="64MiB", ddr="64MiB")
    found = plan(MODEL, tiny, formulation="cpsat", time_limit=20)
    assert found.outcome.status == Status.INFEASIBLE and found.tables == ()
    assert {"capacities", "drop", "conflict"} <= set(found.outcome.detail["diagnosis"])  # type: ignore[call-overload]
    settings = Settings(time_limit=20)
    settings.stop.set()
    stopped = plan(MODEL, tiny, formulation="cpsat", settings=settings)
    assert "diagnosis" not in stopped.outcome.detail


def test_public_names_are_lazy_and_complete() -> None:
    """Every name in __all__ can be imported; any other is an AttributeError."""
    assert all(getattr(milp_planner, name) is not None for name in milp_planner.__all__)
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = milp_planner.plam  # type: ignore[attr-defined]


def test_inputs_change_by_path() -> None:
    """What a request changes is what is planned, once, and a mistake names the field."""
    changes = {"cluster.machines": 2, "tables.users.rows": "×2", "workload.batch_per_rank": "+50%"}
    found = plan(MODEL, cluster(), formulation="greedy", change=changes)
    assert len(found.cluster.machines) == 2
    assert found.model.table("users").rows == 2 * MODEL.table("users").rows
    assert found.model.workload.batch_per_rank * 2 == 3 * MODEL.workload.batch_per_rank
    with pytest.raises(BadInput, match=r"rowz: unknown field; did you mean rows"):
        plan(MODEL, cluster(), change={"tables.users.rowz": 3})


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
