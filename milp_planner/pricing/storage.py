"""Bytes of one shard: TorchRec tables, and what both kinds keep with their rows.

Everything is exact: ratios are pairs of integers, every rounding is upwards unless a formula
rounds otherwise, and no float touches a byte.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from milp_planner.pricing.units import FloatArray, IntArray, ceil_div, round_up

ID_BYTES = 8
"""Bytes of one id on the wire and in an input buffer."""

CACHE_ROW_BYTES = 4
"""Index entry a cached table keeps for each of its rows."""
CACHE_SLOT_BYTES = 16
"""Id and age a cache keeps for each of its slots."""

_COUNTER_SLOT_BYTES = 17


def state_multiple(optimizer: str, dim: int) -> Fraction:
    """Optimizer state in units of the weights: how many further copies of a row it keeps.

    none and SGD 0, Adam 2, row-wise Adagrad 1/dim (one number a row), anything else 1.

    References
    ----------
    TorchRec 1.8.0, ``planner/shard_estimators.py``; the same table in TorchEasyRec.
    """
    fixed = {"none": Fraction(0), "sgd": Fraction(0), "adam": Fraction(2)}
    if optimizer == "rowwise_adagrad":
        return Fraction(1, dim)
    return fixed.get(optimizer, Fraction(1))


def input_bytes(ids: FloatArray) -> IntArray:
    """Buffer of the ids a shard receives: ceil(8 · ids), int64 array.

    Parameters
    ----------
    ids : float array
        Ids received in one step, possibly fractional (a mean).
    """
    return np.ceil(np.asarray(ids, dtype=np.float64) * ID_BYTES).astype(np.int64)


def output_bytes(rows_out: FloatArray, columns: IntArray, element_bytes: IntArray) -> IntArray:
    """Buffer of the embeddings a shard returns: ceil(rows · columns · element), int64 array.

    Parameters
    ----------
    rows_out : float array
        Embeddings returned in one step: samples (pooled) or ids (sequence), possibly fractional.
    columns, element_bytes : int64 array
    """
    return np.ceil(np.asarray(rows_out, dtype=np.float64) * columns * element_bytes).astype(
        np.int64
    )


def torchrec_weights(rows: IntArray, columns: IntArray, element_bytes: IntArray) -> IntArray:
    """Bytes of a shard's weights: rows · columns · element."""
    return np.asarray(rows * columns * element_bytes, dtype=np.int64)


def torchrec_state(weights: IntArray, numerator: IntArray, denominator: IntArray) -> IntArray:
    """Bytes of a shard's optimizer state: ceil(weights · multiple).

    Parameters
    ----------
    weights : int64 array
        Bytes of the weights.
    numerator, denominator : int64 array
        The multiple of :func:`state_multiple`.
    """
    return ceil_div(weights * numerator, denominator)


class ShardShape(NamedTuple):
    """A shard and the table it is cut from; int64 arrays."""

    rows: IntArray
    columns: IntArray
    table_rows: IntArray
    table_dim: IntArray


def torchrec_cache(
    shape: ShardShape, element_bytes: IntArray, ratio: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """HBM of a cached shard: its weights in the cache, and what the cache keeps with them.

    The cache holds the ratio c of the *table's* bytes, rounded to a byte, of which the shard has
    its share, rounded up. In addition: an index entry of 4 bytes a row and 16 bytes a slot.

    Parameters
    ----------
    shape : ShardShape
    element_bytes : int64 array
    ratio : pair of int64 arrays
        c as numerator and denominator.

    Returns
    -------
    weights, index : int64 arrays
        ``ceil(round(table · c) · share)`` and ``ceil(rows · (4 + 16 c))``.

    References
    ----------
    TorchRec 1.8.0, ``planner/shard_estimators.py`` (UVM caching storage).
    """
    over, under = ratio
    cells = shape.table_rows * shape.table_dim
    cached = (2 * cells * element_bytes * over + under) // (2 * under)
    weights = ceil_div_product(cached, shape.rows * shape.columns, cells)
    slots = ceil_div(CACHE_SLOT_BYTES * shape.rows * over, under)
    return weights, CACHE_ROW_BYTES * shape.rows + slots


def ceil_div_product(value: IntArray, numerator: IntArray, denominator: IntArray) -> IntArray:
    """ceil(value · numerator / denominator), exact although the product may exceed 64 bits.

    ``numerator`` must not exceed ``denominator``. Where the product fits it is used as it is;
    elsewhere Python's unbounded integers take over.
    """
    value, numerator, denominator = np.broadcast_arrays(value, numerator, denominator)
    small = value.astype(np.float64) * numerator < 2.0**62
    result = ceil_div(np.where(small, value, 0) * numerator, denominator)
    for index in np.flatnonzero(~small.ravel()):
        product = int(value.flat[index]) * int(numerator.flat[index])
        result.flat[index] = -(-product // int(denominator.flat[index]))
    return result


def admission_counter(capacity: int, bucket: int = 1024) -> int:
    """HBM bytes of a dynamicemb admission counter on one rank.

    ceil(align16(capacity) · (17 + 4/bucket)): key, score and digest a slot, 4 bytes a bucket.

    Parameters
    ----------
    capacity : int
        Slots on the rank.
    bucket : int
        Slots of a bucket of the counter, which has its own, apart from the table's.

    References
    ----------
    TorchEasyRec, ``tzrec/utils/dynamicemb_util.py``.
    """
    slots = int(round_up(capacity, 16))
    return _COUNTER_SLOT_BYTES * slots + int(ceil_div(4 * slots, bucket))
