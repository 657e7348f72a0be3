"""Options: every legal way to place every table, with its price, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.pricing.choice import Choice
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.units import IntArray

PHASES = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch")
"""Columns of ``Entries.cost``."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Priced shards of all options, one row a run of equal shards, in option order.

    Attributes
    ----------
    first : int64 array [options + 1]
        Rows of option o are ``first[o] … first[o+1] − 1``.
    repeat : int64 array [entries]
        Shards in the run.
    rows, columns : int64 array [entries]
        Of each shard.
    hbm : int64 array [entries]
        Bytes of HBM, exchange buffer excluded.
    buffer : int64 array [entries]
        Bytes of HBM of the exchange buffer (output, at the codec's peak).
    ddr : int64 array [entries]
    cost : int64 array [entries, 5]
        Picoseconds a phase.
    move : int64 array [entries]
        Bytes that travel when the table moves: weights and optimizer state.
    """

    first: IntArray
    repeat: IntArray
    rows: IntArray
    columns: IntArray
    hbm: IntArray
    buffer: IntArray
    ddr: IntArray
    cost: IntArray
    move: IntArray


@dataclass(frozen=True, eq=False)
class Options:
    """All options of a model on a cluster.

    Attributes
    ----------
    model, cluster, profile
        What was priced.
    links : Links
        Bottleneck bandwidths used.
    first : int64 array [tables + 1]
        Options of table t are ``first[t] … first[t+1] − 1``.
    choices : sequence of Choice [options]
    names : sequence of str [options]
        Unique in a table.
    group : int64 array [options]
        Fusion group, −1 for none.
    level : int64 array [options]
        Level in it: the cache ratio times ``level_denominator``.
    groups : tuple of str
        Names of the fusion groups.
    level_denominator : int
    collective : int64 array [options]
        Index in ``collectives`` of the exchange the option's buffers belong to, −1 for none.
    collectives : tuple of str
    entries : Entries
    refused : dict
        Sentences by table: what was not offered, and why.
    """

    model: Model
    cluster: Cluster
    profile: Profile
    links: Links
    first: IntArray
    choices: Sequence[Choice]
    names: Sequence[str]
    group: IntArray
    level: IntArray
    groups: tuple[str, ...]
    level_denominator: int
    collective: IntArray
    collectives: tuple[str, ...]
    entries: Entries
    refused: dict[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.names)

    def of(self, table: int) -> range:
        """Option indices of a table."""
        return range(int(self.first[table]), int(self.first[table + 1]))

    def index(self, table: int, name: str) -> int:
        """Option index by name (KeyError when the table has none of that name)."""
        for option in self.of(table):
            if self.names[option] == name:
                return option
        raise KeyError(name)

    def ratio(self, option: int) -> Fraction:
        """Cache ratio of an option: 1 for HBM_ONLY, 0 for HOST_ONLY."""
        return self.choices[option].ratio

    def group_of(self, option: int) -> str | None:
        """Fusion group of an option, None where it fuses with nothing."""
        index = int(self.group[option])
        return None if index < 0 else self.groups[index]
