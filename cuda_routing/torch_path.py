"""Bucketize in torch operations alone: any device, no compiler, no host synchronisation.

The path for CUDA tensors where the kernels cannot be compiled, and a second opinion in tests.
torch has no unsigned 64-bit arithmetic, so keys travel as int64 bit patterns: products wrap the
same way, and shifts, comparisons, division and modulo are written out for unsigned numbers.
"""

from __future__ import annotations

from typing import Any

from cuda_routing.features import Features
from cuda_routing.result import Bucketized
from cuda_routing.rules import Rule

_SIGN = -(1 << 63)


def signed(value: int) -> int:
    """Return a 64-bit pattern as the int64 that has the same bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


_FMIX = tuple(signed(c) for c in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
_SPLIT = tuple(signed(c) for c in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_GOLDEN = signed(0x9E3779B97F4A7C15)


def bucketize_torch(
    lengths: Any,
    keys: Any,
    features: Features,
    *,
    weights: Any = None,
    positions: bool = False,
    permute: bool = True,
) -> Bucketized:
    """Group keys by owner; arguments as in :func:`cuda_routing.oracle.bucketize_numpy`, as tensors.

    Lengths are trusted to be non-negative and to add up to the number of keys, because a check
    would cost a synchronisation.
    """
    import torch

    count, rows_total = keys.numel(), lengths.numel()
    device = keys.device
    row_ids = torch.arange(rows_total, device=device)
    rows = torch.repeat_interleave(row_ids, lengths.long(), output_size=count)
    owner, local = _route(keys, rows, lengths, features)
    order = torch.sort(owner.to(torch.int32), stable=True).indices
    counts = torch.zeros(features.ranks * rows_total, dtype=lengths.dtype, device=device)
    counts.scatter_add_(0, owner * rows_total + rows, lengths.new_ones(()).expand(count))
    index = torch.int32 if keys.element_size() == 4 else torch.int64
    where = places = None
    if permute:
        where = torch.empty(count, dtype=index, device=device)
        where[order] = torch.arange(count, dtype=index, device=device)
    if positions:
        starts = torch.cumsum(lengths.long(), 0) - lengths
        places = (torch.arange(count, device=device) - starts[rows])[order].to(index)
    moved = None if weights is None else weights[order]
    return Bucketized(counts, local[order].to(keys.dtype), moved, places, where, features.ranks)


def _route(keys: Any, rows: Any, lengths: Any, features: Features) -> tuple[Any, Any]:
    """Owner and local key of each key, both int64."""
    import torch

    u = _unsigned(keys)
    kinds = set(zip(features.rules.tolist(), features.block_sizes.tolist(), strict=True))
    alone = len(kinds) == 1 and all(edge is None for edge in features.boundaries)
    if alone:
        return _route_one(u, features, 0, keys.element_size() == 4)
    owner, local = torch.zeros_like(u), u.clone()
    per_row = torch.from_numpy(features.row_starts).to(keys.device)
    feature_of = torch.searchsorted(per_row, rows, right=True) - 1
    for feature in range(features.count):
        mine = feature_of == feature
        one_owner, one_local = _route_one(u, features, feature, keys.element_size() == 4)
        owner = torch.where(mine, one_owner, owner)
        local = torch.where(mine, one_local, local)
    return owner, local


def _route_one(u: Any, features: Features, feature: int, narrow: bool) -> tuple[Any, Any]:
    """Owner and local key of every key under one feature's settings."""
    ranks, rule = features.ranks, Rule(int(features.rules[feature]))
    if rule is Rule.ROUNDROBIN:
        return unsigned_modulo(u, ranks), u
    if rule is Rule.HASH_ROUNDROBIN:
        hashed = _fmix64(u)
        keep = narrow and features.dynamicemb_int32
        return unsigned_modulo(hashed & 0xFFFFFFFF if keep else hashed, ranks), u
    if rule is Rule.HASH_INDEPENDENT:
        hashed = mix64(u + _GOLDEN)
        carry = _shift((hashed & 0xFFFFFFFF) * ranks, 32)
        return _shift(_shift(hashed, 32) * ranks + carry, 32), u
    return _continuous(u, features, feature)


def _continuous(u: Any, features: Features, feature: int) -> tuple[Any, Any]:
    """Owner and local key under blocks or custom boundaries."""
    import torch

    ranks, edges = features.ranks, features.boundaries[feature]
    outside_owner, outside_local = unsigned_modulo(u, ranks), _quotient(u, ranks)
    if edges is not None:
        flipped = [signed(int(edge)) ^ _SIGN for edge in edges]  # unsigned order as signed order
        rim = torch.tensor(flipped, dtype=torch.int64, device=u.device)
        found = torch.searchsorted(rim, u ^ _SIGN, right=True) - 1
        inside = found < ranks
        start = (rim ^ _SIGN)[found.clamp(max=ranks - 1)]
        return torch.where(inside, found, outside_owner), torch.where(
            inside, u - start, outside_local
        )
    block = int(features.block_sizes[feature])
    if block == 0:
        return outside_owner, outside_local
    last = signed(min(block * ranks, 1 << 64) - 1)
    inside = (u ^ _SIGN) <= (last ^ _SIGN)
    owner = torch.where(inside, _quotient(u, block), outside_owner)
    return owner, torch.where(inside, unsigned_modulo(u, block), outside_local)


def _unsigned(keys: Any) -> Any:
    """Keys as int64 patterns, 32-bit ones zero-extended."""
    import torch

    if keys.element_size() == 4:
        return keys.view(torch.int32).long() & 0xFFFFFFFF
    return keys.view(torch.int64)


def _shift(x: Any, by: int) -> Any:
    """Logical shift to the right."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _fmix64(x: Any) -> Any:
    for multiplier in _FMIX:
        x = (x ^ _shift(x, 33)) * multiplier
    return x ^ _shift(x, 33)


def mix64(x: Any) -> Any:
    """Stafford's mix 13 of int64 bit patterns, as on uint64; the finaliser of SplitMix64."""
    x = (x ^ _shift(x, 30)) * _SPLIT[0]
    x = (x ^ _shift(x, 27)) * _SPLIT[1]
    return x ^ _shift(x, 31)


def _quotient(x: Any, divisor: int) -> Any:
    """Unsigned x // divisor, for a divisor below 2**63."""
    if divisor == 1:
        return x
    q = (_shift(x, 1) // divisor) << 1
    rest = x - q * divisor
    return q + ((rest ^ _SIGN) >= (divisor ^ _SIGN)).to(q.dtype)


def unsigned_modulo(x: Any, divisor: int) -> Any:
    """Unsigned x % divisor of int64 bit patterns, for a divisor below 2**63."""
    return x - _quotient(x, divisor) * divisor
