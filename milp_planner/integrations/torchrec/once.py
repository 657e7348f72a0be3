"""Estimate every distinct shard once: TorchRec prices equal shards one by one, rank after rank.

The estimate of a shard by TorchRec's default performance estimator is a function of its
option and of its rows and columns alone (``ShardPerfContext``), so the row-wise shards of a table
on 1,024 ranks need two estimates, not 1,024. Only that estimator, in the enumerator that
TorchRec makes itself, is replaced; users' own are left alone.
"""

from __future__ import annotations

import copy
from dataclasses import replace

from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.estimator.estimator import EmbeddingPerfEstimator
from torchrec.distributed.planner.shard_estimators import (
    EmbeddingPerfEstimator as DelegatingPerfEstimator,
)
from torchrec.distributed.planner.types import (
    Enumerator,
    SharderDataMap,
    ShardEstimator,
    ShardingOption,
)


class OncePerSize(ShardEstimator):
    """Hand an estimator one shard of every size an option has, and copy its answers.

    Parameters
    ----------
    inner : ShardEstimator
        One whose performance estimate of a shard depends on option and shard size only.
    """

    def __init__(self, inner: ShardEstimator) -> None:
        self.inner = inner

    def estimate(
        self, sharding_options: list[ShardingOption], sharder_data_map: SharderDataMap
    ) -> None:
        """Set ``perf`` of every shard, in place."""
        reduced = [_representatives(option) for option in sharding_options]
        self.inner.estimate(reduced, sharder_data_map)
        for option, few in zip(sharding_options, reduced, strict=True):
            option.is_weighted = few.is_weighted
            perf = {tuple(shard.size): shard.perf for shard in few.shards}
            for shard in option.shards:
                found = perf[tuple(shard.size)]
                shard.perf = None if found is None else replace(found)


def _representatives(option: ShardingOption) -> ShardingOption:
    """The same option with the first shard of every size."""
    few = copy.copy(option)
    few.shards = list({tuple(shard.size): shard for shard in reversed(option.shards)}.values())
    few.shards.reverse()
    return few


_DEFAULTS = (EmbeddingPerfEstimator, DelegatingPerfEstimator)
"""TorchRec's default estimator, and the class by which its provider (1.9) asks for it."""


def speed_up(enumerator: Enumerator) -> None:
    """Wrap TorchRec's default performance estimator inside its own enumerator, in place."""
    if type(enumerator) is not EmbeddingEnumerator:
        return
    enumerator._estimators = [
        OncePerSize(estimator) if type(estimator) in _DEFAULTS else estimator
        for estimator in enumerator._estimators
    ]
