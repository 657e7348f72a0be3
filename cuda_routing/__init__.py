"""Routing of embedding keys to ranks: rules, balance, bucketizing and checkpoints.

``import cuda_routing`` needs NumPy only; numba, torch and a GPU make :func:`bucketize` faster.
"""

from cuda_routing.balance import Balance, balance, balances, rank_loads
from cuda_routing.bucketize import bucketize
from cuda_routing.buffers import keep_idle
from cuda_routing.distributions import (
    KeyLoad,
    after_dedup,
    histogram,
    sample,
    strided,
    uniform,
    zipf,
)
from cuda_routing.errors import BackendUnavailable, CheckpointError, RoutingError
from cuda_routing.hot_keys import HottestRank, hottest_rank
from cuda_routing.inverse import restore, unbucketize
from cuda_routing.kjt import BucketizedKjt, bucketize_kjt
from cuda_routing.recommend import Recommendation, recommend
from cuda_routing.result import Bucketized, Traffic
from cuda_routing.rules import Rule, block_size_of, fmix64, local_keys, owners, splitmix64

__all__ = [
    "BackendUnavailable",
    "Balance",
    "Bucketized",
    "BucketizedKjt",
    "CheckpointError",
    "HottestRank",
    "KeyLoad",
    "Recommendation",
    "RoutingError",
    "Rule",
    "Traffic",
    "after_dedup",
    "balance",
    "balances",
    "block_size_of",
    "bucketize",
    "bucketize_kjt",
    "fmix64",
    "histogram",
    "hottest_rank",
    "keep_idle",
    "local_keys",
    "owners",
    "rank_loads",
    "recommend",
    "restore",
    "sample",
    "splitmix64",
    "strided",
    "unbucketize",
    "uniform",
    "zipf",
]
