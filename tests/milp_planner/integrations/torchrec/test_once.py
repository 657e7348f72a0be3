"""Estimating each distinct shard only once changes nothing but the time."""

import pytest
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.types import CustomTopologyData, ShardEstimator

from milp_planner.integrations.torchrec import MilpShardingPlanner
from milp_planner.integrations.torchrec.rating import OncePerSize, speed_up

from .models import GIB, Case, bags, random_case, topology


class Counting(ShardEstimator):
    """Counts the shards it is asked about."""

    def __init__(self, inner: ShardEstimator) -> None:
        self.inner, self.shards = inner, 0

    def estimate(self, sharding_options: list, sharder_data_map: object) -> None:
        self.shards += sum(len(option.shards) for option in sharding_options)
        self.inner.estimate(sharding_options, sharder_data_map)


def _estimates(case: Case, fast: bool) -> list[object]:
    enumerator = case.enumerator()
    if fast:
        speed_up(enumerator)
    return [
        (option.fqn, option.sharding_type, option.compute_kernel, option.is_weighted, option.shards)
        for option in sorted(
            enumerator.enumerate(case.module, case.sharders),
            key=lambda o: (o.fqn, o.sharding_type, o.compute_kernel),
        )
    ]


@pytest.mark.parametrize("seed", range(8))
def test_same_estimates(seed: int) -> None:
    """On random models every shard's storage and perf equal TorchRec's exactly."""
    assert _estimates(random_case(seed), True) == _estimates(random_case(seed), False)


def test_same_estimates_on_uneven_ranks() -> None:
    """Ranks of different memory cut rows unevenly: every size is estimated."""
    custom = CustomTopologyData({"hbm_cap": [GIB, 3 * GIB, 2 * GIB]}, world_size=3)
    board = topology(3, custom_topology_data=custom, uneven_sharding_perf_multiplier=1.5)
    case = Case(bags([(1000, 64), (7, 16)]), board)
    assert _estimates(case, True) == _estimates(case, False)


def test_equal_shards_are_estimated_once() -> None:
    """65 rows on 64 ranks come in three sizes: 2, 1 and none."""
    case = Case(bags([(65, 64)]), topology(64, 8))
    enumerator = case.enumerator()
    counting = Counting(enumerator._estimators[0])
    enumerator._estimators[0] = OncePerSize(counting)
    options = enumerator.enumerate(case.module, case.sharders)
    assert counting.shards == sum(len({tuple(s.size) for s in o.shards}) for o in options)
    assert counting.shards < sum(len(o.shards) for o in options) / 5


def test_shards_do_not_share_their_estimate() -> None:
    """Changing one shard's perf does not change the others."""
    case = Case(bags([(64, 64)]), topology(4))
    enumerator = case.enumerator()
    speed_up(enumerator)
    options = enumerator.enumerate(case.module, case.sharders)
    shards = next(o for o in options if o.sharding_type == "row_wise").shards
    shards[0].perf.fwd_compute = -1.0
    assert shards[1].perf.fwd_compute > 0


def test_only_the_default_enumerator_is_touched() -> None:
    """A user's enumerator is used as given, even if it is TorchRec's own class."""
    board = topology(2)
    given = EmbeddingEnumerator(board, batch_size=8)
    before = list(given._estimators)
    assert MilpShardingPlanner(board, enumerator=given)._enumerator._estimators == before
    made = MilpShardingPlanner(board)._enumerator
    assert isinstance(made._estimators[0], OncePerSize)

    class Own(EmbeddingEnumerator):
        """A subclass that may depend on its estimators."""

    own = Own(board, batch_size=8)
    speed_up(own)
    assert not any(isinstance(e, OncePerSize) for e in own._estimators)
