"""Distinct keys of each feature in order of first appearance, and where each key went."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.rules import Int64Array

Unique = tuple[NDArray[Any], Int64Array, Int64Array]


def unique_numpy(keys: NDArray[Any], starts: Int64Array) -> Unique:
    """De-duplicate within each feature.

    Parameters
    ----------
    keys : array [N]
    starts : array of int64 [T + 1]
        First key of each feature and the end of the last.

    Returns
    -------
    keys : array [U]
        Distinct keys, feature by feature, each feature's in order of first appearance.
    counts : array of int64 [T]
        Number of distinct keys of each feature.
    inverse : array of int64 [N]
        keys_out[inverse[i]] == keys_in[i].
    """
    counts = np.zeros(starts.size - 1, np.int64)
    inverse = np.empty(keys.size, np.int64)
    kept, base = [keys[:0]], 0
    for feature in range(counts.size):
        part = slice(starts[feature], starts[feature + 1])
        found, first, place = np.unique(keys[part], return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        inverse[part] = base + rank[place]
        kept.append(found[order])
        counts[feature] = order.size
        base += order.size
    return np.concatenate(kept), counts, inverse


def unique_numba(keys: NDArray[Any], starts: Int64Array) -> Unique:
    """Return the same as :func:`unique_numpy`, with one open-addressing hash table per feature."""
    from cuda_routing.numba_path import unsigned_view
    from cuda_routing.numba_unique import unique_chunk

    counts = np.zeros(starts.size - 1, np.int64)
    inverse = np.empty(keys.size, np.int64)
    out = np.empty(keys.size, unsigned_view(keys[:0]).dtype)
    size = unique_chunk(unsigned_view(keys), starts, out, counts, inverse)
    return out[:size].view(keys.dtype), counts, inverse


def unique_torch(keys: Any, starts: Any) -> tuple[Any, Any, Any]:
    """Return the same as :func:`unique_numpy` for tensors on any device (one synchronisation)."""
    import torch

    n, features = keys.numel(), starts.numel() - 1
    index = torch.arange(n, device=keys.device)
    feature = torch.searchsorted(starts, index, right=True) - 1
    by_key = torch.sort(keys.view(torch.int32 if keys.element_size() == 4 else torch.int64),
                        stable=True)  # fmt: skip
    order = by_key.indices[torch.sort(feature[by_key.indices], stable=True).indices]
    same = torch.zeros(n, dtype=torch.bool, device=keys.device)
    same[1:] = (keys[order][1:] == keys[order][:-1]) & (feature[order][1:] == feature[order][:-1])
    group = torch.cumsum(~same, 0) - 1
    first = order[~same]  # stable sorts keep the earliest of equal keys in front
    rank = torch.argsort(torch.argsort(first))
    inverse = torch.empty_like(order)
    inverse[order] = rank[group]
    kept = torch.sort(first).values
    counts = torch.bincount(feature[kept], minlength=features)
    return keys[kept], counts, inverse
