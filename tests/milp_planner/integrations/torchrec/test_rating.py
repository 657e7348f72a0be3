"""Objectives: TorchRec's rating and its critical path, as TorchRec computes them."""

from typing import Any

import pytest
from torch import nn
from torchrec.distributed.planner.stats import _calculate_critical_path
from torchrec.distributed.planner.types import Perf, PlannerError, Storage

from formulations import Objective, Status, check
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan
from milp_planner.integrations.torchrec.rating import (
    guilty,
    milliseconds,
    phased,
    picoseconds,
    torchrec_rating,
    whole_bytes,
)

from .models import bare_option, planned_for, random_case, stock_for, topology


@pytest.mark.parametrize("seed", range(100, 105))
def test_critical_path_is_torchrecs(seed: int) -> None:
    """Our objective is TorchRec's figure to 1e-6 on random models, and no plan of its own beats it.

    Neither does our own plan for the other objective.
    """
    case = random_case(seed)
    try:
        ours = planned_for(case, objective="critical_path")
    except NoPlan as error:
        assert error.outcome is not None and error.outcome.status == Status.INFEASIBLE
        return
    path = _calculate_critical_path(ours.best_plan).total()
    assert ours.rating == pytest.approx(path, rel=1e-12)
    assert ours.outcome.objective / 1e9 == pytest.approx(path, rel=1e-6)
    busiest = planned_for(case, objective="busiest_rank")
    assert path <= _calculate_critical_path(busiest.best_plan).total() * (1 + 1e-6)
    stock = stock_for(case)
    try:
        stock.plan(case.module, case.sharders)
    except PlannerError:
        return
    assert path <= _calculate_critical_path(stock._best_plan or []).total() * (1 + 1e-6)


def test_a_plan_of_torchrecs_is_judged_alike() -> None:
    """Any placement, not only the best one, costs in the Instance what TorchRec says."""
    case = random_case(103)
    stock = stock_for(case)
    stock.plan(case.module, case.sharders)
    problem = case.problem(objective="critical_path")
    verdict = check(problem.instance, problem.placement_of(stock._best_plan))
    path = _calculate_critical_path(stock._best_plan).total()
    assert verdict.objectives["step_time"] / 1e9 == pytest.approx(path, rel=1e-6)


def _two_modules() -> list[Any]:
    """Two tables of one module and one of another, with distinguishable times."""
    first, second, other = (bare_option(name, [1]) for name in "abc")
    module = ("one", nn.Module())
    for option, times in ((first, (1, 2, 4, 8)), (second, (3, 0, 0, 1)), (other, (5, 7, 0, 2))):
        option.shards[0].perf = Perf(*map(float, times))
    first._module = second._module = module
    other._module = ("two", nn.Module())
    return [first, second, other]


def test_phases_by_module_and_sharding_type() -> None:
    """Compute of all modules shares two phases; collectives two per module and sharding type."""
    options = _two_modules()
    rating = phased("critical_path", options)
    assert rating.objective == Objective.STEP_TIME
    assert rating.phases == (
        "fwd_compute", "bwd_compute",
        "fwd_comms/0:one:table_wise", "bwd_comms/0:one:table_wise",
        "fwd_comms/1:two:table_wise", "bwd_comms/1:two:table_wise",
    )  # fmt: skip
    ms = 10**9
    costs = [rating.cost(o, o.shards[0].perf) for o in options]
    assert costs[0] == (1 * ms, 4 * ms, 2 * ms, 8 * ms, 0, 0)
    assert costs[2] == (5 * ms, 0, 0, 0, 7 * ms, 2 * ms)


def test_ids_are_a_phase_of_every_module() -> None:
    """The longest exchange of ids of any rank of a module, added to the critical path: of "one" 3
    and 4 on one rank, or 4 on the slower of two; of "two" 5."""
    options = _two_modules()
    for option, ids in zip(options, (3.0, 4.0, 5.0), strict=True):
        option.shards[0].perf.input_dist_comms = ids
    rating = phased("critical_path_with_ids", options)
    plain = phased("critical_path", options)
    assert rating.phases == (*plain.phases, "input_dist/0:one", "input_dist/1:two")
    costs = [rating.cost(o, o.shards[0].perf) for o in options]
    assert [cost[-2:] for cost in costs] == [(3 * 10**9, 0), (4 * 10**9, 0), (0, 5 * 10**9)]
    for ranks, more in (((0, 0, 1), 7 + 5), ((0, 1, 1), 4 + 5)):
        for option, rank in zip(options, ranks, strict=True):
            option.shards[0].rank = rank
        path = torchrec_rating("critical_path", options, topology(2))
        assert torchrec_rating("critical_path_with_ids", options, topology(2)) == path + more


def test_the_critical_path_with_ids_is_that_of_torchrecs_estimates() -> None:
    """Our objective is its critical path and the modules' longest exchanges of ids, to 1e-6."""
    ours = planned_for(random_case(103), objective="critical_path_with_ids")
    path = _calculate_critical_path(ours.best_plan).total()
    assert ours.rating is not None and ours.rating > path
    assert ours.outcome.objective / 1e9 == pytest.approx(ours.rating, rel=1e-6)


def test_guilty_rank_by_hand() -> None:
    """Rank 0 holds a and b (19 ms in all), rank 1 holds c (14): which is slowest in which phase."""
    options = _two_modules()
    for option, rank in zip(options, (0, 0, 1), strict=True):
        option.shards[0].rank = rank
    busiest = guilty("busiest_rank", options)
    assert (busiest.rank, busiest.milliseconds) == (0, 19.0)
    assert busiest.tables == (("a", 15.0), ("b", 4.0))
    # fwd compute 4 | 5, bwd compute 4 | 0, comms of "one" 2 + 9 on rank 0, of "two" 7 + 2 on rank 1
    path = guilty("critical_path", options)
    assert (path.rank, path.milliseconds) == (0, 15.0)
    assert path.tables == (("a", 14.0), ("b", 1.0))
    assert "rank 0 holds it up: 15.000000 ms (a 14.000000, b 1.000000)" in path.sentence()
    assert guilty("busiest_rank", []) is None
    assert torchrec_rating("critical_path", [], topology(2)) == 0.0


def test_unknown_objective_is_a_sentence() -> None:
    """A misspelt objective is refused with the nearest name."""
    with pytest.raises(BadInput, match="did you mean critical_path"):
        MilpShardingPlanner(topology=topology(2), objective="critcal_path")  # type: ignore[arg-type]


def test_phases_are_torchrecs_total() -> None:
    """The five phases sum to ``Perf.total``, which excludes the input exchange."""
    perf = Perf(1.5, 0.25, 3.0, 0.5, input_dist_comms=100.0, prefetch_compute=0.125)
    micro = 10**6
    assert picoseconds(perf) == (1500 * micro, 250 * micro, 3000 * micro, 500 * micro, 125 * micro)
    assert milliseconds(sum(picoseconds(perf))) == pytest.approx(perf.total, rel=1e-12)


def test_amounts_are_rounded_and_finite() -> None:
    """A third of a picosecond is rounded to the nearest, a fraction of a byte up; an estimator that
    returns infinity or NaN is reported."""
    assert picoseconds(Perf(2 / 3 * 1e-9, 1 / 3 * 1e-9, 0, 0))[:2] == (1, 0)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not finite"):
            picoseconds(Perf(bad, 0, 0, 0))
    assert whole_bytes(Storage(hbm=10.2, ddr=3, ssd=0)) == {"hbm": 11, "ddr": 3, "ssd": 0}  # type: ignore[arg-type]
