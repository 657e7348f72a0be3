"""Re-planning within a limit on moves, against enumeration."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Settings
from formulations.capacity.budget import Budget
from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.features.moves.limits import draw_replan, limited, replan, trade_off
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.exports import with_pins
from milp_planner.plans.placement import Plan
from tests.milp_planner.features.explain.quick import (
    first_of_each,
    in_production,
    quick,
    small,
    truth,
)
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster

LIMITS = Settings(time_limit=60, workers=1)


@settings(max_examples=4, deadline=None)
@given(instance=small(max_tables=2), by=st.sampled_from(["tables", "bytes"]))
def test_every_limit_is_the_optimum_within_it(instance: Instance, by: str) -> None:
    """Objective and infeasibility at k moves or b bytes are those of enumeration."""
    production = first_of_each(instance)
    assume(production is not None)
    assert production is not None
    instance = in_production(instance, production)
    for at, answer in trade_off(instance, by, [0, 1, 2, 5], quick()).items():
        best = truth(limited(instance, by, at)).objective
        assert answer.objective == best
        assert answer.infeasible == (best is None)


@pytest.fixture(scope="module")
def production() -> Plan:
    """The small model on one machine of two ranks with plenty of memory."""
    return plan(MODEL, cluster(1), formulation="cpsat", settings=LIMITS)


def test_from_the_plan_run_today(production: Plan, tmp_path: Path) -> None:
    """Limit 0 gives today's plan; with every table free, the given plan or a better one results."""
    today = tmp_path / "today.csv"
    names = [table.name for table in MODEL.tables]
    whole = {table.name for table in MODEL.tables if table.kind == "torchrec"}
    lines = [
        f"{name},HBM_ONLY,," + ("table_wise,0" if name in whole else "row_wise,all")
        for name in names
    ]
    today.write_text("\n".join(["table,mode,ratio,sharding_type,ranks", *lines]) + "\n")
    info, best = replan(production, [0, 1, len(names)], quick(), start=today)
    first, *_, last = info.steps
    assert first.objective == info.now != production.outcome.objective
    assert (first.moved_tables, first.moved_bytes) == (0, 0)
    assert last.objective is not None and best is not None
    assert last.objective <= (production.outcome.objective or 0)


def test_nothing_moves_at_limit_0_and_more_never_hurts(production: Plan) -> None:
    """On a cluster with less HBM the curve falls, each plan keeps to its limit, and every step
    names the tables whose option or ranks differ from today, also on the terminal."""
    info, best = replan(production, [0, 1, 2, 4], quick(120), cluster=cluster(1, hbm="1GiB"))
    values = [s.objective for s in info.steps if s.objective is not None]
    assert values == sorted(values, reverse=True)
    equal = [s.moved_tables for s in info.steps if s.objective == values[-1]]
    assert len(set(equal)) == 1  # of equal plans, the one that moves least is kept
    for step in info.steps:
        assert step.moved_tables is None or step.moved_tables <= step.limit
        assert len(step.moved) == (step.moved_tables or 0)
    assert best is not None and best.verdict is not None and best.verdict.feasible
    assert best.outcome.objective == values[-1]
    now = {t.name: (t.option, t.ranks) for t in production.tables}
    moved = {t.name for t in best.tables if now[t.name] != (t.option, t.ranks)}
    assert moved and set(info.steps[-1].moved) == moved
    assert all(name in drawn(draw_replan(info)) for name in moved)


def test_an_unchanged_world_keeps_the_optimum(production: Plan) -> None:
    """With the same model and cluster, 0 moves are already optimal."""
    info, best = replan(production, [0], quick())
    assert info.now == production.outcome.objective == info.steps[0].objective
    assert best is not None
    assert (info.steps[0].moved_tables, info.steps[0].moved_bytes) == (0, 0)


def test_a_new_table_is_free_to_place(production: Plan) -> None:
    """The new table is named, and at limit 0 no other table moves for it."""
    extra = MODEL.tables[0].model_copy(update={"name": "fresh"})
    grown = MODEL.model_copy(update={"tables": (*MODEL.tables, extra)})
    info, best = replan(production, [0], quick(), model=grown)
    assert info.new_tables == ("fresh",)
    assert best is not None
    assert [(t.option, t.ranks) for t in best.tables if t.name != "fresh"] == [
        (t.option, t.ranks) for t in production.tables
    ]


def test_a_table_that_today_lacks_is_free_to_place(production: Plan, tmp_path: Path) -> None:
    """A table missing from today's file is named and never counts as moved, and at limit 0 nothing
    else moves. The same holds for a table that the better plan lacks, too; it starts where greedy
    puts it."""
    today = tmp_path / "today.csv"
    fresh, *old = [table.name for table in MODEL.tables]
    lines = [f"{name},HBM_ONLY,,row_wise,all" for name in old]
    today.write_text("\n".join(["table,mode,ratio,sharding_type,ranks", *lines]) + "\n")
    info, best = replan(production, [0, len(old)], quick(), start=today)
    assert info.new_tables == (fresh,) and fresh in drawn(draw_replan(info))
    first, last = info.steps
    assert first.moved == () and first.objective is not None and info.now is not None
    assert last.objective is not None and last.objective <= first.objective <= info.now
    assert best is not None and best.table(fresh) and fresh not in last.moved
    extra = MODEL.tables[0].model_copy(update={"name": "extra"})
    grown = MODEL.model_copy(update={"tables": (*MODEL.tables, extra)})
    info, best = replan(production, [0], quick(), model=grown, start=today)
    assert info.new_tables == (fresh, "extra") and best is not None and best.table("extra")
    assert info.steps[0].moved == ()


def test_bad_limits_are_refused(production: Plan) -> None:
    """One sentence each."""
    with pytest.raises(BadInput, match="from 0"):
        replan(production, [-1], quick())
    with pytest.raises(BadInput, match="tables, bytes"):
        replan(production, [1], quick(), by="rows")


def test_a_plan_of_pinned_shards_is_planned_again() -> None:
    """Pinned shards are blocks of their own; without the pin they are one block again."""
    pinned = with_pins(MODEL, {"items": PinSpec(mode="HBM_ONLY", sharding_type="column_wise",
                                            column_width=32, ranks=(1, 0))})  # fmt: skip
    before = plan(pinned, cluster(), formulation="greedy", settings=Settings(time_limit=5))
    assert before.table("items").ranks == ((1,), (0,))
    budget = Budget(Settings(time_limit=5), "cpsat")
    info, after = replan(before, [0, 4], budget, model=MODEL)
    assert info.now == before.outcome.objective and after is not None
    assert info.steps[0].objective == info.now
    assert (info.steps[1].objective or 0) <= (info.now or 0)
