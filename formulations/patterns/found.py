"""What the programs of boxes find, and what they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pattern = tuple[tuple[int, int], ...]


class Prices(NamedTuple):
    """What a row pays, in integers.

    Attributes
    ----------
    times : int
        Multiplier of floors and heights.
    loads : tuple of int
        Prices of a load of 1 in each set, and of a step in the second.
    each : int
        Price of a weight of 1.
    memory : list of int
        Multiplier of each resource's capacities.
    """

    times: int
    loads: tuple[int, int, int]
    each: int
    memory: list[int]


@dataclass(frozen=True, eq=False)
class Priced:
    """Weights in integers and the bound that they prove in a box.

    Attributes
    ----------
    prices : Prices
    weight : int64 array [entries]
    most : int
        The largest weight of a rank that is told apart.
    limit : int
        The right-hand side in the box, but for the target's part.
    bound : int
        No plan in the box costs less.
    steps : int
        About the checker's steps.
    """

    prices: Prices
    weight: IntArray
    most: int
    limit: int
    bound: int
    steps: int

    @property
    def memory(self) -> list[int]:
        """Multiplier of each resource's capacities."""
        return self.prices.memory

    def listed(self, instance: Instance) -> list[list[int]]:
        """Weights as a certificate states them: table, its option, the option's shard and the
        weight, where that is not 0."""
        entry, first = np.flatnonzero(self.weight), instance.table_options
        option = np.repeat(instance.option_of, np.diff(instance.block_shards))[entry]
        table, shard = instance.table_of[option], instance.block_shards[:-1]
        own = entry - shard[instance.option_blocks[option]]
        columns = table, option - first[table], own, self.weight[entry]
        found: list[list[int]] = np.stack(columns, axis=1).tolist()
        return found


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
    fluid : bool
        Whether loads have prices of their own, so that weights say what large shards cost beside
        that: better where many tables share a rank, and slower where few do.
    unit : float
        By which the linear programs divide costs.
    patterns : dict of tuple to None
        Entries of shards and their numbers on one rank.
    space : int64 array
        Memory of the dynamic program.
    """

    upper: int
    fluid: bool
    unit: float = field(init=False)
    patterns: dict[Pattern, None] = field(default_factory=dict)
    space: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        self.unit = max(1.0, self.upper / 1000)
