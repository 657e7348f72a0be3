"""The least memory against enumeration, and the fewest machines against trying all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance
from milp_planner import Cluster, Model, explain, plan
from milp_planner.features.explain.answers import draw_answers
from milp_planner.features.explain.memory import first_of, uniform
from milp_planner.features.explain.smallest import (
    fewest_machines,
    least_memory,
)
from milp_planner.features.plan.remedies import with_machines
from milp_planner.plans.compile import compile_for
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import quick, small, truth
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster
from tests.milp_planner.plans.test_ssd import small as stored
from tests.milp_planner.pricing.build import cluster as machines_of
from tests.milp_planner.pricing.build import model as many


@settings(max_examples=6, deadline=None)
@given(instance=small(max_tables=3), data=st.data())
def test_the_least_capacity_is_exact(instance: Instance, data: st.DataObject) -> None:
    """By enumeration, the least capacity reaches the target and one byte less does not."""
    tier = instance.resources[0].name
    target = data.draw(st.one_of(st.none(), st.integers(0, 30)))
    info = least_memory(instance, tier, quick(), target)
    assert info.proved

    def does(capacity: int) -> bool:
        best = truth(uniform(instance, tier, capacity)).objective
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
    needed = [least_memory(instance, "ddr", quick(), t).least for t in (None, 12, 6)]
    assert needed == [4, 12, 20]


def test_the_line_for_the_clusters_file_leaves_what_is_needed() -> None:
    """HBM beside the exchange and the assumed 15%, DDR beside its headroom, and drives beside their
    stale rows: with the memory printed, an Instance has the least capacity, and hardly more."""
    model, place = stored(ddr="200MiB")
    data = place.to_dict() | {"reservations": {}}
    best = plan(model, Cluster.from_dict(data), time_limit=20)
    answers = explain(best, "smallest", time_limit=60)
    assert answers.smallest is not None
    found = {info.tier: info for info in answers.smallest}
    assert {*found} == {"hbm", "ddr", "ssd"}
    for tier, info in found.items():
        assert info.least is not None
        assert info.memory is not None
        changed = Cluster.from_dict(data).to_dict()
        machine = changed["machines"][0]
        if tier == "hbm":
            machine["ranks"] = [{"hbm": info.memory}] * 2
        elif tier == "ddr":
            machine["ddr"] = info.memory
        else:
            machine["ssd"]["size"] = info.memory
        instance = compile_for(model, Cluster.from_dict(changed), "step_time").instance
        capacity = int(first_of(instance, tier).capacity.min())
        assert info.least <= capacity <= info.least + 1
    shown = drawn(draw_answers(answers))
    assert f"in the cluster's file: ssd.size: {found['ssd'].memory} for each machine" in shown


def test_a_coarse_grain_says_what_it_left_open() -> None:
    """The least capacity known to be enough is at most a grain above the largest proved too
    small."""
    info = least_memory(two_modes(16, 20), "ddr", quick(), 12, grain=5)
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
    best = [
        truth(compile_for(read, with_machines(site, n), "step_time").instance).objective
        for n in (1, 2, 3)
    ]
    target = None if best[2] is None else int(best[2] * share)
    info = fewest_machines(read, site, "step_time", quick(), target, most=3)
    does = [b is not None and (target is None or b <= target) for b in best]
    assert [t.reaches for t in info.tries] == does[: len(info.tries)]
    assert info.proved
    assert info.fewest == (does.index(True) + 1 if any(does) else None)


def test_the_fewest_machines() -> None:
    """One machine is too small for the tables, and every smaller number than the answer is
    refuted."""
    base = cluster(2, hbm="700MiB", ddr="800MiB")
    info = fewest_machines(MODEL, base, "step_time", quick(120), most=4)
    assert info.proved
    assert info.fewest == info.tries[-1].machines
    assert [t.reaches for t in info.tries[:-1]] == [False] * (len(info.tries) - 1)
    assert info.fewest is not None
    assert info.fewest > 1


def test_ranks_that_constraints_name_must_be_there() -> None:
    """With a table bound to the last rank of three machines, fewer are not tried and three are
    enough."""
    base = cluster(3)
    data = MODEL.to_dict()
    data["tables"][0]["constraints"]["ranks"] = [0, base.num_ranks - 1]
    info = fewest_machines(Model.from_dict(data), base, "step_time", quick(120), most=2)
    assert [t.machines for t in info.tries] == [3] and info.fewest == 3
