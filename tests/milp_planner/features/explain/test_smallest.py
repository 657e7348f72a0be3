"""The least memory against enumeration, and the fewest machines against trying all.

Sweeps over random budgets with a solver that is often poor: more is never dearer, nor fits less.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Objective, Outcome, Placement, Settings
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Answer, Curve
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import BoundSource, StoppedBy, found, infeasible, nothing
from milp_planner import Cluster, Model, explain, plan
from milp_planner.features.explain.answers import draw_answers
from milp_planner.features.explain.axes import Memory, memories_of, with_more
from milp_planner.features.explain.frontier import Least, frontier, least_of
from milp_planner.features.explain.frontier_draw import held_text, least_sentence
from milp_planner.features.moves.limits import limited, trade_off
from milp_planner.inputs.changes import changed
from milp_planner.plans.compile import compile_for
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import as_plan, in_production, quick, small, truth
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster
from tests.milp_planner.plans.test_ssd import small as stored
from tests.milp_planner.pricing.build import cluster as machines_of
from tests.milp_planner.pricing.build import model as many


def least_memory(instance: Instance, memory: str, target: int | None, grain: int = 1) -> Least:
    """The least of a memory for an instance."""
    return least_of(as_plan(instance), memory, quick(), target, grain=grain).least


@settings(max_examples=6, deadline=None)
@given(instance=small(max_tables=3), data=st.data())
def test_the_least_capacity_is_exact(instance: Instance, data: st.DataObject) -> None:
    """By enumeration, the least capacity reaches the target and one byte less does not."""
    first = instance.resources[0]
    target = data.draw(st.one_of(st.none(), st.integers(0, 30)))
    info = least_memory(instance, first.name, target)
    assert info.proved

    def does(capacity: int) -> bool:
        there = with_more(instance, first.name, capacity - int(first.capacity.min()))
        best = truth(there).objective
        return best is not None and (target is None or best <= target)

    if info.impossible:
        assert not does(info.searched)
        assert not does(10**6)
    else:
        assert does(info.least)
        assert info.least == 0 or not does(info.least - 1)


def test_the_plan_itself_is_where_the_search_begins() -> None:
    """It reaches the target with less than its cluster has, so even where no time is left the
    answer is at most what it needs."""
    best = plan(MODEL, cluster(2, hbm="4GiB"), formulation="cpsat", time_limit=20)
    need = Memory("hbm", best).usable(0) + Memory("hbm", best).need(best.outcome.placement)
    info = least_of(best, "hbm", quick(0.0), best.outcome.objective)
    assert info.least is not None and info.least.least == need
    assert "less may do" in least_sentence(info)
    searched = least_of(best, "hbm", quick(20), 2 * (best.outcome.objective or 0)).least
    assert searched is not None and searched.least is not None and searched.least < need


def test_the_line_for_the_clusters_file_leaves_what_is_needed() -> None:
    """HBM beside the exchange and the assumed 15%, DDR beside its headroom, and drives beside their
    stale rows: with the memory printed, an Instance has the least capacity, and hardly more."""
    model, place = stored(ddr="200MiB")
    data = place.to_dict() | {"reservations": {}}
    best = plan(model, Cluster.from_dict(data), time_limit=20)
    answers = explain(best, "smallest", time_limit=60)
    found = {info.over: info.least for info in answers.smallest}
    assert {*found} == {"hbm", "ddr", "ssd"}
    for tier, info in found.items():
        now = Cluster.from_dict(data).to_dict()
        machine = now["machines"][0]
        if tier == "hbm":
            machine["ranks"] = [{"hbm": info.memory}] * 2
        elif tier == "ddr":
            machine["ddr"] = info.memory
        else:
            machine["ssd"]["size"] = info.memory
        instance = compile_for(model, Cluster.from_dict(now), "step_time").instance
        capacity = Memory(tier, as_plan(instance, best.outcome)).usable(0)
        assert info.least <= capacity <= info.least + 1
        assert info.memory >= info.least
    shown = " ".join(drawn(draw_answers(answers)).split())
    assert f"in the cluster's file: ssd.size: {found['ssd'].memory} for each machine" in shown
    assert "after reservations" in shown and "reservations included" in shown


def test_a_coarse_grain_says_what_it_left_open() -> None:
    """The least capacity that is enough is at most a grain above the largest proved too small."""
    info = least_memory(two_modes(16, 20), "ddr", 12, grain=5)
    assert info.too_small < 12 <= info.least <= info.too_small + 5


WHOLE = {"modes": ["HBM_ONLY", "HOST_ONLY"], "sharding_types": "table_wise"}


@settings(max_examples=8, deadline=None)
@given(
    hbm=st.integers(60, 600), ddr=st.integers(60, 600),
    rows=st.lists(st.integers(1, 4), min_size=1, max_size=3), share=st.floats(0.3, 1.1),
)  # fmt: skip
def test_the_fewest_machines_by_enumeration(
    hbm: int, ddr: int, rows: list[int], share: float
) -> None:
    """Every number of machines up to the first that reaches the target gets the right verdict.

    Machines of one rank; tables of 64 kB to 256 kB, whole, in HBM or in DDR; the target is a share
    of what three machines need.
    """
    tables = [{"rows": 250 * n, "dim": 64, "constraints": WHOLE} for n in rows]
    read = many(*tables, mode="inference")
    site = machines_of(2, 1, hbm=f"{hbm}kB", ddr=f"{ddr}kB")
    best = [truth(compile_for(*on(n, read, site), "step_time").instance).objective
            for n in (1, 2, 3)]  # fmt: skip
    target = None if best[2] is None else int(best[2] * share)
    info = least_of(plan(read, site, time_limit=5), "machines", quick(), target, most=3)
    does = [b is not None and (target is None or b <= target) for b in best]
    tried = does[: does.index(True) + 1] if any(does) else does
    assert info.least is not None and len(info.points) == len(tried)
    assert info.least.least == (len(tried) if any(does) else None)
    assert info.least.too_small == tried.count(False)
    assert info.least.least is None or info.least.proved


def on(machines: int, model: Model, cluster: Cluster) -> tuple[Model, Cluster]:
    """Another number of machines of one rank with the same global batch."""
    batch = -(-model.workload.batch_per_rank * cluster.num_ranks // machines)
    return changed(model, cluster, {"machines": machines, "batch": batch})


def test_the_fewest_machines_hold_the_global_batch() -> None:
    """One machine is too small for the tables, every smaller number than the answer is refuted, and
    the answer says what a rank and all of them process."""
    base = cluster(2, hbm="700MiB", ddr="800MiB")
    info = least_of(plan(MODEL, base, time_limit=10), "machines", quick(120), most=4)
    assert info.least is not None and info.least.proved
    assert info.least.least is not None and 1 < info.least.least == info.points[-1].budget
    assert {p.status for p in info.points[:-1]} <= {"infeasible"}
    assert "samples on all ranks together" in held_text(info)
    assert f"fewest machines for any plan: {info.least.least}, proved" in least_sentence(info)


def test_ranks_that_constraints_name_must_be_there() -> None:
    """With a table bound to the last rank of three machines, fewer are not tried and three are
    enough."""
    base = cluster(3)
    data = MODEL.to_dict()
    data["tables"][0]["constraints"]["ranks"] = [0, base.num_ranks - 1]
    best = plan(Model.from_dict(data), base, time_limit=10)
    info = least_of(best, "machines", quick(120), most=2)
    assert [p.budget for p in info.points] == [3]
    assert info.least is not None and info.least.least == 3 and info.least.proved


class Poor(Budget):
    """At random: the optimum, proved; a poor plan with a poor bound; no answer; infeasible."""

    def __init__(self, seed: int) -> None:
        super().__init__(Settings(time_limit=None))
        self._chance = random.Random(seed)

    def no_longer_than(self, seconds: float) -> Budget:
        """Itself."""
        return self

    def certifying(self, gap: float = 0.0) -> Budget:
        """Itself."""
        return self

    def deciding(self, target: int | None) -> Budget:
        """Itself."""
        return self

    def solve(
        self, instance: Instance, share: float = 1.0,
        hint: Placement | None = None, prices: Certificate | None = None,
    ) -> Outcome:  # fmt: skip
        """One of these."""
        best, luck = truth(instance), self._chance.random()
        if luck < 0.3:
            return nothing("poor", StoppedBy.TIME_LIMIT)
        if best.placement is None:
            return infeasible("poor", BoundSource("poor", exact=True))
        placement, bound = best.placement, best.objective
        if luck < 0.6:
            dear = replace(
                instance, shard_cost=-np.abs(instance.shard_cost), objective=Objective.TOTAL
            )
            worst = brute_force(dear).placement
            placement, bound = worst, best.objective - self._chance.randrange(3)
        source = BoundSource("poor", exact=True)
        return found(instance, "poor", placement, StoppedBy.TIME_LIMIT, bound, source)


def check_curve(make: Callable[[int], Instance], answers: Mapping[int, Answer]) -> None:
    """Objectives and bounds never rise with the budget, and hold at every point."""
    for point, answer in answers.items():
        there = make(point)
        best = truth(there).objective
        if answer.placement is not None:
            judged = check(there, answer.placement)
            assert judged.feasible
            assert judged.objectives[there.objective.value] == answer.objective
            assert best is not None and answer.objective is not None and best <= answer.objective
        assert not answer.infeasible or best is None
        assert answer.bound is None or best is None or answer.bound <= best
    for (_, less), (_, more) in pairwise(sorted(answers.items())):
        assert (inf if more.objective is None else more.objective) <= (
            inf if less.objective is None else less.objective
        )
        assert less.infeasible or not more.infeasible
        assert less.infeasible or (less.bound if less.bound is not None else -inf) >= (
            -inf if more.bound is None else more.bound
        )


@settings(max_examples=30, deadline=None)
@given(small(), st.lists(st.integers(-20, 20), min_size=1, max_size=6), st.data())
def test_more_memory(instance: Instance, extras: list[int], data: st.DataObject) -> None:
    """A sweep, then single points beside it, of any tier."""
    name = data.draw(st.sampled_from(sorted(memories_of(instance))))
    axis = Memory(name, as_plan(instance, nothing("poor", StoppedBy.TIME_LIMIT)))
    curve = Curve(axis.instance, axis.need, Poor(data.draw(st.integers(0, 99))))
    curve.sweep(sorted({*extras}))
    beside = data.draw(st.lists(st.integers(-20, 20), max_size=3))
    for extra in beside:
        curve.solve(extra)
    points = {at + step for at in (*extras, *beside) for step in (-1, 0, 1)} | {-20, 20}
    check_curve(curve.make, {point: curve.at(point) for point in points})


@settings(max_examples=25, deadline=None)
@given(small(), st.lists(st.integers(0, 12), min_size=1, max_size=5), st.data())
def test_more_moves(instance: Instance, limits: list[int], data: st.DataObject) -> None:
    """Limits on tables or bytes, from a plan in production."""
    best = truth(instance).placement
    assume(best is not None)
    instance = in_production(instance, best)
    by = data.draw(st.sampled_from(["tables", "bytes"]))
    answers = trade_off(instance, by, sorted({*limits}), Poor(data.draw(st.integers(0, 99))))
    check_curve(lambda limit: limited(instance, by, limit), answers)


@settings(max_examples=20, deadline=None)
@given(small(), st.integers(0, 99), st.data())
def test_frontier_and_least_memory(instance: Instance, seed: int, data: st.DataObject) -> None:
    """What is told of them is true, however poor the solves are."""
    first = instance.resources[data.draw(st.integers(0, len(instance.resources) - 1))]
    resources = (replace(r, name="p") if r is first else r for r in instance.resources)
    instance = replace(instance, resources=tuple(resources))  # a name of no file
    now = as_plan(instance, Poor(seed).solve(instance))
    here = int(first.capacity.min())
    info, _ = frontier(now, "p", [max(0, here + e) for e in (-5, -2, 3, 9)], Poor(seed + 1))
    for point in info.points:
        assert isinstance(point.budget, int)
        best = truth(with_more(instance, "p", point.budget - here)).objective
        assert point.status != "infeasible" or best is None
        assert point.objective is None or (best is not None and best <= point.objective)
        assert point.certified is None or best is None or point.certified <= best
    values = [inf if p.objective is None else p.objective for p in info.points]
    assert values == sorted(values, reverse=True)
    least = least_of(now, "p", Poor(seed + 2), grain=1).least
    assert least.least is None or least.too_small is None or least.too_small < least.least


def test_machines_are_on_their_own() -> None:
    """Without a least point that a plan needs, a plan or bound holds at its own point alone."""
    curve = Curve(lambda _: None, None, Poor(1))  # type: ignore[arg-type, return-value]
    curve.known.take_plan(3, 7, None)  # type: ignore[arg-type]
    curve.known.take_bound(3, 5)
    curve.known.take_impossible(4)
    assert (curve.at(3).objective, curve.at(3).bound) == (7, 5)
    assert curve.at(4) == Answer(infeasible=True) and curve.at(5) == Answer()


def test_what_an_answer_shows() -> None:
    """A target of 10 is reached, refuted, or open."""
    for answer, reached in (
        (Answer(infeasible=True), False), (Answer(9, bound=5), True), (Answer(12, bound=5), None),
        (Answer(12, bound=11), False), (Answer(), None), (Answer(bound=0), None),
    ):  # fmt: skip
        assert answer.reaches(10) is reached
