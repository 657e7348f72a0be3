"""Rules that assign keys to ranks, as the NumPy functions that define them.

Throughout, ``u`` is the key cast to the unsigned integer of its own width (so int64 ``-1`` is
2**64 - 1 and int32 ``-1`` is 2**32 - 1) and ``P`` is the number of ranks.

==== ================== ======================================= ===========================
code name               owner                                   local key
==== ================== ======================================= ===========================
0    continuous         u // b if u < b·P else u mod P          u mod b, or u // P
1    roundrobin         u mod P                                 the key itself
2    hash_roundrobin    fmix64(u) mod P                         the key itself
3    hash_independent   floor(splitmix64(u) · P / 2**64)        the key itself
==== ================== ======================================= ===========================

``b`` is the table's block size, ceil(rows / P). Rules 0 to 2 and their codes are dynamicemb's
``dist_type`` (NVIDIA/recsys-examples, ``sparse_block_bucketize_features.cu``); rule 3 is ours:
its owner bits come from another hash than the one that picks a bucket of the local table.
"""

from __future__ import annotations

import difflib
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.errors import RoutingError

UInt64Array = NDArray[np.uint64]
Int64Array = NDArray[np.int64]

MAX_RANKS = 1 << 20
_FMIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SPLIT = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW32 = np.uint64(0xFFFFFFFF)


