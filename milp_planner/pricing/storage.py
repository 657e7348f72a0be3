"""Bytes of one shard: TorchRec tables, dynamicemb tables, and the metadata of their rows.

Everything is exact: ratios are pairs of integers, every rounding is upwards unless a formula rounds
otherwise, and no float touches a byte. Tiers of dynamicemb take a cache ratio x = p/q as integers,
0 (HOST_ONLY) and 1 (HBM_ONLY) included, and are the table alone, without buffers and the admission
counter; what TorchEasyRec counts is in ``runtimes/torcheasyrec.py``.

References
----------
FBGEMM 1.8.0, ``split_table_batched_embeddings_ops_training.py`` (state); TorchRec 1.8.0,
``planner/shard_estimators.py``; NVIDIA/recsys-examples, ``corelib/dynamicemb``
(``key_value_table``, caching storage, optimizer state sizes).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.cluster import ID_BYTES
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, Integers, ceil_div, round_up

CACHE_ROW_BYTES = 4
"""Index entry that a cached table keeps for each of its rows."""
CACHE_SLOT_BYTES = 16
"""Id and age that a cache keeps for each of its slots."""


class StateNumbers(NamedTuple):
    """Numbers of optimizer state that a runtime keeps for a row, and for each of its columns."""

    row: int
    column: int

    def copies(self, dim: int) -> Fraction:
        """The same in rows of ``dim`` columns."""
        return Fraction(self.row, dim) + self.column


STATE_NUMBERS = {
    "none": StateNumbers(0, 0),
    "sgd": StateNumbers(0, 0),
    "adam": StateNumbers(0, 2),
    "adagrad": StateNumbers(0, 1),
    "rowwise_adagrad": StateNumbers(1, 0),
    "lamb": StateNumbers(0, 2),
    "partial_rowwise_adam": StateNumbers(1, 1),
    "partial_rowwise_lamb": StateNumbers(1, 1),
    "other": StateNumbers(0, 1),
}
"""State of each optimizer in FBGEMM 1.8.0 (``split_table_batched_embeddings_ops_training.py``:
``momentum1``, ``momentum2``; one such number per row or per element)."""
STATE_BYTES = 4
"""Bytes of one of these numbers: FBGEMM keeps fp32 whatever the table's type."""
INT8_ROW_BYTES = 8
"""Scale and bias that FBGEMM stores with each row of int8 (``INT8_EMB_ROW_DIM_OFFSET``)."""


def state_multiple(optimizer: str, dim: int) -> Fraction:
    """Optimizer state in units of the weights, as TorchRec's and TorchEasyRec's planners count it.

    none and SGD 0, Adam 2, row-wise Adagrad 1/dim (one number per row), anything else 1.
    """
    fixed = {"none": Fraction(0), "sgd": Fraction(0), "adam": Fraction(2)}
    if optimizer == "rowwise_adagrad":
        return Fraction(1, dim)
    return fixed.get(optimizer, Fraction(1))


KEY_VALUE_OPTIMIZERS = ("none", "rowwise_adagrad", "adam", "partial_rowwise_adam")
"""Optimizers that FBGEMM's key-value kernels have, and none."""


def input_bytes(ids: FloatArray) -> IntArray:
    """Buffer of the ids a shard receives (a mean, maybe fractional): ceil(8 · ids), int64 array."""
    return np.ceil(np.asarray(ids, dtype=np.float64) * ID_BYTES).astype(np.int64)


def output_bytes(rows_out: FloatArray, columns: IntArray, element_bytes: IntArray) -> IntArray:
    """Buffer of the embeddings a shard returns: ceil(rows · columns · element), int64 array.

    Rows are samples (pooled) or ids (sequence) of one step, maybe fractional.
    """
    return np.ceil(np.asarray(rows_out, dtype=np.float64) * columns * element_bytes).astype(
        np.int64
    )


