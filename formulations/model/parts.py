"""The parts that a model is built of: options, cuts, and what a neighbourhood opens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.instance import IntArray
from formulations.result.placement import Placement


@dataclass(frozen=True, eq=False)
class Parts:
    """What to put into a model.

    Attributes
    ----------
    keep : bool array [options], optional
        Options that may be chosen; default: those that pins and ``forbidden`` allow.
    limit : int, optional
        Largest objective of interest.
    cuts : bool
        Add rows that follow from the others: pooled ones and largest shards.
    ordered : bool
        Break the symmetry of interchangeable ranks; for the exact model only.
    base : Placement, optional
        Makes the model a neighbourhood of this placement: tables not in ``tables`` stay as they
        are in it, and no shard that chooses its rank is added to a closed cell of the partition.
    tables : sequence of int, optional
        The open tables of a neighbourhood.
    check : callable, optional
        Called between families of rows; raises to abort.
    """

    keep: NDArray[np.bool_] | None = None
    limit: int | None = None
    cuts: bool = True
    ordered: bool = False
    base: Placement | None = None
    tables: IntArray | None = None
    check: Callable[[], None] | None = None
