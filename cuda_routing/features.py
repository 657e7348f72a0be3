"""Routing settings of a batch's features: rule, block size, boundaries and batch size of each."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.errors import RoutingError
from cuda_routing.rules import (
    Int64Array,
    Rule,
    UInt64Array,
    check_block_size,
    check_boundaries,
    check_ranks,
)

MOST_OUTPUT_LENGTHS = 1 << 40


@dataclass(frozen=True)
class Features:
    """Routing of T features over P ranks, validated once.

    Attributes
    ----------
    ranks : int
    rules : array of int32 [T]
        Rule codes.
    block_sizes : array of uint64 [T]
        0 where the rule is not ``continuous`` or the table size is unknown.
    boundaries : tuple of (array [P + 1] or None) [T]
    batch_sizes : array of int64 [T]
        Rows (bags) of each feature.
    dynamicemb_int32 : bool
        See :func:`cuda_routing.rules.owners`.
    """

    ranks: int
    rules: NDArray[np.int32]
    block_sizes: UInt64Array
    boundaries: tuple[UInt64Array | None, ...]
    batch_sizes: Int64Array
    dynamicemb_int32: bool = False

    @property
    def count(self) -> int:
        """T, the number of features."""
        return int(self.rules.size)

    @property
    def rows(self) -> int:
        """Rows (bags) of all features together, the length of ``lengths``."""
        return int(self.batch_sizes.sum())

    @property
    def row_starts(self) -> Int64Array:
        """First row of each feature and the end of the last, [T + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.batch_sizes)])

    @property
    def renumbers(self) -> bool:
        """Whether any feature's keys are renumbered (``continuous``)."""
        return bool(np.any(self.rules == Rule.CONTINUOUS))

    def one_row_each(self) -> Features:
        """Return the same features with one row each."""
        ones = np.ones(self.count, np.int64)
        return Features(
            self.ranks, self.rules, self.block_sizes, self.boundaries, ones, self.dynamicemb_int32
        )


def make_features(  # noqa: PLR0913 - one keyword per setting of bucketize
    num_features: int,
    rows: int,
    ranks: int,
    rule: Any,
    *,
    block_sizes: Any = None,
    boundaries: Any = None,
    batch_sizes: Any = None,
    dynamicemb_int32: bool = False,
) -> Features:
    """Validate settings, and repeat single values for every feature.

    Parameters
    ----------
    num_features : int
        T.
    rows : int
        Number of entries of ``lengths``.
    ranks : int
    rule : Rule, int, str, or one of these per feature
    block_sizes : int or sequence of int [T], optional
        Rows of each feature's table that a rank holds; needed by ``continuous`` features.
    boundaries : sequence [T] of (sequence [P + 1] or None), optional
        Custom boundaries of ``continuous`` features.
    batch_sizes : sequence of int [T], optional
        Rows of each feature; equal shares of ``rows`` when not given.
    dynamicemb_int32 : bool

    Raises
    ------
    RoutingError
        A count does not fit, or a feature's settings contradict each other.
    """
    settings = (rule, block_sizes, boundaries, batch_sizes)
    return _make(num_features, rows, ranks, *map(_frozen, settings), dynamicemb_int32)


def _frozen(value: Any) -> Any:
    """Return the value with sequences, arrays and tensors turned into tuples."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_frozen, value))
    return value


@functools.lru_cache(maxsize=256)
def _make(  # noqa: PLR0913 - see make_features
    num_features: int,
    rows: int,
    ranks: int,
    rule: Any,
    block_sizes: Any,
    boundaries: Any,
    batch_sizes: Any,
    dynamicemb_int32: bool,
) -> Features:
    """Validate once, because the same features come with every batch."""
    if num_features < 1:
        raise RoutingError(f"num_features must be at least 1, got {num_features}")
    ranks = check_ranks(ranks)
    rules = _rules(rule, num_features)
    edges = _boundaries(boundaries, rules, ranks)
    blocks = _blocks(block_sizes, rules, edges)
    batches = _batch_sizes(batch_sizes, num_features, rows)
    if ranks * max(rows, 1) >= MOST_OUTPUT_LENGTHS:
        raise RoutingError(f"{ranks} ranks × {rows} rows make more output lengths than 2**40")
    codes = np.array([int(r) for r in rules], np.int32)
    for array in (codes, blocks, batches):
        array.setflags(write=False)
    return Features(ranks, codes, blocks, edges, batches, dynamicemb_int32)


def _per_feature(value: Any, count: int, what: str) -> list[Any]:
    """Repeat a single value, or check that there is one per feature."""
    if not isinstance(value, tuple):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise RoutingError(f"{what} must be one value or one for each of {count} features, "
                           f"got {len(values)}")  # fmt: skip
    return values


def _rules(rule: Any, count: int) -> list[Rule]:
    return [Rule.parse(one) for one in _per_feature(rule, count, "rule")]


def _boundaries(
    boundaries: Any, rules: Sequence[Rule], ranks: int
) -> tuple[UInt64Array | None, ...]:
    if boundaries is None:
        return (None,) * len(rules)
    if len(boundaries) != len(rules):
        raise RoutingError(
            f"boundaries must be given for each of {len(rules)} features (None where there are "
            f"none), got {len(boundaries)}"
        )
    edges = tuple(None if b is None else check_boundaries(b, ranks) for b in boundaries)
    for feature, (edge, rule) in enumerate(zip(edges, rules, strict=True)):
        if edge is not None and rule is not Rule.CONTINUOUS:
            raise RoutingError(
                f"feature {feature} has boundaries, which belong to dist_type continuous, "
                f"not to {rule.dist_type}"
            )
    return edges


def _blocks(
    block_sizes: Any, rules: Sequence[Rule], edges: Sequence[UInt64Array | None]
) -> UInt64Array:
    given = _per_feature(block_sizes, len(rules), "block_sizes")
    found = np.zeros(len(rules), np.uint64)
    for feature, (rule, block, edge) in enumerate(zip(rules, given, edges, strict=True)):
        if rule is Rule.CONTINUOUS and edge is None:
            try:
                found[feature] = check_block_size(block)
            except RoutingError as error:
                raise RoutingError(f"feature {feature}: {error}") from None
    return found


def _batch_sizes(batch_sizes: Any, count: int, rows: int) -> Int64Array:
    if batch_sizes is None:
        if rows % count:
            raise RoutingError(
                f"{rows} lengths do not divide over {count} features: give batch_sizes"
            )
        return np.full(count, rows // count, np.int64)
    sizes = np.asarray(batch_sizes, dtype=np.int64)
    if sizes.shape != (count,) or (count and int(sizes.min()) < 0) or int(sizes.sum()) != rows:
        raise RoutingError(
            f"batch_sizes must be {count} numbers of 0 or more that add up to {rows} lengths, "
            f"got {sizes.tolist() if sizes.size < 20 else sizes.shape}"
        )
    return sizes
