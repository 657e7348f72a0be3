"""Annealing proposes plans that the check accepts, finds small optima, and repeats."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.instance import Current, Instance, Objective
from formulations.presolve import usable
from formulations.result.check import check, compute_loads, exposed
from formulations.result.placement import same_ranks
from formulations.search import kernels
from formulations.search.anneal import Choice, Sampler, Within
from formulations.search.anneal_data import CLUSTER_LOAD, LOAD, LOADS, MACHINE_LOAD, WIDE
from formulations.search.parameters import DEFAULT
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, at, built, every_kind, placed
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
HEATS = (0.3, 1e-3)
#: Few moves between exchanges, as instances are small.
BRISK = replace(DEFAULT, burst=20)


def ladder(hottest: float, coldest: float, count: int) -> list[tuple[float, float]]:
    """Temperatures of that many replicas."""
    return [(heat, heat) for heat in np.geomspace(hottest, coldest, count).tolist()]


def targets(instance: Instance, plan: object | None, far: int = 0) -> list[int]:
    """The objective of a plan, phase by phase, plus ``far``; without a plan a high target."""
    if plan is None:
        return [10**6] * (len(instance.phases) if instance.by_phase else 1)
    verdict = check(instance, plan)  # type: ignore[arg-type]
    assert verdict.loads is not None
    if instance.by_phase:
        return [int(v) + far for v in exposed(instance, verdict.loads)]
    return [verdict.objectives[instance.objective.value] + far]


def started(instance: Instance, target: list[int], seed: int = 0) -> Sampler | None:
    """A sampler at the first usable option of every table; None where a table has none."""
    keep = usable(instance)
    options = [[o for o in instance.options_of(t) if keep[o]] for t in range(instance.num_tables)]
    if not all(options):
        return None
    sampler = Sampler(instance, seed, BRISK)
    sampler.choose_from(keep)
    first = np.asarray([o[0] for o in options], dtype=np.int64)
    sampler.begin(Choice(first), Within(target))
    return sampler


def contradictory(instance: Instance) -> bool:
    """Whether a pin, or today's plan, puts shards on one rank that must part: no search."""
    given = [pin.ranks or () for pin in instance.pins] + [now.ranks for now in instance.current]
    return any(len(set(ranks)) < len(ranks) for blocks in given for ranks in blocks)


def test_what_every_rank_carries_comes_first() -> None:
    """Beside the 4 bytes on every rank, a table of 6 needs a rank of its own; packed before them,
    it would share one with a table of 2 or 4."""
    tables = [at(ANY, 1, hbm=6), at(ANY, 5, hbm=4), at(ANY, 5, hbm=2), at(EVERY, 0, hbm=4)]
    for seed in range(8):
        sampler = started(built(tables, hbm=10), [10], seed)
        assert sampler is not None and sampler.over == 0.0


def test_like_shards_part() -> None:
    """Two shards that need much memory and two that need much time end on both ranks alike."""
    instance = built([at(ANY, 10, hbm=40)] * 2 + [at(ANY, 40, hbm=10)] * 2, hbm=100)
    for seed in range(8):
        sampler = started(instance, [100], seed)
        assert sampler is not None
        ranks = [int(r[0][0]) for r in sampler.placement().ranks]
        assert ranks[0] != ranks[1] and ranks[2] != ranks[3]


@LOOSE
@given(instances(), st.integers(0, 400))
def test_loads_in_place_are_the_loads_of_the_check(instance: Instance, moves: int) -> None:
    """After any number of moves the kept loads are those summed from scratch."""
    sampler = started(instance, targets(instance, None))
    if sampler is None:
        return
    sampler.run(None, Within(targets(instance, None)), [HEATS], moves)
    placement = sampler.placement()
    verdict = check(instance, placement)
    if verdict.loads is None:  # shards that must part had too few places at the start
        assert instance.block_distinct.any()
        return
    loads, array = compute_loads(instance, placement), sampler.array
    wide = int(array[WIDE])
    kept = array[array[LOAD] : array[LOAD] + array[MACHINE_LOAD]].reshape(instance.num_ranks, wide)
    if instance.objective == Objective.TOTAL:
        found = int(array[array[LOAD] + array[CLUSTER_LOAD]])
        assert found == verdict.objectives["total"]
    elif instance.by_phase:
        assert kept[:, : len(instance.phases)].tolist() == loads.cost.tolist()
    else:
        assert kept[:, 0].tolist() == loads.cost.sum(axis=1).tolist()
    ranked = [u for u, r in zip(loads.use, instance.resources, strict=True) if r.scope == "rank"]
    for index, use in enumerate(reversed(ranked)):
        assert kept[:, wide - 1 - index].tolist() == use.tolist()


