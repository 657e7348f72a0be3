"""What the programs of boxes find, and what they share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from formulations.instance import IntArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pattern = tuple[tuple[int, int], ...]
#: Bits of the largest number in the arithmetic, and most bits of the multiplier of floors and
#: heights, with which prices of weights and memory are integers.
_BITS, _MOST_BITS = 58, 20


@dataclass(frozen=True, eq=False)
class Priced:
    """Weights in integers and the bound that they prove in a box.

    Attributes
    ----------
    weight : int64 array [entries]
    each : int
        Price of a weight of 1, where floors and heights have :attr:`Program.times`.
    most : int
        The largest weight of a rank that is told apart.
    memory : list of int
        Multiplier of each resource's capacities.
    limit : int
        The right-hand side in the box, but for the target's part.
    bound : int
        No plan in the box costs less.
    steps : int
        About the checker's steps.
    """

    weight: IntArray
    each: int
    most: int
    memory: list[int]
    limit: int
    bound: int
    steps: int


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of the program in a box.

    Attributes
    ----------
    priced : Priced
    first, second : tuple of (float, float)
        Mean of the heights that the program's patterns pay for, and how far they lie around it: a
        box in which all pay the same cannot be improved by splitting it there.
    shares : float array [options]
        Of each table's options; those that are alike have equal shares.
    finished : bool
        Whether more time would not have raised the bound.
    """

    priced: Priced
    first: tuple[float, float]
    second: tuple[float, float]
    shares: Floats
    finished: bool


@dataclass(eq=False)
class Shared:
    """What the programs of several sets of options have in common.

    Attributes
    ----------
    upper : int
        The cost of a plan; bounds of it or more need not be improved.
    times : int
        Multiplier of floors and heights.
    unit : float
        By which the linear programs divide costs.
    patterns : dict of tuple to None
        Entries of shards and their numbers on one rank.
    space : int64 array
        Memory of the dynamic program.
    """

    upper: int
    times: int = field(init=False)
    unit: float = field(init=False)
    patterns: dict[Pattern, None] = field(default_factory=dict)
    space: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        self.times = 2 ** min(_MOST_BITS, max(0, _BITS - self.upper.bit_length()))
        self.unit = max(1.0, self.upper / 1000)
