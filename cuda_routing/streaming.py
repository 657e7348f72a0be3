"""Balance of a stream of keys of any length, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.balance import Balance, balance_of_counts
from cuda_routing.errors import RoutingError
from cuda_routing.rules import Int64Array, Rule, block_size_of, owners

CANDIDATES = 4096
BATCH = 65_536


@dataclass(frozen=True)
class StreamBalance:
    """The balance of a stream of keys over the ranks.

    Attributes
    ----------
    lookups : int
    rows : int
        Given, or the largest key + 1; 0 where keys are negative.
    balances : dict of Rule to Balance
        Balance of all lookups.
    after_dedup : dict of Rule to Balance
        Balance if each batch requests each distinct key once.
    sent_share : float
        Keys sent over lookups, both summed over all batches of at most ``batch`` lookups; a batch
        sends each of its distinct keys once.
    batch : int
    hottest : list of (key, lookups)
        The ``most`` most frequent keys in descending order, with exact counts. A more frequent key
        is missing only if it has at most 1/4097 of the lookups.
    """

    lookups: int
    rows: int
    balances: dict[Rule, Balance]
    after_dedup: dict[Rule, Balance]
    sent_share: float
    batch: int
    hottest: list[tuple[int, int]]


def stream_balance(
    stream: Iterable[NDArray[Any]],
    ranks: int,
    rules: Sequence[Rule | int | str] | None = None,
    *,
    rows: int | None = None,
    batch: int = BATCH,
    most: int = 5,
) -> StreamBalance:
    """Count a stream under several rules.

    Parameters
    ----------
    stream : iterable of integer arrays
        Not an iterator: it is iterated up to three times (size of the table, loads, exact counts
        of the hottest keys).
    ranks : int
    rules : sequence of rules, optional
        Default: all; continuous is left out if there are negative keys and no rows are given.
    rows : int, optional
        Size of the table.
    batch : int
        Lookups that one sender de-duplicates together.
    most : int
        How many hot keys to list.

    Raises
    ------
    RoutingError
        The stream is empty or an iterator, or continuous was asked for and has no table size.

    References
    ----------
    The candidates for the hottest keys are kept by the mergeable Misra–Gries summary: P. Agarwal
    et al., "Mergeable summaries", PODS 2012, doi:10.1145/2213556.2213562.
    """
    if batch < 1:
        raise RoutingError(f"batch must be at least 1, got {batch}")
    if isinstance(stream, Iterator):
        raise RoutingError("stream is an iterator, which can be read only once; pass a list")
    wanted = [Rule.parse(rule) for rule in (rules if rules is not None else list(Rule))]
    rows = _rows(stream, wanted, rows, asked=rules is not None)
    if rows == 0:
        wanted = [rule for rule in wanted if rule is not Rule.CONTINUOUS]
    counter = _Counter(ranks, wanted, rows, batch)
    for piece in stream:
        counter.add(piece)
    if counter.lookups == 0:
        raise RoutingError("there are no keys in the stream")
    hottest = _exact(stream, counter.candidates, most)
    top = hottest[0][1] / counter.lookups
    return StreamBalance(
        counter.lookups, rows,
        {r: balance_of_counts(counter.loads[r], r, top) for r in wanted},
        {r: balance_of_counts(counter.sent[r], r, counter.batches / counter.different)
         for r in wanted},
        counter.different / counter.lookups, batch, hottest,
    )  # fmt: skip


def _rows(
    stream: Iterable[NDArray[Any]], wanted: list[Rule], rows: int | None, *, asked: bool
) -> int:
    """Size of the table: given, or found by a separate pass if continuous needs it."""
    if rows is not None or Rule.CONTINUOUS not in wanted:
        return rows or 0
    least, largest = 0, -1
    for piece in stream:
        if piece.size:
            least, largest = min(least, int(piece.min())), max(largest, int(piece.max()))
    if least < 0 and asked:
        raise RoutingError(f"key {least} is negative: continuous needs the number of rows")
    return largest + 1 if least >= 0 else 0


class _Counter:
    """Loads per rank, distinct keys per batch, and candidates for the hottest keys."""

    def __init__(self, ranks: int, rules: list[Rule], rows: int, batch: int) -> None:
        self.ranks, self.rules, self.batch = ranks, rules, batch
        self.block = block_size_of(rows, ranks)
        self.loads: dict[Rule, Int64Array] = {r: np.zeros(ranks, np.int64) for r in rules}
        self.sent: dict[Rule, Int64Array] = {r: np.zeros(ranks, np.int64) for r in rules}
        self.lookups = self.different = self.batches = 0
        self.candidates: dict[int, int] = {}

    def add(self, piece: NDArray[Any]) -> None:
        """Count one piece, batch by batch."""
        for start in range(0, piece.size, self.batch):
            keys, counts = np.unique(piece[start : start + self.batch], return_counts=True)
            self.lookups += int(counts.sum())
            self.different += keys.size
            self.batches += 1
            for rule in self.rules:
                owner = owners(keys, self.ranks, rule, block_size=self.block)
                loads = np.bincount(owner, weights=counts, minlength=self.ranks)
                self.loads[rule] += loads.astype(np.int64)
                self.sent[rule] += np.bincount(owner, minlength=self.ranks)
            self._note(keys, counts)

    def _note(self, keys: NDArray[Any], counts: Int64Array) -> None:
        """Merge counts into the summary, and shrink it to its size."""
        kept = self.candidates
        if keys.size > 2 * CANDIDATES:  # the largest counts of the batch are a summary of it
            cut = int(np.partition(counts, -CANDIDATES - 1)[-CANDIDATES - 1])
            strong = counts > cut
            keys, counts = keys[strong], counts[strong] - cut
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            kept[key] = kept.get(key, 0) + count
        if len(kept) > CANDIDATES:
            cut = sorted(kept.values(), reverse=True)[CANDIDATES]
            self.candidates = {key: n - cut for key, n in kept.items() if n > cut}


def _exact(
    stream: Iterable[NDArray[Any]], candidates: dict[int, int], most: int
) -> list[tuple[int, int]]:
    """Exact counts of all candidates, the most frequent first (ties by key)."""
    likely = list(candidates)
    if not likely:  # every key is equally rare, so none is hotter than any other
        likely = [int(next(piece[0] for piece in stream if piece.size))]
    totals = dict.fromkeys(likely, 0)
    known = np.sort(np.array(likely))
    for piece in stream:
        place = np.searchsorted(known, piece)
        hit = known[np.minimum(place, known.size - 1)] == piece
        counts = np.bincount(place[hit], minlength=known.size)
        for key, count in zip(known.tolist(), counts.tolist(), strict=True):
            totals[key] += count
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:most]
