# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""The compiled loops of the fast CPU path; every one releases the GIL and runs on one chunk.

Keys arrive as uint32 or uint64. Divisions by run-time constants are replaced by a multiplication
with floor((2**64 - 1) / d), whose quotient is at most one too small for every u < 2**64 (Barrett
reduction: the error u · (2**64/d − m) / 2**64 stays below 1 because 2**64/d − m ≤ 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

U33, U30, U27, U31 = np.uint64(33), np.uint64(30), np.uint64(27), np.uint64(31)
C1, C2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
S1, S2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
GOLDEN, LOW32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFFFFFF)
ONE, ZERO = np.uint64(1), np.uint64(0)


@intrinsic
def _multiply_high(typing_context: Any, a: Any, b: Any) -> Any:
    """Upper 64 bits of a 64 × 64-bit unsigned product."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        left, right = (builder.zext(x, wide) for x in arguments)
        product = builder.lshr(builder.mul(left, right), ir.Constant(wide, 64))
        return builder.trunc(product, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@njit(inline="always")
def _quotient(u, divisor, magic):  # type: ignore[no-untyped-def]
    q = _multiply_high(u, magic)
    return q + (ONE if u - q * divisor >= divisor else ZERO)


@njit(inline="always")
def _modulo(u, divisor, magic):  # type: ignore[no-untyped-def]
    r = u - _multiply_high(u, magic) * divisor
    return r - divisor if r >= divisor else r


@njit(inline="always")
def _fmix(u):  # type: ignore[no-untyped-def]
    u = (u ^ (u >> U33)) * C1
    u = (u ^ (u >> U33)) * C2
    return u ^ (u >> U33)


@njit(inline="always")
def _split(u):  # type: ignore[no-untyped-def]
    u = u + GOLDEN
    u = (u ^ (u >> U30)) * S1
    u = (u ^ (u >> U27)) * S2
    return u ^ (u >> U31)


@njit(nogil=True, cache=True)
def walk_rows(lengths, row_starts, targets, starts, split_rows, split_keys):  # type: ignore[no-untyped-def]
    """Find the first key of each feature, and the first row at or beyond each target; returns the
    number of keys and the least length."""
    total, least, feature, part = 0, 0, 0, 0
    for row in range(lengths.size):
        while feature < row_starts.size and row_starts[feature] == row:
            starts[feature] = total
            feature += 1
        while part < targets.size and total >= targets[part]:
            split_rows[part] = row
            split_keys[part] = total
            part += 1
        length = lengths[row]
        total += length
        least = min(least, length)
    starts[feature:] = total
    split_rows[part:] = lengths.size
    split_keys[part:] = total
    return total, least


@njit(nogil=True, cache=True)
def _assign(keys, a, b, rule, ranks, mask, magic, narrow, owner):  # type: ignore[no-untyped-def]
    """Owners of keys a … b under the rules without blocks."""
    if rule == 1 and mask:
        for i in range(a, b):
            owner[i] = keys[i] & mask
    elif rule == 1:
        for i in range(a, b):
            owner[i] = _modulo(np.uint64(keys[i]), ranks, magic)
    elif rule == 2 and mask:
        for i in range(a, b):
            owner[i] = _fmix(np.uint64(keys[i])) & mask
    elif rule == 2:
        keep = LOW32 if narrow else ~ZERO
        for i in range(a, b):
            owner[i] = _modulo(_fmix(np.uint64(keys[i])) & keep, ranks, magic)
    else:
        for i in range(a, b):
            owner[i] = _multiply_high(_split(np.uint64(keys[i])), ranks)


@njit(nogil=True, cache=True)
def _assign_blocks(keys, a, b, block, last, block_magic, ranks, magic, owner):  # type: ignore[no-untyped-def]
    """Owners of keys a … b under equal blocks."""
    for i in range(a, b):
        u = np.uint64(keys[i])
        if block and u <= last:
            owner[i] = _quotient(u, block, block_magic)
        else:
            owner[i] = _modulo(u, ranks, magic)


@njit(nogil=True, cache=True)
def _assign_edges(keys, a, b, edges, ranks, magic, owner):  # type: ignore[no-untyped-def]
    """Owners of keys a … b under custom boundaries (upper-bound search)."""
    count = edges.size - 1
    for i in range(a, b):
        u = np.uint64(keys[i])
        low, high = 0, count + 1
        while low < high:
            middle = (low + high) >> 1
            if edges[middle] <= u:
                low = middle + 1
            else:
                high = middle
        owner[i] = low - 1 if low <= count else _modulo(u, ranks, magic)


@njit(nogil=True, cache=True)
def count_chunk(keys, a, b, starts, table, edges, scalars, narrow, owner, counts):  # type: ignore[no-untyped-def]
    """Find the owners of keys a … b, and count the keys of each rank.

    ``table`` holds, for each feature, rule, block, last key in range, block magic and the row of
    ``edges`` plus 1 (0: none); ``scalars`` is ranks, mask (0: not a power of two) and magic.
    """
    ranks, mask, magic = scalars[0], scalars[1], scalars[2]
    i = a
    feature = np.searchsorted(starts, a, side="right") - 1
    while i < b:
        while starts[feature + 1] <= i:
            feature += 1
        stop = min(b, starts[feature + 1])
        rule = table[feature, 0]
        if rule:
            _assign(keys, i, stop, rule, ranks, mask, magic, narrow, owner)
        elif table[feature, 4]:
            rim = edges[np.intp(table[feature, 4]) - 1]
            _assign_edges(keys, i, stop, rim, ranks, magic, owner)
        else:
            block, last = table[feature, 1], table[feature, 2]
            _assign_blocks(keys, i, stop, block, last, table[feature, 3], ranks, magic, owner)
        i = stop
    _histogram(owner, a, b, counts)


@njit(nogil=True, cache=True)
def _histogram(owner, a, b, counts):  # type: ignore[no-untyped-def]
    """Count owners in four interleaved histograms, so that equal neighbours need not wait."""
    parts = np.zeros((4, counts.size), np.int64)
    end = a + (b - a) // 4 * 4
    for i in range(a, end, 4):
        parts[0, owner[i]] += 1
        parts[1, owner[i + 1]] += 1
        parts[2, owner[i + 2]] += 1
        parts[3, owner[i + 3]] += 1
    for i in range(end, b):
        parts[0, owner[i]] += 1
    for rank in range(counts.size):
        counts[rank] = parts[0, rank] + parts[1, rank] + parts[2, rank] + parts[3, rank]


@njit(nogil=True, cache=True)
def scatter_keys(keys, a, b, owner, cursor, out):  # type: ignore[no-untyped-def]
    """Place keys a … b; ``cursor`` holds the next place of each rank and is moved on."""
    for i in range(a, b):
        rank = owner[i]
        place = cursor[rank]
        cursor[rank] = place + 1
        out[place] = keys[i]


@njit(nogil=True, cache=True)
def scatter_keys_permute(keys, a, b, owner, cursor, out, permute):  # type: ignore[no-untyped-def]
    """Place keys a … b as :func:`scatter_keys` does, and record where each went."""
    for i in range(a, b):
        rank = owner[i]
        place = cursor[rank]
        cursor[rank] = place + 1
        out[place] = keys[i]
        permute[i] = place


@njit(nogil=True, cache=True)
def renumber(keys, a, b, starts, table, edges, scalars, owner, local):  # type: ignore[no-untyped-def]
    """Local keys of a … b: renumbered for ``continuous`` features, copied for others."""
    ranks, magic = scalars[0], scalars[2]
    feature = np.searchsorted(starts, a, side="right") - 1
    for i in range(a, b):
        while starts[feature + 1] <= i:
            feature += 1
        u = np.uint64(keys[i])
        if table[feature, 0]:
            local[i] = keys[i]
        elif table[feature, 4]:
            rim = edges[np.intp(table[feature, 4]) - 1]
            inside = u < rim[rim.size - 1]
            local[i] = u - rim[owner[i]] if inside else _quotient(u, ranks, magic)
        elif table[feature, 1] and u <= table[feature, 2]:
            local[i] = u - np.uint64(owner[i]) * table[feature, 1]
        else:
            local[i] = _quotient(u, ranks, magic)


@njit(nogil=True, cache=True)
def count_rows(lengths, first, last, key, owner, out, ranks):  # type: ignore[no-untyped-def]
    """Lengths by rank of rows first … last, whose first key is ``key``; ``out`` starts at zero."""
    rows = lengths.size
    counts = np.zeros(ranks, np.int64)
    for row in range(first, last):
        stop = key + lengths[row]
        if stop - key < ranks:
            for i in range(key, stop):
                out[np.intp(owner[i]) * rows + row] += 1
        else:
            counts[:] = 0
            for i in range(key, stop):
                counts[owner[i]] += 1
            for rank in range(ranks):
                out[rank * rows + row] = counts[rank]
        key = stop


@njit(nogil=True, cache=True)
def scatter_weights(weights, a, b, permute, out):  # type: ignore[no-untyped-def]
    """Move weights a … b to where their keys went."""
    for i in range(a, b):
        out[permute[i]] = weights[i]


@njit(nogil=True, cache=True)
def scatter_positions(lengths, first, last, key, permute, out):  # type: ignore[no-untyped-def]
    """Place of each key inside its bag, for rows first … last."""
    for row in range(first, last):
        stop = key + lengths[row]
        for i in range(key, stop):
            out[permute[i]] = i - key
        key = stop
