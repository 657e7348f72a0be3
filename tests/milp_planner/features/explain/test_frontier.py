"""The frontier against enumeration, and its claims against the checker."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Settings, solve
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Answer
from formulations.capacity.proofs import Proofs
from formulations.evidence.certify import certify
from formulations.reduce import bounds_at
from formulations.result.check import check
from formulations.result.outcome import StoppedBy, found
from milp_planner import explain, plan, report
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import Answers
from milp_planner.features.explain.axes import Memory, with_more
from milp_planner.features.explain.call import answers_to_dict, read_answers
from milp_planner.features.explain.frontier import FrontierInfo, Point, frontier
from milp_planner.features.explain.frontier_draw import bars, frontier_svg, held_text, to_csv
from milp_planner.files import write_json
from milp_planner.inputs.changes import changed
from milp_planner.plans.compile import compile_for
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import Asked
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import as_plan, quick, small, truth
from tests.milp_planner.pricing.build import cluster, model

EXTRAS = [-6, -3, -1, 0, 2, 5]
TABLES = tuple({"rows": 40_000_000 * (i + 1), "dim": 128} for i in range(4))


@pytest.fixture(scope="module")
def planned() -> Plan:
    """Two tables on two machines whose HBM is short."""
    return plan(model(*TABLES[:2]), cluster(2, 2, hbm="16GiB", ddr="100GiB"), work_limit=2.0)


def renamed(instance: Instance, old: str, new: str) -> Instance:
    """The instance with another name of a resource."""
    each = (replace(r, name=new) if r.name == old else r for r in instance.resources)
    return replace(instance, resources=tuple(each))


def at(instance: Instance, memory: str, extras: Sequence[int], budget: Budget) -> FrontierInfo:
    """The frontier at some amounts more of a memory, whatever its size is said to be."""
    axis = Memory(memory, as_plan(instance))
    return frontier(
        axis.plan, memory, [max(0, axis.here + extra) for extra in extras], budget, 0.0
    )[0]


@settings(max_examples=10, deadline=None)
@given(instance=small(), data=st.data())
def test_every_point_is_the_optimum_and_certified(instance: Instance, data: st.DataObject) -> None:
    """Every plan is optimal by enumeration, no certificate claims more, the checker accepts each,
    and more memory never costs more."""
    names = data.draw(st.permutations([r.name for r in instance.resources]))
    instance = renamed(instance, names[0], "p")  # which no file of a cluster states
    info = at(instance, "p", EXTRAS, quick())
    assert [p.budget for p in info.points] == sorted({max(0, info.here + e) for e in EXTRAS})
    for point in info.points:
        best = truth(with_more(instance, "p", point.budget - info.here)).objective
        assert point.objective == best and point.verified
        assert point.status == "infeasible" if best is None else point.certified <= best
    plans = [p.objective for p in info.points if p.objective is not None]
    certified = [p.certified for p in info.points if p.certified is not None]
    assert plans == sorted(plans, reverse=True) and certified == sorted(certified, reverse=True)


def test_a_certificate_goes_to_every_capacity() -> None:
    """Two tables of 9 or 3: with less memory the certificate of 12 still proves 12; with more, its
    multipliers prove 12 − 6·4/8. That needs no solve, and the checker accepts all of them."""
    info = at(two_modes(hbm=100, ddr=12), "ddr", [0, 4], quick(0.0))
    assert [p.certified for p in info.points] == [12, 9] and all(p.verified for p in info.points)
    assert info.slope == pytest.approx(-6 / 8)


def test_equal_ends_need_no_solve_between() -> None:
    """If both ends have the same proved objective, no point between them is solved."""
    info = at(two_modes(hbm=100, ddr=100), "hbm", range(0, 50, 10), quick())
    assert {p.objective for p in info.points} == {6}
    assert sum(p.seconds is not None for p in info.points) <= 1


def test_a_better_plan_on_the_way_is_returned() -> None:
    """A poor plan for much memory; with less of it, the search finds what fits with more, too."""
    slack = two_modes(hbm=100, ddr=100)
    poor = solve(two_modes(hbm=100, ddr=12), "cpsat", Settings(time_limit=30, workers=1))
    known = found(slack, "cpsat", poor.placement, StoppedBy.TIME_LIMIT)
    axis = Memory("hbm", as_plan(slack, known))
    sizes = [axis.here - 90, axis.here + 8]
    info, better = frontier(axis.plan, "hbm", sizes, quick(), 0.0)
    assert info.now == poor.objective and better is not None
    assert check(slack, better).objectives["total"] == 6


def test_bounds_of_a_point_start_from_its_neighbours() -> None:
    """With more memory, the multipliers prove 9 before anything is solved; before the proof is
    known, they prove nothing."""
    instance = two_modes(hbm=100, ddr=12)
    outcome = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    more = with_more(instance, "ddr", 4)
    proofs = Proofs({0: instance, 4: more}.__getitem__, [0, 4])
    assert proofs.prices(4) is None
    proofs.learn(0, outcome)
    assert [proofs.known.bound(at) for at in (0, 4)] == [12, 9]
    prices = proofs.prices(4)
    assert prices is not None
    assert bounds_at(more, np.ones(more.num_options, dtype=bool), prices).bound == 9


def test_a_claim_that_the_checker_refuses_is_not_made() -> None:
    """If a certificate claims more than its multipliers prove, the next one is used."""
    instance = two_modes(hbm=100, ddr=12)
    honest = certify(instance, solve(instance, "cpsat", Settings(time_limit=30, workers=1)))
    slack = with_more(instance, "ddr", 8)
    proofs = Proofs({8: slack}.__getitem__, [8])
    proofs.known.take_bound(8, 12, honest.certificate)
    right = replace(honest.certificate, target=6, nodes=({"use": [0]},))
    proofs.known.take_bound(8, 6, right)
    answer = Answer(objective=12, placement=honest.placement)
    assert proofs.outcome(8, answer).certified_bound == 6


def test_sizes_are_those_of_a_cluster(planned: Plan) -> None:
    """At every size, tables get what a cluster of such ranks leaves them, and options and prices
    stay the same."""
    info, _ = frontier(planned, "hbm", [12 * 2**30, 20 * 2**30], Budget(Settings(time_limit=6)))
    assert info.here == 16 * 2**30 in [p.budget for p in info.points]
    for point in info.points:
        more = {"hbm": f"{point.budget - info.here:+}"}
        _, there = changed(planned.model, planned.cluster, more)
        instance = compile_for(planned.model, there, "step_time").instance
        assert point.usable == int(instance.resources[0].capacity.min())
        assert instance.option_names == planned.instance.option_names
        assert np.array_equal(instance.shard_cost, planned.instance.shard_cost)
        fresh = plan(planned.model, there, work_limit=1.0)
        assert point.objective is not None and point.certified is not None
        assert point.certified <= fresh.outcome.objective


def test_twelve_budgets_of_a_shipped_model() -> None:
    """By default there are twelve ascending sizes, one of them the plan's own; every claim is
    re-derived, more memory never costs more, and most points need no solve."""
    best = plan("kuairand-27k", "8xh100", time_limit=10)
    answers = explain(best, "frontier", time_limit=60, asked=Asked(enough=0.01))
    (info,) = answers.frontier
    budgets = [p.budget for p in info.points]
    assert len(budgets) == 12 and budgets == sorted(budgets) and info.here in budgets
    assert all(p.verified for p in info.points)
    plans = [p.objective for p in info.points if p.objective is not None]
    certified = [p.certified for p in info.points if p.certified is not None]
    assert plans == sorted(plans, reverse=True) and certified == sorted(certified, reverse=True)
    assert info.points[-1].gap == 0 and plans[0] > plans[-1]
    assert sum(p.seconds is not None for p in info.points) < 12


def test_machines_stand_for_themselves(planned: Plan) -> None:
    """Each number of machines is a cluster of its own, in which its certificate holds; all share
    one global batch, so one machine's ranks have twice the samples of two."""
    info, _ = frontier(planned, "machines", [1, 2, 3], Budget(Settings(time_limit=15)), 0.05)
    assert [p.budget for p in info.points] == [1, 2, 3] and not info.memory
    assert all(p.verified for p in info.points)
    batch = planned.model.workload.batch_per_rank
    assert [p.batch for p in info.points] == [2 * batch, batch, -(-2 * batch // 3)]
    rates = [p.samples_a_second("ps") for p in info.points]
    own = info.points[1].objective
    assert own is not None and own <= planned.outcome.to_beat
    assert rates[1] == pytest.approx(4 * batch / own * 1e12)
    assert f"a step has {4 * batch:,} to " in held_text(info)
    fewer = {"machines": 3, "workload.batch_per_rank": info.points[2].batch}
    three = plan(*changed(planned.model, planned.cluster, fewer), work_limit=1.0)
    last = info.points[-1]
    assert last.certified <= three.outcome.objective
    assert three.outcome.certified_bound <= last.objective


def test_the_plans_own_point_keeps_the_plan(planned: Plan) -> None:
    """Even where no time is left to improve it, and without a solve where it is settled."""
    (point,) = frontier(planned, "machines", [2], quick(0.0), enough=-1.0)[0].points
    assert point.objective == planned.outcome.objective and point.verified
    (point,) = frontier(planned, "machines", [2], quick(), enough=1.0)[0].points
    assert point.objective == planned.outcome.objective and point.seconds is None


def test_without_a_plan_it_says_what_would_do() -> None:
    """An infeasible plan has a frontier, too, from its own memory upwards."""
    none = plan(model(*TABLES), cluster(1, 2, hbm="8GiB", ddr="2GiB"), time_limit=10)
    assert none.status == "infeasible"
    info, _ = frontier(none, "hbm", 4, Budget(Settings(time_limit=20)))
    assert [p.budget // 2**30 for p in info.points] == [8, 16, 24, 32]
    assert info.points[0].status == "infeasible" and info.points[0].verified


def test_what_cannot_be_asked_is_said(planned: Plan) -> None:
    """An unknown kind is refused with the known ones; so are more machines if no link between them
    is stated."""
    with pytest.raises(BadInput, match=r"'hbn'.*hbm"):
        frontier(planned, "hbn", 3, quick())
    links = {**planned.cluster.to_dict(), "interconnect": {"intra_machine": "400GB/s"}}
    links["machines"] = links["machines"][:1]
    alone = replace(planned, cluster=type(planned.cluster).from_dict(links, "alone"))
    with pytest.raises(BadInput, match="no link between machines"):
        frontier(alone, "machines", 3, quick())
    with pytest.raises(BadInput, match="did you mean batch_per_rank"):
        frontier(planned, "workload.batch_per_rnak", ["×2"], quick())


def test_any_field_has_a_curve(planned: Plan) -> None:
    """Beside the plan's own value, alone changed: a rank's batch, a table's rows."""
    info, _ = frontier(planned, "workload.batch_per_rank", ["×2"], quick(30), 0.05)
    own, double = info.points
    assert (own.budget, double.budget) == ("now", "×2") and double.batch == 2 * own.batch
    assert None not in (own.objective, double.objective) and own.objective < double.objective
    drawing = frontier_svg(info)
    assert drawing is not None and ">×2<" in drawing.render()
    more, _ = frontier(planned, "tables.*.rows", ["+1000%"], quick(30), 0.05)
    assert more.points[1].status == "infeasible" and "frontier over" not in held_text(more)


def point(budget: int, objective: int | None, certified: int | None) -> Point:
    """A point of a drawing."""
    status = "infeasible" if objective is None else "feasible"
    return Point(budget, budget, status, status, objective, certified, 0.5, None, True, 4, 8)


INFO = FrontierInfo(
    "hbm", "rank", "step_time", "units", 20, 40,
    (point(10, None, None), point(20, 40, 20), point(30, 20, 20)),
)  # fmt: skip


def test_bars_are_full_up_to_what_is_certified() -> None:
    """Of 30 letters for 40, the certified half is full and the rest light; without a plan there is
    no bar."""
    assert bars(INFO) == ["", "█" * 15 + "░" * 15, "█" * 15]


def test_the_band_is_between_plan_and_the_next_bound() -> None:
    """The upper edge goes from (20, 40) to (30, 40); the lower one is the bound of 30, which holds
    from 20 on."""
    drawing = frontier_svg(INFO)
    svg = drawing.render()
    band = svg.split('" class="band"')[0].rsplit('points="', 1)[1].split()
    ys = [float(corner.split(",")[1]) for corner in band]
    assert ys[0] == ys[1] < ys[2] == ys[3]
    assert len({*ys[4:]}) == 1 and ys[2] == ys[-1]
    assert 'class="over"' in svg


def test_csv_has_a_line_a_point() -> None:
    """Values are plain integers; unknown ones are empty."""
    rows = list(csv.DictReader(StringIO(to_csv([INFO]))))
    assert [row["budget"] for row in rows] == ["10", "20", "30"]
    assert rows[0]["objective"] == "" and rows[1]["certified_bound"] == "20"
    assert rows[0]["verified"] == "true"


def test_answers_are_read_back_and_drawn_on_the_page(planned: Plan, tmp_path: Path) -> None:
    """A file of answers gives the same frontier, and the page has a section for it."""
    info, _ = frontier(planned, "hbm", 3, Budget(Settings(time_limit=4)))
    answers = Answers(frontier=(info,))
    path = write_json(tmp_path / "answers.json", answers_to_dict(planned, answers))
    assert read_answers([path], planned).frontier == (info,)
    page = report(planned, answers=answers)
    assert 'id="frontier"' in page and 'class="band"' in page
    assert "step_time over HBM of each rank" in repr(answers)
