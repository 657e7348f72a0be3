"""The verdict strip: figures from the outcome, tightest places from the loads; the words for goals.

The bound that decides a gap, against bounds known by hand.

Which memories and which ranks are drawn.

Tables of a plan against uses and costs counted by hand.
"""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.instance import Current
from formulations.result.outcome import (
    BoundSource,
    GoalReached,
    StoppedBy,
    found,
    infeasible,
    nothing,
)
from milp_planner.features.plan.goals import given_up, goals_told
from milp_planner.features.plan.memory import KINDS, MemoryInfo, TierMemory, memory_svg
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.features.plan.tables import Facets, draw_tables, facets_of, tables_of
from milp_planner.features.plan.use import Use
from milp_planner.features.plan.verdict import draw_verdict, restricted, verdict_of
from milp_planner.features.report.page import strip
from milp_planner.plans.compile import as_current
from milp_planner.pricing.entries import RANK_ENTRIES, SHARD_ENTRIES
from scenarios.batch.curves import LowerBound, best_bound
from tests.formulations.examples import ANY, EVERY, at, built, placed
from tests.milp_planner.features.example import example, placement
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster


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
    """It shows what today's plan costs and what moves; without today's plan it says nothing."""
    plan, bare = placement(), example()
    current = tuple(
        Current(t, int(option), tuple(map(tuple, plan.to_lists(t))))
        for t, option in enumerate(plan.options)
    )
    outcome = found(bare, "cpsat", plan, StoppedBy.TIME_LIMIT)
    info = verdict_of(replace(bare, current=current), outcome)
    assert (info.today, info.moved_tables, info.moved_bytes) == (outcome.objective, 0, 0)
    assert "to move: 0 tables, 0 B" in drawn(draw_verdict(info))
    assert "to move: 1 table, 0 B" in drawn(draw_verdict(replace(info, moved_tables=1)))
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
    """The certified bound comes first, with its gap; equal to the plan's cost, it stands alone."""
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


bounds = st.lists(st.builds(LowerBound, st.integers(0, 9), st.sampled_from("ab"), st.booleans()))


def test_the_largest_counts_whoever_proved_it() -> None:
    """A larger floating-point bound counts; of equal bounds, the one in integers; without bounds,
    none."""
    exact, floating = LowerBound(8, "a", True), LowerBound(9, "b", False)
    assert best_bound([exact, floating], None) == floating
    assert best_bound([exact, floating], 9) == floating
    assert best_bound([LowerBound(8, "b", False), exact], 9) == exact
    assert best_bound([], 9) is None


def test_a_plan_refutes_floating_point_alone() -> None:
    """A checked plan below a bound refutes it: a floating-point bound is dropped, one in integers
    is kept."""
    assert best_bound([LowerBound(9, "b", False)], 8) is None
    assert best_bound([LowerBound(7, "a", True), LowerBound(9, "b", False)], 8) == LowerBound(
        7, "a", True
    )
    assert best_bound([LowerBound(9, "a", True)], 8) == LowerBound(9, "a", True)


@given(bounds, st.integers(0, 9))
def test_no_valid_bound_is_larger(known: list[LowerBound], objective: int) -> None:
    """No bound that is at most the objective exceeds the chosen one."""
    valid = [c for c in known if c.bound <= objective]
    found = best_bound(known, objective)
    assert all(found is not None and c.bound <= found.bound for c in valid)


def _tier(shares: list[int], name: str = "hbm") -> TierMemory:
    used = tuple((share,) for share in shares)
    return TierMemory(name, "rank", ("CACHING",), used, (100,) * len(shares))


def test_of_one_memory_the_fullest_resource_is_shown() -> None:
    """``hbm:A`` and ``hbm:B`` limit the same HBM; a tier without capacity and use is left out."""
    empty = replace(_tier([0, 0], "ddr"), capacity=(0, 0))
    info = MemoryInfo((_tier([10, 40], "hbm:A"), _tier([20, 30], "hbm:B"), empty), ((0, 1),))
    assert [tier.resource for tier in info.shown] == ["hbm:A"]


