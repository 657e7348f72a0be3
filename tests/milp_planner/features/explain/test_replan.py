"""Re-planning within a limit on moves, against enumeration; and the diff of two plans."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Placement, Settings
from formulations.result.check import check
from formulations.result.outcome import StoppedBy
from formulations.result.outcome import found as found_
from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.moves import carried, diff
from milp_planner.features.explain.replan import limited, pays_text, replan, trade_off
from milp_planner.inputs.table import Pin
from milp_planner.integrations.exports import with_pins
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing import price
from tests.milp_planner.features.explain.quick import (
    first_of_each,
    in_production,
    quick,
    small,
    truth,
)
from tests.milp_planner.features.small import MODEL, cluster
from tests.milp_planner.pricing.build import cluster as machines_of
from tests.milp_planner.pricing.build import model as many

LIMITS = Settings(time_limit=60, workers=1)


@settings(max_examples=4, deadline=None)
@given(instance=small(max_tables=2), by=st.sampled_from(["tables", "bytes"]))
def test_every_limit_is_the_optimum_within_it(instance: Instance, by: str) -> None:
    """Objective and infeasibility at k moves, or b bytes, are those of enumeration."""
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
    """Today's plan at limit 0; with every table free, the plan given or a better one."""
    today = tmp_path / "today.csv"
    names = [table.name for table in MODEL.tables]
    lines = [f"{name},HBM_ONLY,,row_wise,all" for name in names]
    today.write_text("\n".join(["table,mode,ratio,sharding_type,ranks", *lines]) + "\n")
    info, best = replan(production, [0, 1, len(names)], quick(), today=today)
    first, *_, last = info.steps
    assert first.objective == info.now != production.outcome.objective
    assert (first.moved_tables, first.moved_bytes) == (0, 0)
    assert last.objective is not None and best is not None
    assert last.objective <= (production.outcome.objective or 0)


def test_nothing_moves_at_limit_0_and_more_never_hurts(production: Plan) -> None:
    """On a cluster with less HBM the curve falls, and each plan keeps within its limit."""
    info, best = replan(production, [0, 1, 2, 4], quick(120), cluster=cluster(1, hbm="1GiB"))
    values = [s.objective for s in info.steps if s.objective is not None]
    assert values == sorted(values, reverse=True)
    equal = [s.moved_tables for s in info.steps if s.objective == values[-1]]
    assert len(set(equal)) == 1  # the plan that moves least is kept
    for step in info.steps:
        assert step.moved_tables is None or step.moved_tables <= step.limit
    assert best is not None
    assert best.verdict is not None
    assert best.verdict.feasible
    assert best.outcome.objective == values[-1]


def test_an_unchanged_world_keeps_the_optimum(production: Plan) -> None:
    """With model and cluster as they were, 0 moves are best already."""
    info, best = replan(production, [0], quick())
    assert info.now == production.outcome.objective == info.steps[0].objective
    assert best is not None
    found = diff(production, best)
    assert (found.moved_tables, found.moved_bytes, found.gain, found.tables) == (0, 0, 0, ())


def test_a_new_table_is_free_to_place(production: Plan) -> None:
    """It is named, and no table moves for it at limit 0."""
    extra = MODEL.tables[0].model_copy(update={"name": "fresh"})
    grown = MODEL.model_copy(update={"tables": (*MODEL.tables, extra)})
    info, best = replan(production, [0], quick(), model=grown)
    assert info.new_tables == ("fresh",)
    assert best is not None
    changes = {row.table: row.change for row in diff(production, best).tables}
    assert changes == {"fresh": "new"}
    back = {row.table: row.change for row in diff(best, production).tables}
    assert back == {"fresh": "gone"}


