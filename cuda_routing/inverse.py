"""Inverse of bucketize: bring grouped keys, or values computed for them, into input order."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_routing.errors import RoutingError
from cuda_routing.features import Features, make_features
from cuda_routing.result import Bucketized
from cuda_routing.rules import Rule, UInt64Array


def unbucketize(values: Any, permute: Any) -> Any:
    """Bring one value (or row) per sent key back into input order: ``values[permute]``.

    Works for de-duplicated keys too, where several inputs share one sent key. Differentiable for
    torch tensors: the gradient of shared rows adds up.

    Raises
    ------
    RoutingError
        There is no permutation (bucketize was called with ``permute=False``).
    """
    if permute is None:
        raise RoutingError("there is no way back without permute: call bucketize with permute=True")
    return values[permute if isinstance(permute, np.ndarray) else permute.long()]


def restore(
    result: Bucketized,
    rule: Rule | int | str | list[Any],
    *,
    num_features: int,
    block_sizes: Any = None,
    boundaries: Any = None,
    batch_sizes: Any = None,
) -> tuple[Any, Any]:
    """Original lengths and keys from a bucketized batch that was not de-duplicated.

    Parameters
    ----------
    result : Bucketized
        A result with its permutation.
    rule, num_features, block_sizes, boundaries, batch_sizes
        As given to bucketize.

    Returns
    -------
    lengths, keys : NumPy arrays
        Equal to the input, save for out-of-range keys of ``continuous`` features: their identity
        was lost on the way.

    Raises
    ------
    RoutingError
        The result is de-duplicated or has no permutation.
    """
    if result.traffic is not None:
        raise RoutingError("a de-duplicated batch keeps no row lengths: keep your own lengths")
    counts = np.asarray(result.lengths).reshape(result.ranks, -1)
    features = make_features(
        num_features, counts.shape[1], result.ranks, rule,
        block_sizes=block_sizes, boundaries=boundaries, batch_sizes=batch_sizes,
    )  # fmt: skip
    feature_of_row = np.repeat(np.arange(num_features), features.batch_sizes)
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    rank, feature = cells // counts.shape[1], feature_of_row[cells % counts.shape[1]]
    keys = np.asarray(result.keys)
    first, step = _numbering(features)
    whole = keys * step[feature].astype(keys.dtype) + first[rank, feature].astype(keys.dtype)
    return counts.sum(0).astype(counts.dtype), unbucketize(whole, result.permute)


def _numbering(features: Features) -> tuple[UInt64Array, UInt64Array]:
    """First key of each (rank, feature) and step of its local keys: key = local · step + first."""
    first = np.zeros((features.ranks, features.count), np.uint64)
    step = np.ones(features.count, np.uint64)
    ranks = np.arange(features.ranks, dtype=np.uint64)
    for t in np.flatnonzero(features.rules == Rule.CONTINUOUS):
        edges, block = features.boundaries[t], features.block_sizes[t]
        if edges is not None:
            first[:, t] = edges[:-1]
        elif block:
            first[:, t] = ranks * block
        else:  # unknown table size: every key was dealt to the ranks in turn
            first[:, t], step[t] = ranks, features.ranks
    return first, step
