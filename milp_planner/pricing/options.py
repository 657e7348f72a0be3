"""Options: every legal way to place every table, and its price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import DistType, Mode, ShardingType
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.units import IntArray

SHARDING_TYPES: tuple[ShardingType, ...] = get_args(ShardingType)
MODES: tuple[Mode, ...] = get_args(Mode)
TIERED = ("HYBRID", "CACHING")
"""Modes of two tiers, whose cache ratio is a choice of its own."""
MODE_OF_KERNEL: dict[str, Mode] = {
    "dense": "HBM_ONLY", "fused": "HBM_ONLY", "fused_uvm": "HOST_ONLY",
    "fused_uvm_caching": "CACHING",
}  # fmt: skip
"""The mode that each of TorchRec's kernels stands for on a GPU."""

WHOLE_ROWS = frozenset({"table_wise", "column_wise", "table_column_wise"})
"""Sharding types whose shards hold every row."""
BY_COLUMN = frozenset({"column_wise", "table_column_wise", "grid_shard"})
"""Sharding types whose shards may hold part of the columns."""
BY_MACHINE = frozenset({"table_row_wise", "grid_shard"})
"""Sharding types that split rows over the ranks of a machine."""


@dataclass(frozen=True)
class Choice:
    """Sharding type, mode, cache ratio, routing and place of one option.

    Attributes
    ----------
    sharding : str
        One of ``SHARDING_TYPES``.
    mode : str
        One of ``MODES``.
    ratio : Fraction
        Cache ratio; 0 for HOST_ONLY, 1 for HBM_ONLY.
    width : int
        Columns of a shard (of all but the last, which may be narrower).
    columns : int
        Column shards.
    even : bool
        Whether no narrower width gives as many shards (else the name states the width).
    dist_type : str or None
        Routing rule of a dynamicemb table.
    caching_group : bool or None
        Which of its two fusion groups a dynamicemb option joins; None: it fuses with nothing.
    machine_ranks : int
        Ranks of a machine where the rows are split inside one; else 0.
    machines : tuple of int, optional
        The machines allowed; None: all.
    ranks : tuple of int, optional
        The only ranks allowed; None: all.
    pinned : tuple of int, optional
        The rank of every shard, in shard order.
    """

    sharding: ShardingType
    mode: Mode
    ratio: Fraction
    width: int
    columns: int = 1
    even: bool = True
    dist_type: DistType | None = None
    caching_group: bool | None = None
    machine_ranks: int = 0
    machines: tuple[int, ...] | None = None
    ranks: tuple[int, ...] | None = None
    pinned: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """Such as ``column_wise:2/CACHING/0.3`` or ``row_wise/HBM_ONLY/roundrobin``."""
        cut = f":{self.columns}" if self.columns > 1 else ""
        cut += "" if self.even else f"x{self.width}"
        parts = [self.sharding + cut, self.mode]
        if self.mode in TIERED:
            parts.append(ratio_text(self.ratio))
        if self.dist_type is not None:
            parts.append(self.dist_type)
        if self.mode == "HBM_ONLY" and self.caching_group:
            parts.append("beside_caching")
        if self.machines is not None and self.machine_ranks:
            parts.append(f"{self.machine_ranks}_ranks")
        return "/".join(parts)


def ratio_text(ratio: Fraction) -> str:
    """A ratio as a decimal where it has at most two places, else as a fraction: 0.3, 0.35, 1/3."""
    if 100 % ratio.denominator == 0:
        return f"{float(ratio):g}"
    return str(ratio)


def kernel_of(kind: str, sharding: str, mode: str, cpu_only: bool = False) -> str:
    """Name of the kernel, as a trainer is configured with it.

    TorchRec: dense with data_parallel, fused, fused_uvm, fused_uvm_caching (fused alone without
    HBM: there are no UVM kernels on CPUs); dynamicemb tables have the library's own kernel.
    """
    if kind == "dynamicemb":
        return "customized_kernel"
    if sharding == "data_parallel":
        return "dense"
    if cpu_only:
        return "fused"
    return {"HBM_ONLY": "fused", "HOST_ONLY": "fused_uvm", "CACHING": "fused_uvm_caching"}[mode]


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
    incoming, outgoing : int64 array [entries]
        Bytes of ids and of embeddings of one step, these in the table's own element type.
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
    incoming: IntArray
    outgoing: IntArray


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