@LOOSE
@given(instances())
def test_what_it_calls_a_plan_passes_the_check(instance: Instance) -> None:
    """A state without penalty is feasible, costs at most the target, and none is met where
    there is no plan."""
    truth = brute_force(instance)
    far = targets(instance, truth.placement, 3)
    sampler = started(instance, far)
    if sampler is None:
        return
    sampler.run(None, Within(far), [HEATS], 3000)
    if sampler.value is None or contradictory(instance):
        return
    assert truth.objective is not None
    verdict = check(instance, sampler.placement(best=True))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == sampler.value
    assert truth.objective <= sampler.value <= sum(far)


@LOOSE
@given(instances())
def test_it_finds_the_optimum(instance: Instance) -> None:
    """Aimed at the optimum, over every kind of place, scope, objective and constraint."""
    truth = brute_force(instance)
    if truth.placement is None or not instance.num_tables:
        return
    aim = targets(instance, truth.placement)
    for seed in range(5):
        sampler = started(instance, aim, seed)
        assert sampler is not None
        assert truth.objective is not None
        sampler.run(None, Within(aim, least=truth.objective), [HEATS], 20_000)
        if sampler.value is not None:
            break
    assert sampler.value == truth.objective


@LOOSE
@given(instances())
def test_a_placement_loads_as_it_is(instance: Instance) -> None:
    """A plan put in has no penalty at its own objective and comes out on the same ranks."""
    truth = brute_force(instance)
    if truth.placement is None:
        return
    sampler = Sampler(instance)
    sampler.begin(truth.placement, Within(targets(instance, truth.placement)))
    assert sampler.penalty == 0
    back = sampler.placement()
    assert back.options.tolist() == truth.placement.options.tolist()
    for table in range(instance.num_tables):
        assert same_ranks(back.to_lists(table), truth.placement.to_lists(table))


@LOOSE
@given(instances(), st.integers(2, 5))
def test_every_replica_keeps_its_loads(instance: Instance, count: int) -> None:
    """After exchanges each replica's kept loads are those of its placement, and what is met passes
    the check."""
    sampler = started(instance, targets(instance, None))
    if sampler is None:
        return
    within = Within(targets(instance, None))
    made = sampler.run(None, within, ladder(0.3, 1e-3, count), 600 * count)
    assert made >= 600 * count or not instance.num_tables
    for replica in range(count):
        kernels.select(sampler.array, replica)
        penalty, placement = sampler.penalty, sampler.placement()
        if check(instance, placement).loads is None:
            continue
        fresh = Sampler(instance)
        fresh.begin(placement, within)
        loads = slice(int(sampler.array[LOAD]), int(sampler.array[LOAD] + sampler.array[LOADS]))
        own = slice(int(fresh.array[LOAD]), int(fresh.array[LOAD] + fresh.array[LOADS]))
        assert sampler.array[loads].tolist() == fresh.array[own].tolist()
        assert penalty >= 0
    if sampler.value is not None and not contradictory(instance):
        verdict = check(instance, sampler.placement(best=True))
        assert verdict.feasible
        assert verdict.objectives[instance.objective.value] == sampler.value


def test_replicas_pass_a_barrier() -> None:
    """Two shards of 6 that share a rank must part, one move at a time, and every first move is for
    the worse: a cold state stays, the coldest of replicas gets there."""
    instance = built([at(ANY, size, hbm=size) for size in (6, 6, 5, 5)], hbm=11)
    both = placed(range(4), [0], [0], [1], [1])
    single_shards_only = (0, 100, 8, 1, 100, 0, 0)
    sampler = Sampler(instance, 3, replace(BRISK, mix=single_shards_only))
    sampler.run(both, Within([11]), [(1e-3, 1e-3)], 20_000)
    assert sampler.value is None
    sampler.run(both, Within([11]), [(heat, heat) for heat in (1.0, 0.3, 1e-3)], 20_000)
    assert sampler.value == 11
    assert sampler.placement().to_lists(0) != sampler.placement().to_lists(1)