class Rule(IntEnum):
    """How keys are assigned to ranks; the value is dynamicemb's ``dist_type`` code."""

    CONTINUOUS = 0
    ROUNDROBIN = 1
    HASH_ROUNDROBIN = 2
    HASH_INDEPENDENT = 3

    @property
    def dist_type(self) -> str:
        """The name as written in plans and checkpoints, such as ``roundrobin``."""
        return self.name.lower()

    @classmethod
    def parse(cls, value: Rule | int | str) -> Rule:
        """Read a rule from its name, code or member.

        Raises
        ------
        RoutingError
            Unknown name or code; the sentence lists the names and the nearest one.
        """
        if isinstance(value, str):
            names = [rule.dist_type for rule in cls]
            if value in names:
                return cls[value.upper()]
            near = difflib.get_close_matches(value, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RoutingError(f"unknown dist_type {value!r}: allowed are {', '.join(names)}{hint}")
        try:
            return cls(int(value))
        except ValueError:
            raise RoutingError(f"unknown dist_type code {value}: allowed are 0 to 3") from None


def check_ranks(ranks: int) -> int:
    """Return ``ranks`` as an int, refusing anything outside 1 … 2**20.

    Raises
    ------
    RoutingError
        ``ranks`` is not a whole number in that range.
    """
    if isinstance(ranks, bool) or int(ranks) != ranks or not 1 <= ranks <= MAX_RANKS:
        raise RoutingError(f"ranks must be a whole number from 1 to {MAX_RANKS}, got {ranks!r}")
    return int(ranks)


def unsigned(keys: Any) -> UInt64Array:
    """Cast integer keys to the unsigned integer of their own width, widened to 64 bits.

    Parameters
    ----------
    keys : array of int32, int64, uint32 or uint64
        Lists of Python integers are read as int64 (uint64 where one exceeds it).

    Raises
    ------
    RoutingError
        The keys are not integers of 32 or 64 bits.
    """
    array = np.asarray(keys)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.dtype.itemsize not in (4, 8):
        raise RoutingError(f"keys must be int32, int64, uint32 or uint64, got {array.dtype}")
    width = np.uint32 if array.dtype.itemsize == 4 else np.uint64
    return array.astype(width, copy=False).astype(np.uint64, copy=False)


def fmix64(keys: Any) -> UInt64Array:
    """MurmurHash3's 64-bit finaliser, the hash of rule 2 and of dynamicemb's table buckets.

    Parameters
    ----------
    keys : array of integers
        See :func:`unsigned`.

    Returns
    -------
    numpy.ndarray of uint64, same shape

    References
    ----------
    A. Appleby, MurmurHash3 (smhasher, public domain), function ``fmix64``.
    """
    hashed = unsigned(keys)
    for multiplier in _FMIX:
        hashed = (hashed ^ (hashed >> np.uint64(33))) * multiplier
    return hashed ^ (hashed >> np.uint64(33))


def splitmix64(keys: Any) -> UInt64Array:
    """SplitMix64's output function at state ``u``, the hash of rule 3.

    References
    ----------
    G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
    doi:10.1145/2660193.2660195 (constants: D. Stafford's Mix13).
    """
    hashed = unsigned(keys) + _GOLDEN
    hashed = (hashed ^ (hashed >> np.uint64(30))) * _SPLIT[0]
    hashed = (hashed ^ (hashed >> np.uint64(27))) * _SPLIT[1]
    return hashed ^ (hashed >> np.uint64(31))


def owners(
    keys: Any,
    ranks: int,
    rule: Rule | int | str,
    *,
    block_size: int | None = None,
    boundaries: Any = None,
    dynamicemb_int32: bool = False,
) -> Int64Array:
    """Rank that owns each key.

    Parameters
    ----------
    keys : array of int32, int64, uint32 or uint64, any shape
    ranks : int
        P, at least 1.
    rule : Rule, int or str
    block_size : int, optional
        Rows that a rank holds, ceil(rows / P); needed by ``continuous`` without ``boundaries``.
        0 means an unknown table size: every key goes to u mod P.
    boundaries : array of P + 1 non-decreasing integers from 0, optional
        Only for ``continuous``: rank p owns boundaries[p] ≤ u < boundaries[p + 1], and keys beyond
        the last boundary go to u mod P.
    dynamicemb_int32 : bool
        Reproduce dynamicemb's hash_roundrobin for int32 keys, which keeps only the low 32 bits
        of the hash before the modulo. Ignored for 64-bit keys and other rules.

    Returns
    -------
    numpy.ndarray of int64, the shape of ``keys``

    Raises
    ------
    RoutingError
        Bad rule, ranks, key type, block size or boundaries.
    """
    ranks, rule = check_ranks(ranks), Rule.parse(rule)
    narrow = dynamicemb_int32 and np.asarray(keys).dtype.itemsize == 4
    u, modulus = unsigned(keys), np.uint64(ranks)
    if boundaries is not None and rule is not Rule.CONTINUOUS:
        raise RoutingError(f"boundaries belong to dist_type continuous, not to {rule.dist_type}")
    if rule is Rule.CONTINUOUS:
        return _continuous(u, ranks, block_size, boundaries)[0]
    if rule is Rule.ROUNDROBIN:
        owner = u % modulus
    elif rule is Rule.HASH_ROUNDROBIN:
        hashed = fmix64(u)
        owner = (hashed & _LOW32 if narrow else hashed) % modulus
    else:
        owner = _multiply_high(splitmix64(u), modulus)
    return owner.astype(np.int64)


def local_keys(
    keys: Any,
    ranks: int,
    rule: Rule | int | str,
    *,
    block_size: int | None = None,
    boundaries: Any = None,
) -> NDArray[Any]:
    """Key as the owning rank stores it, in the dtype of ``keys``.

    Only ``continuous`` renumbers: u mod b, or u minus the rank's first boundary. A key out of range
    becomes u // P, which **aliases an in-range local key**, so its identity is lost. Parameters and
    errors are as in :func:`owners`.
    """
    ranks, rule = check_ranks(ranks), Rule.parse(rule)
    array = np.asarray(keys)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if boundaries is not None and rule is not Rule.CONTINUOUS:
        raise RoutingError(f"boundaries belong to dist_type continuous, not to {rule.dist_type}")
    if rule is not Rule.CONTINUOUS:
        unsigned(array)
        return array
    return _continuous(unsigned(array), ranks, block_size, boundaries)[1].astype(array.dtype)


INDEX_TYPES = {"int32": np.int32, "int64": np.int64, "uint64": np.uint64}


def as_index_type(keys: Any, index_type: str) -> NDArray[Any]:
    """Return keys as the integers that the runtime looks up.

    Parameters
    ----------
    keys : array of int32, int64, uint32 or uint64
        Of any width that holds them, as in a checkpoint or a model file. A 32-bit key may be sign-
        or zero-extended.
    index_type : str
        ``int32``, ``int64`` or ``uint64``: the type of the batch's keys.

    Raises
    ------
    RoutingError
        Unknown type, or a key that needs more bits.
    """
    if index_type not in INDEX_TYPES:
        near = difflib.get_close_matches(str(index_type), INDEX_TYPES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RoutingError(
            f"unknown index_type {index_type!r}: allowed are {', '.join(INDEX_TYPES)}{hint}"
        )
    array = np.asarray(keys)
    if index_type == "int32" and array.dtype.itemsize == 8:
        beyond = (array < -(1 << 31)) | (array >= 1 << 32)
        if beyond.any():
            raise RoutingError(f"key {int(array[beyond][0])} does not fit index_type int32")
    return array.astype(INDEX_TYPES[index_type], copy=False)


def block_size_of(rows: int, ranks: int) -> int:
    """Rows that a rank holds under ``continuous``: ceil(rows / ranks)."""
    if rows < 0:
        raise RoutingError(f"rows must not be negative, got {rows}")
    return -(-int(rows) // check_ranks(ranks))


def check_block_size(block_size: Any) -> int:
    """Return a block size as an int, refusing what ``continuous`` cannot use.

    Raises
    ------
    RoutingError
        It is absent, negative or above 2**63 - 1.
    """
    if block_size is None:
        raise RoutingError(
            "dist_type continuous needs a block size: ceil(rows / ranks), "
            "or 0 for a table of unknown size"
        )
    if not 0 <= int(block_size) < 1 << 63:
        raise RoutingError(f"block size must lie in 0 … 2**63 - 1, got {block_size}")
    return int(block_size)


def check_boundaries(boundaries: Any, ranks: int) -> UInt64Array:
    """Return custom boundaries as uint64, refusing what no search could use.

    Raises
    ------
    RoutingError
        Not P + 1 non-decreasing integers that begin with 0.
    """
    array = np.asarray(boundaries)
    if array.dtype.kind not in "iu" or array.shape != (ranks + 1,):
        raise RoutingError(
            f"boundaries must be {ranks + 1} integers (one more than ranks), "
            f"got shape {array.shape} of {array.dtype}"
        )
    if int(array[0]) != 0 or bool(np.any(array[1:] < array[:-1])):
        raise RoutingError("boundaries must begin with 0 and never decrease")
    return array.astype(np.uint64)


def _continuous(
    u: UInt64Array, ranks: int, block_size: int | None, boundaries: Any
) -> tuple[Int64Array, UInt64Array]:
    """Owner and local key under blocks or boundaries (out of range: u mod P and u // P)."""
    modulus = np.uint64(ranks)
    if boundaries is not None:
        edges = check_boundaries(boundaries, ranks)
        found = np.searchsorted(edges, u, side="right") - 1
        inside = found < ranks
        start = edges[np.minimum(found, ranks - 1)]
        owner = np.where(inside, found.astype(np.uint64), u % modulus)
        return owner.astype(np.int64), np.where(inside, u - start, u // modulus)
    block = check_block_size(block_size)
    divisor = np.uint64(max(block, 1))
    last = np.uint64(max(min(block * ranks, 1 << 64), 1) - 1)  # saturated, so nothing wraps
    inside = (u <= last) & (block > 0)
    owner = np.where(inside, u // divisor, u % modulus)
    return owner.astype(np.int64), np.where(inside, u % divisor, u // modulus)


def _multiply_high(hashed: UInt64Array, modulus: np.uint64) -> UInt64Array:
    """Return floor(hashed · modulus / 2**64) for a modulus below 2**31, in 64-bit arithmetic."""
    shift = np.uint64(32)
    carry = ((hashed & _LOW32) * modulus) >> shift
    return ((hashed >> shift) * modulus + carry) >> shift