def test_the_busiest_ranks_include_who_sets_a_barrier() -> None:
    """Beside the busiest rank, one for each barrier that the busiest rank does not set."""
    info = ranks_of(example(), placement())
    rows = list(info.rows)
    rows[1] = replace(rows[1], critical=(False, True))
    rows[2] = replace(rows[2], critical=(True, False))
    assert [r.rank for r in replace(info, rows=tuple(rows)).busiest(1)] == [1, 2]
    assert [r.rank for r in info.busiest(1)] == [2]


def test_figures_stand_right_of_the_bars() -> None:
    """Room for long amounts is taken from the bars and not from the limit's line."""
    tier = TierMemory("ddr", "machine", ("CACHING",), ((5294 * 2**30 // 10,),), (543 * 2**30,))
    svg = memory_svg(MemoryInfo((tier,), ((0,),)), tier, "ps").render()
    limit = re.search(r'<polyline points="([\d.]+),[^"]+" class="limit"', svg)
    label = re.search(r'<text x="([\d.]+)"[^>]+>(529.4 GiB of 543.0 GiB)<', svg)
    assert limit and label
    assert float(label[1]) - 6.6 * len(label[2]) >= float(limit[1]) + 10


def test_every_entry_of_the_embeddings_has_a_colour() -> None:
    """No entry of shards or the exchange is drawn as being outside the embeddings."""
    assert {entry.name for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)} <= set(KINDS)


def test_every_table_by_hand() -> None:
    """Use is summed over shards, its maximum is on one rank, and the cost the slowest rank's."""
    a, b, c = tables_of(example(), placement()).rows
    assert a.used == {"hbm": 40, "ddr": 20, "pool": 0} and a.most["hbm"] == 10 and a.cost == 7
    assert b.used["hbm"] == 70 and b.ranks == ((2,),) and b.cost == 21
    assert c.used == {"hbm": 0, "ddr": 0, "pool": 8} and c.ranks == ((),) and c.cost == 4


def test_two_shards_on_one_rank_add_up() -> None:
    """A column-wise table with both shards on one rank uses twice as much there."""
    row = tables_of(built([at(ANY, 5, hbm=10, count=2)], hbm=100), placed([0], [1, 1])).rows[0]
    assert row.most == {"hbm": 20} and row.cost == 10


def test_drawing_folds_long_lists_to_the_costliest() -> None:
    """Of 60 tables the 40 costliest are shown in their order; the rest is counted."""
    name = "table_{}_with_a_name_far_longer_than_its_column"
    tables = {name.format(i): at(EVERY, i, hbm=i) for i in range(60)}
    info = tables_of(built(tables, machines=[[0]], hbm=10**6), placed(range(60), *[[0]] * 60))
    text = drawn(draw_tables(info))
    assert "… and 20 cheaper tables" in text and "table_19" not in text and "table_20" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "table_19" in drawn(draw_tables(info, everything=True))


@pytest.mark.parametrize(
    ("option", "facets"),
    [
        ("row_wise/CACHING/0.3/roundrobin", Facets("row_wise", "CACHING", "0.3", "roundrobin")),
        ("column_wise:2x64/HBM_ONLY", Facets("column_wise:2x64", "HBM_ONLY", "", "")),
        ("row_wise/HYBRID/1/3/continuous", Facets("row_wise", "HYBRID", "1/3", "continuous")),
        ("row_wise/HBM_ONLY/roundrobin/beside_caching",
         Facets("row_wise", "HBM_ONLY", "", "roundrobin beside_caching")),
        ("table_row_wise/HOST_ONLY/4_ranks", Facets("table_row_wise", "HOST_ONLY", "", "4_ranks")),
        ("table_wise/fused", None), ("o", None), ("row_wise/CACHING", None),
    ],
)  # fmt: skip
def test_facets(option: str, facets: Facets | None) -> None:
    """Names of priced options are taken apart; other names stay whole."""
    assert facets_of(option) == facets


def test_every_priced_name_comes_apart() -> None:
    """Every option name that pricing enumerates is taken apart and put together again."""
    from milp_planner.pricing import price

    options = price(MODEL, cluster(machines=2))
    for name in options.names:
        facets = facets_of(name)
        assert facets is not None
        parts = [facets.sharding, facets.mode, facets.ratio, *facets.routing.split()]
        assert "/".join(filter(None, parts)) == name


def test_large_plans_still_fit() -> None:
    """Long names, two tiers and all parts fit 100 columns."""
    shards = at(ANY, 123_456_789_012, hbm=123_456_789_012, ddr=987_654_321_012, count=3)
    table = {"table_column_wise:16x128/CACHING/0.35/hash_roundrobin": shards}
    tables = {f"a_very_long_table_name_with_number_{i}": table for i in range(3)}
    instance = built(tables, machines=[range(8)], hbm=2**40, ddr=2**50)
    text = drawn(draw_tables(tables_of(instance, placed(range(3), *[[0, 4, 7]] * 3))))
    assert max(len(line) for line in text.splitlines()) <= 100
    assert all(figure in text for figure in ("0.35", "344.9 GiB", "2.69 TiB", "123.5 ms"))


GOALS = (
    GoalReached("host_memory", "", 0, 0, True),
    GoalReached("even_memory", "rank", 495, None, True),
    GoalReached("shards", "", 32, 25, False),
    GoalReached("total", "", 294_700_000_000, 294_700_000_000, True),
    GoalReached("moves", "", 3, None, False),
)


def test_every_goal_says_whether_it_could_be_less() -> None:
    """Least if it meets the bound, open with a bound or without, even enough; 0 is not shown."""
    assert goals_told(GOALS, "ps") == [
        "fullest rank 49.5% of usable (even enough)",
        "32 shards (open, at least 25)",
        "total 294.7 ms (least)", "3 tables moved (open)",
    ]  # fmt: skip
    assert goals_told(GOALS[:1], "ps") == []
    stepped = GoalReached("even_memory", "rank", 748, 701, True)
    assert goals_told([stepped], "ps") == [
        "fullest rank 74.8% of usable (least to within a step, none is below 70.1%)"
    ]


def test_what_was_given_up_is_told_beside_the_best_plan() -> None:
    """A hundred-thousandth of the best plan's cost is given up; a plan proved, or only found."""
    assert given_up(100_001, None, True, "ps") == []
    assert given_up(100_001, 100_000, True, "") == ["the best plan costs 100,000 (proved)"]
    assert given_up(100_001, 100_000, False, "") == [
        "0.001% above the best plan found, 100,000: given up for goals after the objective"
    ]


def test_a_plan_that_gave_something_up_is_optimal_but_for_that() -> None:
    """If the best plan is proved, strip and page call this one optimal but for what it gave up, in
    the colour of optimal, with the gap and the best plan's cost; they do not say that the search
    was exhausted. If the best plan is only found, they say nothing of the kind."""
    outcome = found(
        example(), "cpsat", placement(), StoppedBy.EXHAUSTED, 27, BoundSource("cpsat", True)
    )
    outcome = outcome.with_(goals=GOALS, before_goals=27)
    info = verdict_of(example(), outcome)
    text = drawn(draw_verdict(info))
    assert "OPTIMAL BY CPSAT but for 3.8% given up for goals, nothing certified" in text
    assert info.status == "feasible" and "no more to try" not in text and "gap 3.6%" in text
    assert "the best plan costs 27 ps (proved)" in text
    assert "32 shards (open, at least 25)" in text
    first = strip(info)[0]
    assert (first.label, first.style) == ("status", "optimal") and "shards" not in first.note
    only_found = verdict_of(example(), outcome.with_(before_goals=26))
    assert (
        "FEASIBLE" in drawn(draw_verdict(only_found))
        and "no more to try" in strip(only_found)[0].note
    )
