"""Few moves by default: half a percent of the objective for bytes that stay."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import cast

import pytest

from formulations import Instance, Outcome, Settings, StoppedBy
from formulations.goals import seek
from formulations.result.check import moved_bytes, moved_tables
from formulations.result.outcome import nothing
from formulations.search import near
from milp_planner import Model, Plan, plan, verify
from milp_planner.errors import BadInput
from milp_planner.features.moves import few
from milp_planner.features.moves.again import Moves
from milp_planner.plans.compile import Compiled
from tests.formulations.search.test_near import tables_on
from tests.milp_planner.features.small import cluster


def model(*more: str) -> Model:
    """Twelve whole tables of similar load, and further ones."""
    loads = {f"t{number}": 5 + 0.37 * number for number in range(12)} | {name: 5.0 for name in more}
    tables = [
        {
            "name": name, "rows": "200k", "dim": 64, "pooling_factor": load,
            "constraints": {"sharding_types": ["table_wise"], "modes": ["HBM_ONLY"]},
        }
        for name, load in loads.items()
    ]  # fmt: skip
    return Model.from_dict({"name": "m", "workload": {"batch_per_rank": 4096}, "tables": tables})


@pytest.fixture(scope="module")
def before() -> Plan:
    """The running plan."""
    return plan(model(), cluster(2), time_limit=10)


def moved(found: Plan) -> int:
    """Bytes that move."""
    placement = found.outcome.placement
    assert placement is not None
    return moved_bytes(found.instance, placement, moved_tables(found.instance, placement))


def test_a_new_table_moves_little(before: Plan) -> None:
    """Without the tolerance the best plan moves many tables; with it the plan is at most half a
    percent dearer, moves no more, says so, and verifies."""
    best = plan(model("new"), cluster(2), start=before, max_moved=Moves(within=0.0), time_limit=10)
    found = plan(model("new"), cluster(2), start=before, time_limit=10)
    reference = found.outcome.before_goals or found.outcome.objective
    assert reference is not None and best.outcome.objective is not None
    assert (found.outcome.objective or 0) <= 1.005 * reference
    assert moved(found) <= moved(best)
    (goal,) = found.outcome.goals
    assert (goal.goal, goal.value) == ("moved_bytes", moved(found))
    assert goal.bound is None or goal.bound <= goal.value
    assert verify(found).ok


@pytest.fixture(scope="module")
def many() -> Plan:
    """The running plan of tables that an exact model places at once."""
    return plan(crowd(), cluster(2), time_limit=20)


def crowd(*more: tuple[str, str, float]) -> Model:
    """Twelve whole tables of 2 to 9 poolings, and further ones with name, rows, poolings."""
    tables = [(f"t{number}", "20k", 2 + 7 * (number * 7 % 12) / 11) for number in range(12)]
    return Model.from_dict(
        {
            "name": "m",
            "workload": {"batch_per_rank": 4096},
            "tables": [
                {
                    "name": name, "rows": rows, "dim": 64, "pooling_factor": load,
                    "constraints": {"sharding_types": ["table_wise"], "modes": ["HBM_ONLY"]},
                }
                for name, rows, load in (*tables, *more)
            ],
        }
    )  # fmt: skip


def test_a_new_table_alone_moves_nothing_else(many: Plan) -> None:
    """A new table that fits beside the others is the only one to be placed, and that is known to be
    the least."""
    found = plan(crowd(("new", "20k", 0.01)), cluster(2), start=many, time_limit=20)
    (goal,) = found.outcome.goals
    assert (goal.goal, goal.value, goal.bound, goal.met) == ("moved_bytes", 0, 0, True)
    assert moved(found) == 0
    best = found.outcome.before_goals or found.outcome.objective or 0
    assert (found.outcome.objective or 0) <= 1.005 * best


def test_a_new_table_moves_others_where_it_must(many: Plan) -> None:
    """Beside a new table of half a rank's load, the best plan that moves nothing is proved to
    cost more than may be given up; what moves is little, and the plan within the tolerance."""
    after = crowd(("new", "20k", 9.0)), cluster(2)
    found = plan(*after, start=many, time_limit=20)
    best = found.outcome.before_goals or found.outcome.objective or 0
    assert (found.outcome.objective or 0) <= 1.005 * best
    stuck = plan(*after, start=many, max_moved=0, time_limit=20)
    assert stuck.status == "optimal" and (stuck.outcome.objective or 0) > 1.005 * best
    assert many.outcome.placement is not None
    held = moved_bytes(many.instance, many.outcome.placement, list(range(12)))
    assert 0 < found.outcome.goals[0].value == moved(found) < held


def test_the_search_from_the_earlier_plan_alone_moves_nothing(
    many: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the earlier plan with the new table is cheap enough, nothing moves, though nothing
    begins at the best plan."""
    after = crowd(("new", "20k", 9.0)), cluster(2)
    best = plan(*after, start=many, max_moved=Moves(within=0.0), time_limit=10)
    for way in ("_tidied", "_annealed", "_modelled", "_opened"):
        monkeypatch.setattr(seek._Seek, way, lambda seeking, _: seeking.plan)
    found = plan(*after, start=many, max_moved=Moves(within=0.9), time_limit=10)
    assert moved(found) == 0 < moved(best)


