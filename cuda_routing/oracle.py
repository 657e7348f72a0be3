"""Bucketize in NumPy: always available, and the definition that faster paths match bit for bit.

The whole operation is one stable multisplit of the flat key array by owner; rows matter only for
the output lengths, the positions and the rule of each feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.features import Features
from cuda_routing.result import Bucketized
from cuda_routing.rules import Int64Array, Rule, local_keys, owners

Arrays = tuple[NDArray[Any], NDArray[Any]]


def bucketize_numpy(
    lengths: NDArray[Any],
    keys: NDArray[Any],
    features: Features,
    *,
    weights: NDArray[Any] | None = None,
    positions: bool = False,
    permute: bool = True,
) -> Bucketized:
    """Group keys by owner; the arguments must be valid.

    Parameters
    ----------
    lengths : array of int32 or int64 [rows]
    keys : array of int32, int64, uint32 or uint64 [N]
    features : Features
    weights : array [N], optional
    positions, permute : bool
        What to return besides lengths and keys.
    """
    rows = np.repeat(np.arange(lengths.size), lengths)
    owner, local = route(keys, lengths, features)
    order = np.argsort(_narrow(owner, features.ranks), kind="stable")
    counts = np.bincount(
        owner * lengths.size + rows, minlength=features.ranks * lengths.size
    ).astype(lengths.dtype)
    index = index_dtype(keys.dtype)
    where = places = None
    if permute:
        where = np.empty(keys.size, index)
        where[order] = np.arange(keys.size, dtype=index)
    if positions:
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        places = (np.arange(keys.size) - starts[rows])[order].astype(index)
    moved = None if weights is None else weights[order]
    return Bucketized(counts, local[order], moved, places, where, features.ranks)


def route(keys: NDArray[Any], lengths: NDArray[Any], features: Features) -> Arrays:
    """Owner (int64) and local key of each key, feature by feature."""
    owner = np.empty(keys.size, np.int64)
    local = keys.copy()
    starts = feature_starts(lengths, features)
    for feature, code in enumerate(features.rules):
        part = slice(starts[feature], starts[feature + 1])
        rule, edges = Rule(int(code)), features.boundaries[feature]
        block = int(features.block_sizes[feature])
        owner[part] = owners(
            keys[part],
            features.ranks,
            rule,
            block_size=block,
            boundaries=edges,
            dynamicemb_int32=features.dynamicemb_int32,
        )
        if rule is Rule.CONTINUOUS:
            local[part] = local_keys(
                keys[part], features.ranks, rule, block_size=block, boundaries=edges
            )
    return owner, local


def feature_starts(lengths: NDArray[Any], features: Features) -> Int64Array:
    """First key of each feature and the end of the last, [T + 1]."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    return offsets[features.row_starts]


def index_dtype(key_dtype: np.dtype[Any]) -> type[np.signedinteger[Any]]:
    """Signed integer of the keys' width, in which positions and permute are given."""
    return np.int32 if key_dtype.itemsize == 4 else np.int64


def _narrow(owner: Int64Array, ranks: int) -> NDArray[Any]:
    """Owners as 16-bit integers where they fit, because NumPy sorts those stably by radix."""
    return owner.astype(np.uint16) if ranks <= 1 << 16 else owner