def torchrec_cache(
    shard: tuple[IntArray, IntArray],
    table: tuple[IntArray, IntArray],
    element_bytes: IntArray,
    ratio: tuple[IntArray, IntArray],
) -> tuple[IntArray, IntArray]:
    """HBM of a cached shard: its weights in the cache, and the cache's index.

    The cache holds the ratio c of the *table's* bytes, rounded to a byte, of which the shard has
    its share, rounded up: ``ceil(round(table · c) · share)``. In addition, 4 bytes of index per row
    and 16 bytes per slot: ``ceil(rows · (4 + 16 c))``. c is a numerator and a denominator;
    ``shard`` and ``table`` are rows and columns.
    """
    (rows, columns), (over, under) = shard, ratio
    cells = table[0] * table[1]
    cached = (2 * cells * element_bytes * over + under) // (2 * under)
    weights = ceil_div_product(cached, rows * columns, cells)
    slots = ceil_div(CACHE_SLOT_BYTES * rows * over, under)
    return weights, CACHE_ROW_BYTES * rows + slots


def ceil_div_product(value: IntArray, numerator: IntArray, denominator: IntArray) -> IntArray:
    """ceil(value · numerator / denominator), exact although the product may exceed 64 bits.

    ``numerator`` must not exceed ``denominator``. Products that do not fit are computed with
    Python's unbounded integers.
    """
    value, numerator, denominator = np.broadcast_arrays(value, numerator, denominator)
    small = value.astype(np.float64) * numerator < 2.0**62
    result = ceil_div(np.where(small, value, 0) * numerator, denominator)
    for index in np.flatnonzero(~small.ravel()):
        product = int(value.flat[index]) * int(numerator.flat[index])
        result.flat[index] = -(-product // int(denominator.flat[index]))
    return result


def admission_counter(capacity: int, bucket: int = 1024) -> int:
    """HBM bytes of a dynamicemb admission counter with ``capacity`` slots on one rank.

    ceil(align16(capacity) · (17 + 4/bucket)): key, score and digest a slot, 4 bytes per bucket of
    the counter's own size.
    """
    slots = int(round_up(capacity, 16))
    return SLOT_BYTES * slots + int(ceil_div(4 * slots, bucket))


ALIGN = 16
SCORE_BYTES = 8
"""One word of a score."""
SLOT_BYTES = 8 + SCORE_BYTES + 1
"""Key, score of one word and digest of one slot."""
COUNTER_BYTES = 4
"""The runtime's reference counter of one slot."""
BUCKET_BYTES = 4
"""Size field of one bucket."""
HBM_BUCKET = 1024
"""Slots of a bucket in the HBM tier of HYBRID and in a cache."""
HOST_BUCKET = 128
"""Slots of a bucket in the host tier."""
OVERFLOW_SLOTS = 3 * 1024
"""Slots that a cache adds for rows whose bucket is full."""
ROWWISE_STATE_BYTES = 16
"""Optimizer state the runtime keeps for a row under row-wise Adagrad."""


class TierBytes(NamedTuple):
    """Bytes in both tiers, int64 arrays."""

    hbm: IntArray
    ddr: IntArray
    values_hbm: IntArray
    """The part of ``hbm`` that holds values: what ``local_hbm_for_values`` is set to."""


def runtime_value_bytes(dim: int, element_bytes: int, optimizer: str) -> int:
    """Bytes of one row with its state in the dynamicemb runtime, rounded up to 16.

    State: none and SGD 0, Adam two rows, row-wise Adagrad 16 bytes, else (Adagrad) one row.
    """
    row = dim * element_bytes
    state = {"none": 0, "sgd": 0, "adam": 2 * row, "rowwise_adagrad": ROWWISE_STATE_BYTES}
    return int(round_up(row + state.get(optimizer, row), ALIGN))


def hbm_for_values(rows: int, bucket: int, value_bytes: int, ratio: Fraction) -> int:
    """``local_hbm_for_values`` of one rank: the ratio of the values of all slots, rounded up.

    ``rows`` are those of the rank; it has slots for them in whole buckets.
    """
    return math.ceil(int(round_up(rows, bucket)) * value_bytes * ratio)


def doubled_from(first: IntArray, last: IntArray) -> IntArray:
    """Slots before the last doubling on the way from ``first`` to ``last``; 0 if there is none."""
    before = np.asarray(first)
    while (again := 2 * before < last).any():
        before = np.where(again, 2 * before, before)
    return np.where(before < last, before, 0)


def metadata(slots: IntArray, bucket: Integers, score_words: Integers) -> IntArray:
    """HBM of a tier's keys, scores, digests, reference counters and sizes of buckets."""
    each = SLOT_BYTES + SCORE_BYTES * (score_words - 1) + COUNTER_BYTES
    return np.asarray(each * slots + BUCKET_BYTES * (slots // bucket), dtype=np.int64)


def hbm_slots(rows: Integers, bucket: Integers, ratio: tuple[Integers, Integers]) -> IntArray:
    """Slots of one rank's HBM tier, in whole buckets, without a cache's overflow slots.

    S = rows of the rank rounded up to the table's bucket capacity; ceil(S · x) rounded up to
    buckets of 1024 (at x = 1: of the table's own capacity), 0 at x = 0. x is a numerator and a
    denominator.
    """
    over, under = ratio
    own: IntArray = np.where(over == under, bucket, np.int64(HBM_BUCKET))
    return round_up(ceil_div(round_up(rows, bucket) * over, under), own)


def held_ratio(
    rows: Integers, ranks: int, bucket: Integers, ratio: tuple[Integers, Integers]
) -> FloatArray:
    """Share of a table's rows that its HBM tiers really have slots for, at most 1; float array.

    This is the cache ratio, except for small tables, whose slots round up to a bucket on every
    rank. ``rows`` are those of the whole table; the rest as in :func:`hbm_slots`.
    """
    slots = hbm_slots(ceil_div(rows, ranks), bucket, ratio) * ranks
    return np.minimum(slots / rows, 1.0)


def runtime_tiers(
    rows: IntArray,
    value_bytes: IntArray,
    bucket: IntArray,
    ratio: tuple[IntArray, IntArray],
    keeps_all: BoolArray,
    score_words: Integers = 1,
    outside: BoolArray | bool = False,
) -> TierBytes:
    """A shard as the dynamicemb runtime really uses memory.

    Slots per rank: rows rounded up to the bucket capacity. The HBM tier takes ceil(slots · x) of
    them, rounded up to its buckets of 1024 (a cache adds 3 · 1024 overflow slots); the host tier
    takes all slots (CACHING) or slots · (1 − x) (HYBRID), rounded up to its buckets of 128.
    HBM_ONLY and HOST_ONLY have one tier, HBM_ONLY with the table's own buckets. Values live in
    their tier; keys, scores, digests (17 bytes), a reference counter (4) and a bucket's size field
    (4) are kept in HBM for the slots of *every* tier. A score of two words takes 8 bytes more.
    ``value_bytes`` are those of a row with its state; x is a numerator and a denominator;
    ``keeps_all`` says where the host keeps every row (CACHING), and ``outside`` where an external
    store does in its place, which leaves the host tier and its keys out; int64 arrays.

    References
    ----------
    Two words: NVIDIA/recsys-examples PR 437 (merged 2026-07), ``score.cuh``: a compound score
    strategy keeps a timestamp and a frequency per key, side by side.
    """
    over, under = ratio
    slots = round_up(rows, bucket)
    hbm_bucket: IntArray = np.where(over == under, bucket, np.int64(HBM_BUCKET))
    hot = hbm_slots(rows, bucket, ratio)
    hot = np.where(keeps_all & (over > 0), hot + OVERFLOW_SLOTS, hot)
    rest = np.where(keeps_all, slots, slots - slots * over // under)
    cold = np.where(outside, 0, round_up(rest, HOST_BUCKET))
    keys = metadata(hot, hbm_bucket, score_words) + metadata(cold, HOST_BUCKET, score_words)
    values_hbm = hot * value_bytes
    return TierBytes(values_hbm + keys, cold * value_bytes, values_hbm)