def test_what_is_repaired_is_not_searched_beyond_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For few moves, or with a price on them, the earlier plan is only made a plan. Within limits
    on moves a search has no end there, and once took thirty times the time limit."""
    instance, there = tables_on([0, 0, 0], [5, 4, 3], 9)
    asked = replace(instance, max_moved_tables=1)
    monkeypatch.setattr(near._Search, "improved", lambda *_: pytest.fail("it searches"))
    settings = Settings(time_limit=5, hint=there)
    compiled = cast(Compiled, SimpleNamespace(instance=asked))
    found = few.solve_moving(
        compiled, Fraction(1), "auto", settings, lambda *_: nothing("auto", StoppedBy.EXHAUSTED)
    )
    assert found is None


def test_nothing_changed_nothing_moves(before: Plan) -> None:
    """The plan stays, and that is known to be the least."""
    found = plan(model(), cluster(2), start=before, time_limit=10)
    assert moved(found) == 0 and found.outcome.goals[0].met


def test_a_lost_rank_moves_little_more_than_was_on_it(before: Plan) -> None:
    """What lay on the rank must move; the reported bytes are those that move, above their bound."""
    found = plan(model(), cluster(2), start=before, lost=[3], time_limit=10)
    goal = found.outcome.goals[0]
    assert goal.goal == "moved_bytes" and goal.value == moved(found) > 0
    assert goal.bound is None or goal.bound <= goal.value
    on_it = [table.name for table in before.tables if table.ranks == ((3,),)]
    placement = found.outcome.placement
    assert placement is not None
    names = [found.instance.table_names[t] for t in moved_tables(found.instance, placement)]
    assert set(on_it) <= set(names)


@pytest.mark.parametrize("within", [-0.1, 1.0])
def test_shares_that_are_none(within: float) -> None:
    """A share of the objective is from 0, below 1."""
    with pytest.raises(BadInput, match="within a share of the objective below 1"):
        Moves(within=within)


def test_without_a_limit_it_begins_at_what_a_limit_finds(
    before: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the time is for plans that move a fifth of the bytes, and the whole search starts
    from the best of them; so no limit is no worse than one."""
    again, near = plan(model("new"), cluster(2), start=before, time_limit=10), list[Instance]()

    def noted(instance: Instance, formulation: str, settings: Settings) -> Outcome:
        near.append(instance)
        assert not settings.polish and settings.time_limit == 0.25 * 8
        return again.outcome

    monkeypatch.setattr(few, "solve", noted)
    free, settings = again.instance, Settings(time_limit=8)
    started = few.from_nearby(free, "auto", settings)
    assert started.hint is again.outcome.placement and started.time_limit == 0.75 * 8
    assert near[0].max_moved_bytes is not None and not free.limits_moves
    assert few.from_nearby(near[0], "auto", settings) is settings and len(near) == 1