@pytest.mark.parametrize("replicas", [1, 3])
def test_phases_share_one_target(replicas: int) -> None:
    """A target all of which lies with the other phase than the best plan needs is shifted there,
    and follows plans down."""
    tables = [{"dear": at(ANY, *costs), "cheap": at(ANY, 0, 18, 7)} for costs in
              ((40, 0, 0), (30, 20, 0))]  # fmt: skip
    sampler = Sampler(built(tables, "step_time", phases="pqr"), 4, BRISK)
    rungs = ladder(0.3, 1e-2, replicas) if replicas > 1 else [HEATS]
    sampler.run(Choice(np.asarray([0, 2])), Within([30, 1, 1]), rungs, 20_000)
    assert sampler.value == 25


def test_a_phase_that_costs_nothing_keeps_no_plan_away() -> None:
    """Below a plan met, a phase without any cost is not asked for less than nothing."""
    table = {f"o{cost}": at(ANY, cost, 0) for cost in (9, 8, 7, 6, 5, 4)}
    sampler = Sampler(built([table], "step_time", [[0]], phases="pq"))
    sampler.run(Choice(np.asarray([0])), Within([9, 0], least=4), [HEATS], 2000)
    assert sampler.value == 4


def test_tables_start_on_the_machines_told() -> None:
    """Every shard of a table told a machine starts there, the other's anywhere."""
    sampler = Sampler(built([at(ANY, 1, count=2)] * 3, machines=[[0, 1], [2, 3]]))
    sampler.begin(Choice(np.arange(3), np.asarray([1, 0, -1])), Within([9]))
    placement = sampler.placement()
    assert {int(r) for r in placement.ranks[0][0]} <= {2, 3}
    assert {int(r) for r in placement.ranks[1][0]} <= {0, 1}


def test_it_repeats() -> None:
    """The same seed and moves give the same state; another seed gives another."""
    runs = []
    for seed in (1, 1, 2):
        sampler = started(every_kind(), targets(every_kind(), None), seed)
        assert sampler is not None
        sampler.run(None, Within(targets(every_kind(), None)), [(5.0, 1.0)], 777)
        placement = sampler.placement()
        runs.append([placement.to_lists(t) for t in range(every_kind().num_tables)])
    assert runs[0] == runs[1] != runs[2]


def test_a_forbidden_plan_in_production_is_not_returned_to() -> None:
    """Where today's option is forbidden and nothing may move, there is no plan to propose."""
    table = {name: at(ANY, 1, move_bytes=1) for name in ("other", "today")}
    instance = built(
        [table], "total", [[0]], forbidden=[(0, 1)], current=[Current(0, 1, ((0,),))],
        max_moved_tables=0,
    )  # fmt: skip
    sampler = started(instance, [10])
    assert sampler is not None
    sampler.run(None, Within([10]), [HEATS], 500)
    assert sampler.value is None


def test_a_fusion_group_takes_the_level_all_its_tables_can_take() -> None:
    """A table with one level in a group decides for those that may also leave it."""
    block = at(EVERY, 0)
    tables = [(block, ("f", 0)), {"o": (block, ("f", 2)), "p": block}]
    instance = built(tables, "total", [[0]])
    sampler = Sampler(instance)
    sampler.run(Choice(np.asarray([0, 1])), Within([0]), [HEATS], 100)
    assert sampler.value == 0 and check(instance, sampler.placement(best=True)).feasible


def test_a_plan_that_costs_nothing_ends_a_run() -> None:
    """What is hidden can leave nothing to pay; no lower target is asked for, which would be met for
    ever."""
    instance = built([at(ANY, 3, 2)], "pipelined_step", [[0]], (9, 9), "pq")
    sampler = Sampler(instance)
    sampler.run(Choice(np.asarray([0])), Within([5, 5]), [HEATS], 1000)
    assert sampler.value == 0
