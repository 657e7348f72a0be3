"""``compare``: rows, best bounds and gaps against values set by hand.

What the solves of a comparison share: each formulation its own plans, all formulations the
bounds.
"""

from dataclasses import replace

import numpy as np
import pytest

from formulations import BoundSource, Instance, InstanceError, Objective, Settings
from formulations.errors import UnsupportedInstance
from formulations.result.outcome import Outcome, Status, StoppedBy, found
from formulations.result.placement import Placement
from formulations.settings import News
from milp_planner import compare
from milp_planner.features.plan import call
from milp_planner.features.plan import call as planning
from scenarios.batch.scenario import settings_for
from scenarios.compare import shared
from scenarios.compare.call import best_of, gap_to
from scenarios.compare.facts import BoundInfo, ComparisonRow
from scenarios.compare.shared import ENDED, Shared, ended
from tests.formulations.examples import ANY, at, built
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster


def _row(label: str, value: int | None, bound: int | None, exact: bool = True) -> ComparisonRow:
    source = None if bound is None else BoundSource(label, exact)
    outcome = Outcome(
        Status.FEASIBLE, StoppedBy.TIME_LIMIT, label, bound=bound, bound_source=source
    )
    values = {} if value is None else {o.value: value for o in Objective}
    feasible = None if value is None else True
    return ComparisonRow(label, "total", "feasible", feasible, values, None, bound, 1.0, "",
                         outcome=outcome)  # fmt: skip


def test_bounds_are_those_of_the_section() -> None:
    """Only the requested rows of the objective count; a plan that breaks a rule refutes nothing."""
    rows = [_row("a", 10, 6), _row("b", 9, 8), _row("c", 12, 9, exact=False), _row("d", 9, None)]
    assert best_of(rows, "total") == BoundInfo(9, "c", False)
    assert best_of(rows[3:], "total") is None
    assert best_of(rows, "step_time") is None
    better = replace(rows[0], objectives={"total": 8})
    assert best_of([*rows, better], "total") == BoundInfo(8, "b", True)
    assert best_of([*rows, replace(better, feasible=False)], "total") == BoundInfo(9, "c", False)


def test_gaps_are_to_the_best_bound() -> None:
    """A heuristic's gap uses the bound that another row proved; without a plan there is no gap."""
    best = BoundInfo(8, "exact", True)
    rows = (_row("exact", 8, 8), _row("heuristic", 10, None), _row("nothing", None, None))
    assert [gap_to(best, row) for row in rows] == [0.0, 0.2, None]
    assert gap_to(best, replace(rows[0], feasible=False)) is None


def test_settings_reach_their_formulation_only() -> None:
    """dp.variant reaches dp as variant, and no other formulation."""
    settings = Settings(options={"dp.variant": "first", "mip.solver": "cbc"})
    assert settings_for("dp", settings).options == {"variant": "first"}
    assert settings_for("greedy", settings).options == {}
    with pytest.raises(InstanceError, match=r"write NAME\.variant"):
        settings_for("dp", Settings(options={"variant": "first"}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "the variant merged, {0} × {1} bins of hbm × ddr"),
        ({"dp.variant": "first"}, "the variant first, {0} × {2} bins of hbm × ddr"),
    ],
)
def test_the_dp_says_which_of_the_published_ones_it_is(options: dict[str, str], said: str) -> None:
    """Below the table: 100 × 25 bins per device as merged, 100 × 50 as first written."""
    site = cluster()
    found = compare(
        MODEL, site, formulations=["dp"], objectives=["total"],
        settings=Settings(time_limit=10, options=options),
    )  # fmt: skip
    ranks = site.num_ranks
    bins = said.format(100 * ranks, 25 * ranks, 50 * ranks)
    assert bins in drawn(found.drawing())


def test_nothing_is_priced_with_a_wrong_setting() -> None:
    """The setting is refused before the first formulation is asked."""
    started: list[str] = []
    wrong = Settings(options={"mip.solver": "gurobi"})
    with pytest.raises(InstanceError, match="mip: option 'solver' is 'gurobi'"):
        compare(
            MODEL, cluster(), formulations=["greedy", "mip"], settings=wrong,
            on_start=lambda name, _: started.append(name),
        )  # fmt: skip
    assert started == []


