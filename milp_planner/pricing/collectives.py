"""Measured collectives: their time by size, as a profile states it.

Sizes and bandwidths are nccl-tests': the size is the whole buffer of a rank, and the bus bandwidth
is size/time times (n − 1)/n on n ranks, for an all-reduce 2·(n − 1)/n.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from milp_planner.inputs.spec import Pair, Some, Spec

Kind = Literal["all_to_all", "reduce_scatter", "all_gather", "all_reduce"]
Seconds = Annotated[float, Field(gt=0)]
Timed = Pair[Annotated[float, Field(gt=0)], Seconds]


class CollectiveTable(Spec):
    """Time of one collective by size: a floor, a rise, and a saturation."""

    ranks: Annotated[int, Field(ge=2)] = 2
    """Ranks that were measured. Others are taken to reach the same bus bandwidth."""
    points: Some[Timed]
    """Pairs (bytes of a rank's buffer, seconds), both rising. Time is linear between them, and a
    smaller buffer takes as long as the first."""
    beyond: Literal["measured", "stated"] = "measured"
    """Bandwidth of a buffer larger than the last point: that of the last point, or, if the points
    do not reach saturation, the cluster's for the bytes beyond it."""
    mesh: bool = False
    """Whether every pair of ranks has a link of its own. n ranks then take as long as the measured
    ones with the same bytes for a pair, instead of reaching the same bus bandwidth."""
    origin: str
    """Where the points come from."""

    @model_validator(mode="after")
    def _rising(self) -> CollectiveTable:
        if any(b[0] <= a[0] or b[1] < a[1] for a, b in pairwise(self.points)):
            raise ValueError("points must be sorted by rising size, and no larger one is faster")
        return self

    def seconds(self, size: float, stated: float, share: float) -> float:
        """Seconds on the measured ranks; 0 for no bytes.

        Parameters
        ----------
        size : float
            Bytes of a rank's buffer.
        stated : float
            Bytes per second of the cluster's link.
        share : float
            Bytes that cross the link, over ``size``.
        """
        (first, floor), (last, longest) = self.points[0], self.points[-1]
        if size <= first:
            return floor if size > 0 else 0.0
        if size < last:
            sizes, seconds = zip(*self.points, strict=True)
            return float(np.interp(size, sizes, seconds))
        if self.beyond == "measured":
            return longest * size / last
        return longest + (size - last) * share / stated

    def bus_bandwidth(self, size: float, ranks: int, stated: float, kind: Kind) -> float:
        """Bytes per second of a rank's link with ``size`` > 0 bytes on ``ranks`` ranks.

        Never above ``stated``, what the cluster's links can carry.
        """
        share = moved_share(kind, self.ranks)
        if self.mesh:
            seconds = self.seconds(size * self.ranks / ranks, stated, share)
            share = moved_share(kind, ranks)
        else:
            seconds = self.seconds(size, stated, share)
        return min(stated, size * share / seconds)


def moved_share(kind: Kind, ranks: int) -> float:
    """Bytes that cross a rank's link in a collective, over the size of its buffer."""
    return (2 if kind == "all_reduce" else 1) * (ranks - 1) / ranks


class Collectives(Spec):
    """Tables of a kind of rank; without one, a collective has the cluster's stated bandwidth."""

    all_to_all: CollectiveTable | None = None
    """Inside a machine or NVLink domain."""
    reduce_scatter: CollectiveTable | None = None
    """Inside a machine or NVLink domain."""
    all_gather: CollectiveTable | None = None
    """Inside a machine or NVLink domain; its size is the gathered buffer."""
    all_reduce: CollectiveTable | None = None
    """Inside a machine or NVLink domain."""
    network: CollectiveTable | None = None
    """To other machines, in any collective; the size is the bytes that cross a network card."""

    def card_bandwidth(self, size: float, stated: float) -> float:
        """Bytes per second of a network card that ``size`` bytes cross."""
        if self.network is None or size <= 0:
            return stated
        return min(stated, size / self.network.seconds(size, stated, 1.0))
