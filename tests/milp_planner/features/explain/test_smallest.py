"""The least memory against enumeration, and the fewest machines against trying all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance
from milp_planner import Cluster, Model, explain, plan
from milp_planner.features.explain.answers import draw_answers
from milp_planner.features.explain.axes import Memory, with_more
from milp_planner.features.explain.frontier import Least, least_of
from milp_planner.features.explain.frontier_draw import held_text, least_sentence
from milp_planner.inputs.changes import changed
from milp_planner.plans.compile import compile_for
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import as_plan, quick, small, truth
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster
from tests.milp_planner.plans.test_ssd import small as stored
from tests.milp_planner.pricing.build import cluster as machines_of
from tests.milp_planner.pricing.build import model as many


def least_memory(instance: Instance, memory: str, target: int | None, grain: int = 1) -> Least:
    """The least of a memory for an instance."""
    found = least_of(as_plan(instance), memory, quick(), target, grain=grain).least
    assert found is not None
    return found


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
        assert info.least is not None
        assert does(info.least)
        assert info.least == 0 or not does(info.least - 1)


def test_a_target_needs_more_memory_than_a_plan() -> None:
    """With hbm 16, DDR of 4 allows a plan, 12 one that costs 12, and 20 one that costs 6."""
    instance = two_modes(hbm=16, ddr=20)
    needed = [least_memory(instance, "ddr", t).least for t in (None, 12, 6)]
    assert needed == [4, 12, 20]


def test_the_plan_itself_is_where_the_search_begins() -> None:
    """It reaches the target with less than its cluster has, so even where no time is left the
    answer is at most what it needs."""
    best = plan(MODEL, cluster(2, hbm="4GiB"), formulation="cpsat", time_limit=20)
    assert best.outcome.placement is not None
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
    assert answers.smallest is not None
    found = {info.over: info.least for info in answers.smallest}
    assert {*found} == {"hbm", "ddr", "ssd"}
    for tier, info in found.items():
        assert info is not None and info.least is not None
        assert info.memory is not None
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
    shown = drawn(draw_answers(answers))
    assert f"in the cluster's file: ssd.size: {found['ssd'].memory} for each machine" in shown


def test_a_coarse_grain_says_what_it_left_open() -> None:
    """The least capacity known to be enough is at most a grain above the largest proved too
    small."""
    info = least_memory(two_modes(16, 20), "ddr", 12, grain=5)
    assert info.least is not None
    assert info.too_small is not None
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
