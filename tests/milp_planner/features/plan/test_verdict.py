"""The verdict strip: figures from the outcome, tightest places from the loads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formulations.instance import Current
from formulations.result.outcome import BoundSource, StoppedBy, found, infeasible, nothing
from milp_planner.features.plan.use import Use
from milp_planner.features.plan.verdict import draw_verdict, restricted, verdict_of
from milp_planner.plans.compile import as_current
from tests.milp_planner.features.example import example, placement
from tests.milp_planner.features.plan.test_ranks import drawn


def test_tightest_places_by_hand() -> None:
    """Rank 2 has 80 of 100 HBM, machine 0 has 10 of 50 DDR, the cluster 8 of 9."""
    info = verdict_of(example(), found(example(), "cpsat", placement(), StoppedBy.TIME_LIMIT))
    assert info.tightest == (
        Use("hbm", 80, 100, "rank", 2),
        Use("ddr", 10, 50, "machine", 0),
        Use("pool", 8, 9, "cluster", 0),
    )
    assert [place.headroom for place in info.tightest] == [20, 40, 1]


def test_a_plan_beside_the_one_of_today() -> None:
    """It shows what today's plan costs and what moves; without today's plan it says nothing of
    it."""
    plan, bare = placement(), example()
    current = tuple(
        Current(t, int(option), tuple(map(tuple, plan.to_lists(t))))
        for t, option in enumerate(plan.options)
    )
    outcome = found(bare, "cpsat", plan, StoppedBy.TIME_LIMIT)
    info = verdict_of(replace(bare, current=current), outcome)
    assert (info.today, info.moved_tables, info.moved_bytes) == (outcome.objective, 0, 0)
    assert "to move: 0 tables, 0 B" in drawn(draw_verdict(info))
    assert "today" not in drawn(draw_verdict(verdict_of(bare, outcome)))


def test_a_new_table_is_missing_today() -> None:
    """If all else fits, today's plan lacks only the new table and the line says so; where its own
    tables exceed a capacity, it does not fit."""
    plan = placement()
    current = as_current(plan)[1:]  # all but a
    outcome = found(example(), "cpsat", plan, StoppedBy.TIME_LIMIT)
    info = verdict_of(replace(example(), current=current), outcome)
    assert (info.today, info.missing) == (None, ("a",))
    assert "today: a is missing, all else fits; to move: 0 tables" in drawn(draw_verdict(info))
    tight = replace(example(hbm=69), current=current)
    info = verdict_of(tight, outcome)
    assert info.missing == ()
    assert "today: does not fit" in drawn(draw_verdict(info))


def test_restrictions_come_first() -> None:
    """A limit on moves stands above the status; a long list of tables is shortened only there."""
    bare = example()
    outcome = found(bare, "cpsat", placement(), StoppedBy.TIME_LIMIT)
    current = as_current(placement())
    info = verdict_of(replace(bare, current=current, max_moved_tables=0), outcome)
    lines = drawn(draw_verdict(info)).splitlines()
    assert "restricted: max_moved_tables: at most 0 tables may move" in lines[1]
    assert "FEASIBLE" in lines[2]
    assert "restricted" not in drawn(draw_verdict(verdict_of(bare, outcome)))
    (line,) = restricted(["pins: 1,000: " + ", ".join(["table option"] * 1000)])
    assert len(line.plain) < 400 and line.plain.startswith("restricted: pins: 1,000: table")


def test_a_proved_plan_says_who_proved_it() -> None:
    """*Proved* describes the bound, with its method and arithmetic."""
    outcome = found(
        example(), "cpsat", placement(), StoppedBy.PROOF, 28, BoundSource("cpsat", True)
    )
    text = drawn(draw_verdict(verdict_of(example(), outcome)))
    assert "OPTIMAL BY CPSAT, nothing certified" in text and "gap 0" in text
    assert "proved: no plan is better (cpsat, in integers)" in text
    assert "certified: " not in text


def test_a_float_bound_is_called_float() -> None:
    """A floating-point bound never passes for an exact one."""
    outcome = found(
        example(), "mip", placement(), StoppedBy.TIME_LIMIT, 20, BoundSource("highs", False)
    )
    text = drawn(draw_verdict(verdict_of(example(), outcome)))
    assert "FEASIBLE" in text and "stopped by the time limit" in text
    assert "proved: no plan is below 20 ps (highs, in floating point)" in text


def test_certified_speaks_of_the_certified_bound() -> None:
    """The certified bound comes first, with its gap; if it equals the plan's cost, it stands
    alone."""
    outcome = found(
        example(), "cpsat", placement(), StoppedBy.PROOF, 28, BoundSource("cpsat", True)
    ).with_(certified_bound=14)
    text = drawn(draw_verdict(verdict_of(example(), outcome)))
    assert "OPTIMAL BY CPSAT, certified to 50.00%" in text
    assert text.index("certified to 50") < text.index("   gap 0")
    assert text.count("50.00%") == 1 and "certified: no plan is below 14 ps" in text
    assert text.index("certified") < text.index("proved: no plan is better (cpsat")
    text = drawn(draw_verdict(verdict_of(example(), outcome.with_(certified_bound=28))))
    assert "CERTIFIED OPTIMAL" in text and "proved:" not in text


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            infeasible("cpsat", BoundSource("cpsat", True)),
            ["INFEASIBLE", "no plan exists (cpsat", "not certified", "the solver's word"],
        ),
        (nothing("greedy", StoppedBy.EXHAUSTED), ["UNKNOWN", "the search had no more to try"]),
        (nothing("cpsat", StoppedBy.INTERRUPTED), ["UNKNOWN", "interrupted"]),
    ],
)
def test_without_a_plan_nothing_is_invented(outcome: object, words: list[str]) -> None:
    """Without a plan there is no objective and no tightest place, but the reason in words."""
    info = verdict_of(example(), outcome)  # type: ignore[arg-type]
    assert info.objective is None and info.gap is None and info.tightest == ()
    text = drawn(draw_verdict(info))
    assert all(word in text for word in words)


def test_step_time_is_explained_where_it_is_shown() -> None:
    """Its definition stands beside the figure, within 100 columns."""
    outcome = found(example(), "greedy", placement(), StoppedBy.EXHAUSTED)
    text = drawn(draw_verdict(verdict_of(example(), outcome), "a title"))
    assert "the embedding part of a step, barriers between phases, no overlap" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "bound –" in text and "gap –" in text


def test_the_time_of_other_stages_is_told() -> None:
    """A search that the limit stopped at 18 of 30 s says what had the other 12."""
    outcome = found(example(), "cpsat", placement(), StoppedBy.TIME_LIMIT, seconds=30.0)
    short = outcome.with_(detail={"stages": {"search": 29.0, "pricing": 1.0}})
    shared = outcome.with_(detail={"stages": {"pricing": 0.1, "search": 18.0, "fewer moves": 12.0}})
    said = drawn(draw_verdict(verdict_of(example(), shared)))
    assert "stopped by the time limit: 18 s of search, 12 s of fewer moves" in said
    assert "of search" not in drawn(draw_verdict(verdict_of(example(), short)))