def test_the_diff_counts_what_the_instance_counts(production: Plan) -> None:
    """Bytes moved are those of the move limit; the gain is the difference of the objectives."""
    other = plan(MODEL, cluster(1), formulation="uniform", settings=LIMITS)
    found = diff(other, production)
    assert other.outcome.objective is not None
    assert production.outcome.objective is not None
    assert found.before == other.outcome.objective
    assert found.gain == other.outcome.objective - production.outcome.objective
    assert found.before_fits is True
    assert found.same + found.moved_tables == len(MODEL.tables)
    assert other.outcome.placement is not None
    base = in_production(production.instance, other.outcome.placement)
    assert production.outcome.placement is not None
    allowed = replace(base, max_moved_bytes=found.moved_bytes)
    assert check(allowed, production.outcome.placement).feasible
    if found.moved_bytes:
        short = replace(base, max_moved_bytes=found.moved_bytes - 1)
        assert not check(short, production.outcome.placement).feasible
    if found.gain > 0:
        assert found.move_seconds is not None
        assert found.pays_after_steps is not None
        steps = found.pays_after_steps
        assert steps * found.gain >= found.move_seconds * 10**12 > (steps - 1) * found.gain


def _placed(*ranks: int) -> Plan:
    """Tables of 1,000 rows × 64 floats, whole and in HBM, one on each of the ranks named."""
    whole = {"modes": "HBM_ONLY", "sharding_types": "table_wise"}
    tables = ({"constraints": whole},) * len(ranks)
    options = price(many(*tables, mode="inference"), machines_of(1, 2))
    instance = compile_instance(options)
    placement = Placement(
        np.arange(len(ranks), dtype=np.int64), [[np.array([rank])] for rank in ranks]
    )
    outcome = found_(instance, "cpsat", placement, StoppedBy.EXHAUSTED)
    return decode(options, instance, outcome)


def test_a_move_pays_when_its_time_is_gained_back() -> None:
    """One table of 256,000 bytes crosses a 400 GB/s link: 640 ns; the gain a step is one lookup."""
    before, after = _placed(0, 0, 0), _placed(0, 0, 1)
    found = diff(before, after)
    assert (found.moved_tables, found.moved_bytes) == (1, 256_000)
    assert found.move_seconds == pytest.approx(640e-9)
    assert found.gain is not None
    assert found.gain > 0
    assert found.before is not None
    assert found.gain == found.before - (found.after or 0)
    assert found.pays_after_steps == math.ceil(640_000 / found.gain)
    assert "paid back after" in pays_text(found)
    back = diff(after, before)
    assert (back.gain, back.pays_after_steps) == (-found.gain, None)
    assert "never pays" in pays_text(back)


def test_the_busiest_receiver_sets_the_time() -> None:
    """Two tables to one rank take twice as long as one to each; a rank that held some of a table
    need not receive it."""
    assert diff(_placed(0, 0), _placed(1, 1)).move_seconds == pytest.approx(1280e-9)
    assert diff(_placed(0, 1), _placed(1, 0)).move_seconds == pytest.approx(640e-9)
    same = diff(_placed(0, 1), _placed(0, 1))
    assert (same.moved_bytes, same.move_seconds) == (0, 0.0)


def test_a_plan_of_more_ranks_does_not_belong(production: Plan) -> None:
    """A placement on ranks that are gone is no placement."""
    wide = plan(MODEL, cluster(2), formulation="greedy", settings=LIMITS)
    assert carried(wide, production.instance) is None or all(
        rank < 2 for t in wide.tables for block in t.ranks for rank in block
    )


def test_bad_limits_are_refused(production: Plan) -> None:
    """One sentence each."""
    with pytest.raises(BadInput, match="from 0"):
        replan(production, [-1], quick())
    with pytest.raises(BadInput, match="tables, bytes"):
        replan(production, [1], quick(), by="rows")


def test_a_plan_of_pinned_shards_is_planned_again() -> None:
    """Pinned shards are blocks of their own; without the pin they are one block again."""
    pinned = with_pins(MODEL, {"items": Pin(mode="HBM_ONLY", sharding_type="column_wise",
                                            column_width=32, ranks=(1, 0))})  # fmt: skip
    before = plan(pinned, cluster(), formulation="greedy", settings=Settings(time_limit=5))
    assert before.table("items").ranks == ((1,), (0,))
    budget = Budget(Settings(time_limit=5), "cpsat")
    info, after = replan(before, [0, 4], budget, model=MODEL)
    assert info.now == before.outcome.objective and after is not None
    assert info.steps[0].objective == info.now
    assert (info.steps[1].objective or 0) <= (info.now or 0)
