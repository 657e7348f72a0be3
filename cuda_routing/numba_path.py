"""Bucketize with loops compiled by numba, in threads over chunks; bit for bit equal to NumPy's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing import numba_kernels as loops
from cuda_routing.buffers import POOL
from cuda_routing.errors import RoutingError
from cuda_routing.features import Features
from cuda_routing.oracle import index_dtype
from cuda_routing.result import Bucketized
from cuda_routing.tables import magic, rule_table

SMALLEST_CHUNK = 1 << 16


def bucketize_numba(
    lengths: NDArray[Any],
    keys: NDArray[Any],
    features: Features,
    *,
    weights: NDArray[Any] | None = None,
    positions: bool = False,
    permute: bool = True,
    threads: int | None = None,
) -> Bucketized:
    """Group keys by owner; arguments as in :func:`cuda_routing.oracle.bucketize_numpy`.

    Parameters
    ----------
    threads : int, optional
        Threads to use; all cores when not given.

    Raises
    ------
    RoutingError
        A negative length, or lengths that do not add up to the number of keys.
    """
    return _Run(lengths, keys, features, threads).finish(weights, positions, permute)


def unsigned_view(keys: NDArray[Any]) -> NDArray[Any]:
    """Return the same bits as an unsigned, contiguous array."""
    kind = np.uint32 if keys.dtype.itemsize == 4 else np.uint64
    return np.ascontiguousarray(keys).view(kind)


class _Run:
    """One call: the split into chunks, then the passes over them."""

    def __init__(
        self, lengths: NDArray[Any], keys: NDArray[Any], features: Features, threads: int | None
    ) -> None:
        self.threads = max(1, threads or os.cpu_count() or 1)
        self.chunks = max(1, min(self.threads, keys.size // SMALLEST_CHUNK))
        self.dtype, self.features = keys.dtype, features
        self.lengths, self.keys = np.ascontiguousarray(lengths), unsigned_view(keys)
        self.ends = np.arange(self.chunks + 1) * keys.size // self.chunks
        self.rows, self.row_keys = np.zeros((2, self.chunks + 1), np.int64)
        self.starts = np.zeros(features.count + 1, np.int64)
        total, least = loops.walk_rows(
            self.lengths, features.row_starts, self.ends, self.starts, self.rows, self.row_keys
        )
        check_lengths(int(total), int(least), keys.size)
        self.rows[-1] = lengths.size
        p = features.ranks
        mask = p - 1 if p & (p - 1) == 0 else 0
        self.scalars = np.array([p, mask, magic(p)], np.uint64)
        self.table, self.edges = rule_table(features)

    def each(self, work: Callable[[int], None]) -> None:
        """Run ``work(chunk)`` for every chunk, on threads where there are several."""
        if self.chunks == 1:
            work(0)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            _drain(pool.map(work, range(self.chunks)))

    def finish(self, weights: NDArray[Any] | None, positions: bool, permute: bool) -> Bucketized:
        """Count, scan, scatter."""
        owner, cursor = self.count()
        source = self.local(owner) if self.features.renumbers else self.keys
        out = POOL.empty(self.keys.size, self.keys.dtype)
        where = None
        if permute or positions or weights is not None:
            where = POOL.empty(self.keys.size, index_dtype(self.dtype))
        self.each(lambda c: self.scatter(c, source, owner, cursor[c], out, where))
        counts = self.count_rows(owner)
        moved = None if weights is None else self.move_weights(weights, where)
        places = self.places(where) if positions else None
        ranks = self.features.ranks
        kept = where if permute else None
        return Bucketized(counts, out.view(self.dtype), moved, places, kept, ranks)

    def count(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Owner of each key, and the first place of each (chunk, rank)."""
        ranks = self.features.ranks
        kind = np.uint8 if ranks <= 256 else np.uint16 if ranks <= 1 << 16 else np.uint32
        owner = POOL.empty(self.keys.size, kind)
        counts = np.zeros((self.chunks, ranks), np.int64)
        narrow = self.features.dynamicemb_int32 and self.keys.dtype.itemsize == 4

        def work(c: int) -> None:
            a, b = self.ends[c], self.ends[c + 1]
            loops.count_chunk(
                self.keys, a, b, self.starts, self.table, self.edges, self.scalars, narrow,
                owner, counts[c],
            )  # fmt: skip

        self.each(work)
        by_rank = counts.T.ravel()
        first = (np.cumsum(by_rank) - by_rank).reshape(ranks, self.chunks).T
        return owner, np.ascontiguousarray(first)

    def local(self, owner: NDArray[Any]) -> NDArray[Any]:
        """Keys as their ranks store them."""
        local = POOL.empty(self.keys.size, self.keys.dtype)

        def work(c: int) -> None:
            a, b = self.ends[c], self.ends[c + 1]
            loops.renumber(
                self.keys, a, b, self.starts, self.table, self.edges, self.scalars, owner, local
            )

        self.each(work)
        return local

    def scatter(self, c: int, source: Any, owner: Any, cursor: Any, out: Any, where: Any) -> None:
        """Place the keys of one chunk."""
        a, b = self.ends[c], self.ends[c + 1]
        if where is None:
            loops.scatter_keys(source, a, b, owner, cursor, out)
        else:
            loops.scatter_keys_permute(source, a, b, owner, cursor, out, where)

    def count_rows(self, owner: NDArray[Any]) -> NDArray[Any]:
        """Lengths by rank and row."""
        ranks = self.features.ranks
        out = POOL.zeros(ranks * self.lengths.size, self.lengths.dtype)
        self.each(
            lambda c: loops.count_rows(
                self.lengths, self.rows[c], self.rows[c + 1], self.row_keys[c], owner, out, ranks
            )
        )
        return out

    def move_weights(self, weights: NDArray[Any], where: Any) -> NDArray[Any]:
        """Weights in the order of the keys."""
        flat = np.ascontiguousarray(weights)
        moved = POOL.empty(flat.size, flat.dtype)
        self.each(
            lambda c: loops.scatter_weights(flat, self.ends[c], self.ends[c + 1], where, moved)
        )
        return moved

    def places(self, where: Any) -> NDArray[Any]:
        """Position of each key inside its bag, in the order of the keys."""
        out = POOL.empty(self.keys.size, index_dtype(self.dtype))
        self.each(
            lambda c: loops.scatter_positions(
                self.lengths, self.rows[c], self.rows[c + 1], self.row_keys[c], where, out
            )
        )
        return out


def check_lengths(total: int, least: int, keys: int) -> None:
    """Refuse lengths that do not describe the keys.

    Raises
    ------
    RoutingError
        A negative length, or a sum that is not the number of keys.
    """
    if least < 0:
        raise RoutingError(f"lengths must not be negative, found {least}")
    if total != keys:
        raise RoutingError(f"lengths add up to {total}, but there are {keys} keys")


def _drain(results: Iterable[Any]) -> None:
    for _ in results:
        pass
