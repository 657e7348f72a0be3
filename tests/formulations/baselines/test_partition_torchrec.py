"""Our proposers and partitioner against the real TorchRec, on the same search spaces."""

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchrec")

from formulations import Settings, solve
from formulations.baselines.partition.partitioner import BalancedPartitioner, Partition, Partitioner
from formulations.baselines.partition.proposals import PROPOSERS
from formulations.instance import Instance, IntArray
from formulations.instance.facts import option_facts
from tests.formulations.baselines.torchrec_twin import random_instance, search_space, topology

CASES = [(0, 1, 4, 6, 2.0), (1, 1, 8, 12, 0.6), (2, 2, 2, 8, 1.0), (3, 4, 2, 9, 0.7),
         (4, 3, 4, 15, 0.5), (5, 2, 4, 20, 0.65)]  # fmt: skip


def theirs(proposer: Any, instance: Instance, limit: int = 400) -> list[list[int]]:
    """The option indices of every proposal of TorchRec's proposer."""
    proposer.load(search_space(instance))
    found = []
    while len(found) < limit and (proposal := proposer.propose()):
        found.append([int(option.compute_kernel) for option in proposal])
        proposer.feedback(partitionable=True, plan=proposal, perf_rating=1.0)
    return found


def ours(name: str, instance: Instance, limit: int = 400) -> list[list[int]]:
    """The same from our proposer."""
    batches = PROPOSERS[name](instance, option_facts(instance))
    rows = itertools.chain.from_iterable(batches)
    return [row.tolist() for row in itertools.islice(rows, limit)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["depth", "total", "uniform", "grid"])
def test_proposals_are_torchrecs(case: tuple[Any, ...], name: str) -> None:
    """Every proposer proposes the same options in the same order."""
    from torchrec.distributed.planner import proposers

    real = {
        "depth": proposers.GreedyProposer(),
        "total": proposers.GreedyProposer(use_depth=False),
        "uniform": proposers.UniformProposer(),
        "grid": proposers.GridSearchProposer(),
    }[name]
    instance = random_instance(*case)
    assert ours(name, instance) == theirs(real, instance)


def test_grid_proposals_are_torchrecs_where_it_proposes() -> None:
    """With three tables grid search has few enough combinations to propose them all."""
    from torchrec.distributed.planner.proposers import GridSearchProposer

    instance = random_instance(9, 1, 2, 3, 1.0)
    found = ours("grid", instance, 2000)
    assert len(found) == 1000
    assert found == theirs(GridSearchProposer(), instance, 2000)


def same_ranks(
    instance: Instance, real: Any, mine: Partitioner, seed: int, draws: int
) -> list[tuple[IntArray, Partition]]:
    """Assert that random options get the same ranks, or fail, in both; return those placed."""
    from torchrec.distributed.planner.types import PlannerError

    space, where = search_space(instance), topology(instance)
    rng = np.random.default_rng(seed)
    placed = []
    for _ in range(draws):
        options = np.asarray([rng.choice(instance.options_of(t)) for t in
                              range(instance.num_tables)])  # fmt: skip
        partition = mine.partition(options)
        try:
            plan = real.partition([space[o] for o in options], where)
        except PlannerError:
            assert partition is None
            continue
        assert partition is not None
        placement = partition.placement(instance)
        assert [placement.to_lists(t)[0] for t in range(instance.num_tables)] == [
            [shard.rank for shard in option.shards] for option in plan
        ]
        placed.append((options, partition))
    return placed


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sort_by", ["storage", "perf"])
def test_ranks_are_torchrecs(case: tuple[Any, ...], sort_by: str) -> None:
    """Random choices of options land on the same ranks, or fail in both."""
    from torchrec.distributed.planner.partitioners import GreedyPerfPartitioner, SortBy

    instance = random_instance(*case)
    real, mine = GreedyPerfPartitioner(sort_by=SortBy(sort_by)), Partitioner(instance, sort_by)
    assert same_ranks(instance, real, mine, case[0], 40)


@pytest.mark.parametrize("case", CASES)
def test_balanced_ranks_are_torchrecs(case: tuple[Any, ...]) -> None:
    """The memory-balanced partitioner bisects as TorchRec's does and ends at the same ranks."""
    from torchrec.distributed.planner.partitioners import MemoryBalancedPartitioner

    instance = random_instance(*case, unit=2**20)
    mine = BalancedPartitioner(instance)
    placed = same_ranks(instance, MemoryBalancedPartitioner(), mine, case[0], 15)
    greedy = [Partitioner(instance, "perf").partition(options) for options, _ in placed]
    balanced = [partition.free for _, partition in placed]
    assert any(g is None or g.free != free for g, free in zip(greedy, balanced, strict=True))


@pytest.mark.parametrize("threshold", [1, 3])
@pytest.mark.parametrize("case", CASES[:4])
def test_threshold_stops_where_torchrecs_does(case: tuple[Any, ...], threshold: int) -> None:
    """With early stopping, the same number of proposals is placed and the same one is best."""
    from torchrec.distributed.planner.proposers import GreedyProposer

    instance = random_instance(*case)
    proposer, partitioner = GreedyProposer(threshold=threshold), Partitioner(instance)
    proposer.load(search_space(instance))
    ratings, proposed = [], 0
    while proposal := proposer.propose():
        proposed += 1
        options = np.asarray([int(option.compute_kernel) for option in proposal])
        partition = partitioner.partition(options)
        rating = None if partition is None else max(partition.load)
        ratings += [] if rating is None else [rating]
        proposer.feedback(partitionable=rating is not None, plan=proposal, perf_rating=rating)
    asked = Settings(certificate=False, options={"proposers": ["depth"], "threshold": threshold})
    outcome = solve(instance, "greedy", asked)
    assert (outcome.detail["proposed"], outcome.detail["placed"]) == (proposed, len(ratings))
    assert outcome.objective == min(ratings, default=None)