def test_blind_plans_are_shown_as_planned_and_as_run() -> None:
    """On a tight cluster the DP mixes ratios in a fusion group, which the runtime undoes."""
    info = compare(
        MODEL, cluster(hbm="800MiB"), formulations=["dp", "cpsat"], objectives=["total"],
        settings=Settings(time_limit=20),
    )  # fmt: skip
    labels = [row.label for row in info.rows]
    assert labels == ["dp, as planned", "dp, as run", "dp, fusion-aware", "cpsat"]
    exact = next(row for row in info.rows if row.label == "cpsat")
    assert exact.gap == 0 and info.best("total") == exact.objectives["total"]
    for row in info.rows:
        if row.label.endswith("as planned"):
            assert row.feasible is False and row.status == "breaks" and row.gap is None
        elif row.objectives:
            assert row.feasible and row.objectives["total"] >= exact.objectives["total"]
    text = drawn(info.drawing())
    assert "minimising total" in text and max(map(len, text.splitlines())) <= 100


def test_an_uncovered_instance_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formulation that does not cover the instance says so and does not stop the others."""
    solve = planning.solve

    def refuse(instance: Instance, name: str, settings: Settings) -> Outcome:
        if name == "dp":
            raise UnsupportedInstance("three memories")
        return solve(instance, name, settings)

    monkeypatch.setattr(planning, "solve", refuse)
    found = compare(
        MODEL, cluster(), formulations=["dp", "cpsat"], objectives=["total"], time_limit=10
    )
    dp = found.rows[0]
    assert dp.outcome is None and dp.note == "three memories" and found.rows[-1].feasible
    assert found.rows[-1].outcome.goals == ()  # a comparison gives up nothing of the objective
    assert "not covered" in drawn(found.drawing())


def two_phases() -> Instance:
    """One table of cost 3 + 4 on one of two ranks."""
    return built([at(ANY, 3, 4, hbm=5)], phases="pq", hbm=9)


def outcome(instance: Instance, bound: int, exact: bool = True) -> Outcome:
    """The instance's only plan with a bound."""
    plan = Placement(np.asarray([0]), [[np.asarray([1])]])
    source = BoundSource("cpsat", exact)
    return found(instance, "cpsat", plan, StoppedBy.TIME_LIMIT, bound, source)


def test_a_formulation_starts_from_its_own_plans_only() -> None:
    """cpsat gets its plan for another objective as a hint; other formulations do not."""
    instance, known = two_phases(), Shared()
    known.take("cpsat", instance, outcome(instance, 5))
    step = replace(instance, objective=Objective.STEP_TIME)
    hint = known.settings("cpsat", step, Settings()).hint
    assert hint is not None and hint.ranks[0][0].tolist() == [1]
    assert known.settings("scale", step, Settings()).hint is None


def test_bounds_are_everybodys_where_they_hold() -> None:
    """busiest_rank's bound also holds for step_time, but not for total; floating-point bounds are
    not shared."""
    instance, known = two_phases(), Shared()
    known.take("mip", instance, outcome(instance, 7, exact=False))
    assert known.bound("busiest_rank") is None
    known.take("cpsat", instance, outcome(instance, 6))
    assert (known.bound("busiest_rank"), known.bound("step_time")) == (6, 6)
    assert known.bound("total") is None


def test_a_plan_that_meets_a_bound_ends_its_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not earlier, and only after a while in which the solve may prove the same itself."""
    instance, known, told = two_phases(), Shared(), []
    known.take("cpsat", instance, outcome(instance, 6))
    settings = known.settings("scale", instance, Settings(on_progress=told.append))
    settings.on_progress(News(0.0, 7, None, "x"))
    monkeypatch.setattr(shared.time, "monotonic", lambda: 100.0)
    assert not settings.stop.is_set()
    settings.on_progress(News(0.0, 6, None, "x"))
    assert not settings.stop.is_set() and len(told) == 2
    monkeypatch.setattr(shared.time, "monotonic", lambda: 102.5)
    assert settings.stop.is_set()
    stopped = outcome(instance, 5).with_(stopped_by=StoppedBy.INTERRUPTED)
    assert ended(stopped, stopped=False).note == ENDED
    assert ended(stopped, stopped=True) == stopped or ended(stopped, stopped=True).note == ""


def test_auto_is_compared_and_costs_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default auto has a row; scale, here the same search, has its figures without a solve."""
    asked: list[str] = []
    solve = call.solve

    def counted(instance: Instance, name: str, settings: Settings) -> Outcome:
        asked.append(name)
        return solve(instance, name, settings)

    monkeypatch.setattr(call, "solve", counted)
    result = compare(MODEL, cluster(), objectives=["total"], settings=Settings(time_limit=10))
    labels = [row.label for row in result.rows]
    assert "auto" in labels and {"auto", "cpsat", "scale"} - set(asked)
    assert len(asked) == len(set(asked)) + ("dp, fusion-aware" in labels)
    twins = [row for row in result.rows if "the same solve as auto's" in row.note]
    assert len(twins) == 1 and twins[0].objectives == result.rows[0].objectives
