"""What bucketize returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traffic:
    """Keys that a de-duplicated exchange saves.

    Attributes
    ----------
    keys_before, keys_after : int
        Keys to send without and with de-duplication.
    bytes_before, bytes_after : int
        Bytes of these keys.
    """

    keys_before: int
    keys_after: int
    bytes_before: int
    bytes_after: int

    @property
    def saved(self) -> float:
        """Share of the traffic saved, 0 … 1."""
        return 1.0 - self.keys_after / self.keys_before if self.keys_before else 0.0


@dataclass(frozen=True)
class Bucketized:
    """Keys grouped by the rank that owns them; NumPy arrays or torch tensors, as the input was.

    Attributes
    ----------
    lengths : [P · rows]
        Keys of each (rank p, row r) at p · rows + r, where rows run over features and bags. When
        de-duplicated: keys of each (rank p, feature t) at p · T + t.
    keys : [N], or fewer when de-duplicated
        As the owning rank stores them, by rank, then in input order.
    weights : [N] or None
        In the order of ``keys``.
    positions : [N] or None
        Place of each key inside its original bag, in the order of ``keys``.
    permute : [N] or None
        Where each input key went: ``keys[permute[i]]`` stands for input key i.
    ranks : int
    traffic : Traffic or None
        Set when de-duplicated.
    """

    lengths: Any
    keys: Any
    weights: Any
    positions: Any
    permute: Any
    ranks: int
    traffic: Traffic | None = None

    def keys_per_rank(self) -> Any:
        """Return how many keys go to each rank, [P]."""
        return self.lengths.reshape(self.ranks, -1).sum(1)
