"""MilpProposer and MilpPartitioner inside TorchRec's own planner."""

from __future__ import annotations

import pytest
from torch import nn
from torchrec.distributed.planner import EmbeddingShardingPlanner
from torchrec.distributed.planner.partitioners import GreedyPerfPartitioner
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.proposers import GreedyProposer
from torchrec.distributed.planner.types import PlannerError

from formulations import Settings, Status
from milp_planner.integrations.torchrec import Lift, MilpPartitioner, MilpProposer, NoPlan

from .models import Case, bags, bare_option, random_case, topology
from .test_planner import QUICK, FixedEnumerator, planner_for
from .torchrec_checks import assert_torchrec_accepts

BRIEF = Settings(time_limit=2.0, workers=2, polish=False, certificate=False)


def _stock(case: Case, **more: object) -> EmbeddingShardingPlanner:
    return EmbeddingShardingPlanner(
        topology=case.topology,
        batch_size=case.batch_size,
        constraints=case.constraints,
        storage_reservation=case.reservation,
        stats=[],
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("seed", [200, 201, 202, 203, 204])
def test_pair_finds_the_joint_optimum(seed: int) -> None:
    """In TorchRec's planner the pair returns the plan our own planner proves optimal."""
    case = random_case(seed)
    proposer = MilpProposer(QUICK)
    stock = _stock(case, proposer=proposer, partitioner=MilpPartitioner(BRIEF))
    ours = planner_for(case)
    try:
        ours.plan(case.module, case.sharders)
    except NoPlan:
        with pytest.raises(PlannerError):
            stock.plan(case.module, case.sharders)
        return
    stock.plan(case.module, case.sharders)
    assert ours.outcome is not None and proposer.outcome is not None
    assert ours.outcome.status == proposer.outcome.status == Status.OPTIMAL
    rating = NoopPerfModel(case.topology).rate(stock._best_plan)
    assert rating == pytest.approx(ours.rating, rel=1e-6)
    assert_torchrec_accepts(stock._best_plan, case.reserved())


def test_beside_the_default_proposers_the_best_wins() -> None:
    """Added to others, with their greedy partitioner kept, it can only improve the plan."""
    case = random_case(204)
    alone = _stock(case, proposer=[GreedyProposer()])
    both = _stock(case, proposer=[GreedyProposer(), MilpProposer(QUICK)])
    alone.plan(case.module, case.sharders)
    both.plan(case.module, case.sharders)
    model = NoopPerfModel(case.topology)
    assert model.rate(both._best_plan) <= model.rate(alone._best_plan)


def test_proposer_lifts_the_search_space() -> None:
    """With more widths and load factors the pair finds the lifted planner's optimum."""
    case = Case(bags([(300_000, 256), (200_000, 128)]), topology(4, 2, hbm=300 * 2**20))
    limits = Lift("all", [0.1, 0.3, 0.6])
    ours, plain = planner_for(case, lift=limits), planner_for(case)
    ours.plan(case.module, case.sharders)
    plain.plan(case.module, case.sharders)
    stock = _stock(case, proposer=MilpProposer(QUICK, lift=limits), partitioner=MilpPartitioner())
    stock.plan(case.module, case.sharders)
    rating = NoopPerfModel(case.topology).rate(stock._best_plan)
    assert rating == pytest.approx(ours.rating, rel=1e-6)
    assert rating < (plain.rating or 0)


def test_a_second_plan_proposes_again() -> None:
    """Unlike TorchRec's DP proposer, ours starts anew on every load."""
    case = random_case(204)
    stock = _stock(case, proposer=MilpProposer(QUICK), partitioner=MilpPartitioner(BRIEF))
    first = stock.plan(case.module, case.sharders)
    second = stock.plan(case.module, case.sharders)
    assert stock._num_proposals == 2
    assert str(first) == str(second)


def test_partitioner_places_what_greedy_cannot() -> None:
    """[4, 4, 6, 6, 4] on two ranks of 12.6: placed under TorchRec's proposers; greedy fails."""
    options = [bare_option(f"t{i}", [size]) for i, size in enumerate((40, 40, 60, 60, 40))]
    case = Case(nn.Module(), topology(2, hbm=126), reserve=0.0)
    with pytest.raises(PlannerError):
        GreedyPerfPartitioner().partition(options, case.reserved())
    placed = MilpPartitioner(BRIEF).partition(options, case.reserved())
    assert placed is options
    assert_torchrec_accepts(placed, case.reserved())
    stock = _stock(
        case,
        enumerator=FixedEnumerator(options),
        proposer=GreedyProposer(),
        partitioner=MilpPartitioner(BRIEF),
    )
    stock.plan(case.module, [])
    assert_torchrec_accepts(stock._best_plan, case.reserved())


def test_ranks_that_fit_are_kept_and_others_are_not() -> None:
    """A proposal with ranks is returned as it is; one that overflows is placed anew."""
    options = [bare_option("a", [3]), bare_option("b", [3])]
    board = topology(2, hbm=5)
    for option, rank in zip(options, (1, 0), strict=True):
        option.shards[0].rank = rank
    MilpPartitioner(BRIEF).partition(options, board)
    assert [o.shards[0].rank for o in options] == [1, 0]
    options[1].shards[0].rank = 1
    MilpPartitioner(BRIEF).partition(options, board)
    assert sorted(o.shards[0].rank for o in options) == [0, 1]


def test_partitioner_raises_torchrecs_error() -> None:
    """A proposal that cannot be placed is a PlannerError, as proposers expect."""
    options = [bare_option("a", [6]), bare_option("b", [6])]
    with pytest.raises(PlannerError, match="proved"):
        MilpPartitioner(BRIEF).partition(options, topology(1, hbm=10))


def test_proposer_on_an_empty_space() -> None:
    """Nothing to shard, nothing to propose."""
    proposer = MilpProposer()
    proposer.load([])
    assert proposer.propose() is None
