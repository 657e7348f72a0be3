"""Options: every legal way to place every table, its price, and its fusion group.

Fusion groups: dynamicemb tables with equal grouped keys share one cache ratio. The runtime puts
tables whose grouped key agrees into one module and spreads the group's HBM over all of them in
proportion. Tables that agree in every other field form exactly two groups: one with ``caching`` off
(HOST_ONLY at level 0, HYBRID between, HBM_ONLY at the top) and one with it on (CACHING between,
HBM_ONLY at the top).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import DistType, Mode, ShardingType
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.pricing.entries import FORWARD_SEND, UPDATE, alive
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.shared_caches import together
from milp_planner.pricing.units import IntArray

if TYPE_CHECKING:
    from milp_planner.pricing.job import OptionColumns


SHARDING_TYPES: tuple[ShardingType, ...] = get_args(ShardingType)
MODES: tuple[Mode, ...] = get_args(Mode)
TIERED = ("HYBRID", "CACHING", "SSD")
"""Modes of two tiers or more, whose cache ratio is a choice of its own."""
MODE_OF_KERNEL: dict[str, Mode] = {
    "dense": "HBM_ONLY", "fused": "HBM_ONLY", "fused_uvm": "HOST_ONLY",
    "fused_uvm_caching": "CACHING", "key_value": "SSD", "ssd_virtual_table": "SSD",
    "dram_virtual_table": "CACHING",
}  # fmt: skip
"""The mode that each of TorchRec's kernels stands for on a GPU."""
STORES = ("key_value", "ssd_virtual_table", "dram_virtual_table")
"""TorchRec's kernels of key-value stores."""

WHOLE_ROWS = frozenset({"table_wise", "column_wise", "table_column_wise"})
"""Sharding types whose shards hold every row."""
BY_COLUMN = frozenset({"column_wise", "table_column_wise", "grid_shard"})
"""Sharding types whose shards may hold part of the columns."""
BY_MACHINE = frozenset({"table_row_wise", "grid_shard"})
"""Sharding types that split rows over the ranks of a machine, or of several in a domain."""


@dataclass(frozen=True)
class Choice:
    """Sharding type, mode, cache ratio, routing and place of one option."""

    sharding: ShardingType
    """One of ``SHARDING_TYPES``."""
    mode: Mode
    """One of ``MODES``."""
    ratio: Fraction
    """Cache ratio; 0 for HOST_ONLY, 1 for HBM_ONLY."""
    width: int
    """Columns of a shard (of all but the last, which may be narrower)."""
    columns: int = 1
    """Column shards."""
    even: bool = True
    """Whether no narrower width gives as many shards (otherwise the name states the width)."""
    dist_type: DistType | None = None
    """Routing rule of a dynamicemb table."""
    caching_group: bool | None = None
    """Which of its two fusion groups a dynamicemb option joins; None: it fuses with nothing."""
    machine_ranks: int = 0
    """Ranks over which rows are split, those of a machine or row group; else 0."""
    groups: tuple[int, ...] | None = None
    """The row groups that hold the shards, where a group, or a row split, is several machines;
    None: any machine."""
    nodes: int = 1
    """Row groups over which table_row_wise splits rows."""
    members: tuple[int, ...] | None = None
    """Their ranks, in shard order."""
    machines: tuple[int, ...] | None = None
    """The machines allowed; None: all."""
    ranks: tuple[int, ...] | None = None
    """The only ranks allowed; None: all."""
    pinned: tuple[int, ...] | None = None
    """The rank of every shard, in shard order."""
    stash: bool = False
    """Whether its weights are in host memory between forward and backward."""
    runtime: str = "torchrec"
    """Name of the runtime that has it."""

    @property
    def name(self) -> str:
        """Name, such as ``column_wise:2/CACHING/0.3`` or ``row_wise/HBM_ONLY/roundrobin``."""
        cut = f":{self.columns}" if self.columns > 1 else ""
        cut += "" if self.even else f"x{self.width}"
        parts = [self.sharding + cut, self.mode]
        if self.mode in TIERED:
            parts.append(ratio_text(self.ratio))
        if self.stash:
            parts.append("stash")
        if self.dist_type is not None:
            parts.append(self.dist_type)
        if self.mode == "HBM_ONLY" and self.caching_group:
            parts.append("beside_caching")
        if self.groups is not None:
            parts.append("_".join(["group", *map(str, self.groups)]))
        if self.machines is not None and self.machine_ranks:
            parts.append(f"{self.machine_ranks}_ranks")
        return "/".join(parts)

    @property
    def row_parts(self) -> int:
        """Number of row parts, where the sharding type does not decide it."""
        return self.machine_ranks or 1


def ratio_text(ratio: Fraction) -> str:
    """A ratio as a decimal where it has at most two places, else as a fraction: 0.3, 0.35, 1/3."""
    if 100 % ratio.denominator == 0:
        return f"{float(ratio):g}"
    return str(ratio)


PHASES = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch")
"""Columns of ``Entries.cost``."""
SYNC = "sync"
"""A further phase if sharding groups are averaged."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Priced shards of all options, one row per run of equal shards, in option order."""

    first: IntArray
    """Rows of option o are ``first[o] … first[o+1] − 1``; int64 array [options + 1]."""
    repeat: IntArray
    """Shards in the run; int64 array [entries]."""
    rows: IntArray
    columns: IntArray
    """Of each shard; int64 array [entries]."""
    ledger: IntArray
    """Bytes of HBM by entry, see :data:`milp_planner.pricing.entries.SHARD_ENTRIES`; int64 array
    [entries, len(SHARD_ENTRIES)]."""
    ddr: IntArray
    ssd: IntArray
    """Bytes of DDR and of SSD; int64 arrays [entries]."""
    ssd_step: IntArray
    """Bytes that SSD reads and writes in a step; int64 array [entries]."""
    cost: IntArray
    """Picoseconds per phase; int64 array [entries, phases]."""
    move: IntArray
    """Bytes that travel when the table moves: weights and optimizer state; int64 array [entries].
    """
    incoming: IntArray
    outgoing: IntArray
    """Average bytes of ids received and of embeddings returned in a step, embeddings as looked
    up; int64 arrays [entries]."""

    @property
    def hbm(self) -> IntArray:
        """Bytes of HBM in use at every moment: rows, their metadata, ids; int64 array [entries]."""
        return self.ledger @ alive(UPDATE)

    @property
    def buffer(self) -> IntArray:
        """Further bytes of HBM in the forward exchange, at the codec's peak; int64 [entries]."""
        return self.ledger @ alive(FORWARD_SEND) - self.hbm


@dataclass(frozen=True, eq=False)
class Options:
    """All options of a model on a cluster."""

    model: Model
    cluster: Cluster
    profile: Profile
    """The priced inputs."""
    links: Links
    """Bottleneck bandwidths used."""
    first: IntArray
    """Options of table t are ``first[t] … first[t+1] − 1``; int64 array [tables + 1]."""
    choices: Sequence[Choice]
    names: Sequence[str]
    """Unique in a table."""
    group: IntArray
    """Fusion group, −1 for none; int64 array [options]."""
    level: IntArray
    """Level in the fusion group: the cache ratio times ``level_denominator``; int64 array
    [options]."""
    groups: tuple[str, ...]
    """Names of the fusion groups."""
    level_denominator: int
    collective: IntArray
    """Index in ``collectives`` of the exchange the option's buffers belong to, −1 for none; int64
    array [options]."""
    collectives: tuple[str, ...]
    entries: Entries
    refused: dict[str, tuple[str, ...]]
    """Sentences by table: which options were not offered, and why."""

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def distinct(self) -> tuple[list[Choice], IntArray]:
        """Its choices as of :func:`distinct`."""
        return distinct(self.choices)

    @property
    def phases(self) -> tuple[str, ...]:
        """Names of the columns of ``entries.cost``."""
        return (*PHASES, SYNC) if self.cluster.replicas > 1 else PHASES

    def of(self, table: int) -> range:
        """Option indices of a table."""
        return range(int(self.first[table]), int(self.first[table + 1]))

    def index(self, table: int, name: str) -> int:
        """Option index by name (KeyError if the table has none of that name)."""
        for option in self.of(table):
            if self.names[option] == name:
                return option
        raise KeyError(name)


def distinct(choices: Sequence[Choice]) -> tuple[list[Choice], IntArray]:
    """Choices without repetitions, as they first occur, and the index of each among them.

    int64 array [choices]. Tables alike share theirs, so these are few.
    """
    places: dict[int, int] = {}
    index = [places.setdefault(id(choice), len(places)) for choice in choices]
    found = dict(zip(index, choices, strict=True))
    return list(found.values()), np.array(index, dtype=np.int64)


def group_name(table: Table, training: bool, dist_type: str, caching: bool) -> str:
    """Name of one of a table's two fusion groups: every field of the grouped key, in words.

    Source: NVIDIA/recsys-examples, ``corelib/dynamicemb`` (grouped key of batched tables). Output
    kind and weighting are added: such tables live in different TorchRec modules.
    """
    fields = {
        "training": str(training).lower(),
        "caching": str(caching).lower(),
        "external_storage": table.external_storage or "none",
        "index_type": table.index_type,
        "dist_type": dist_type,
        "score_strategy": table.score_strategy,
        "admit_strategy": table.admit_strategy or "none",
        "dim": str(table.dim),
        "dtype": table.dtype,
        "optimizer": table.optimizer,
        "output": table.output,
        "weighted": str(table.weighted).lower(),
    }
    return "dynamicemb[" + ",".join(f"{key}={value}" for key, value in fields.items()) + "]"


def level_denominator(model: Model) -> int:
    """Least common denominator of all cache ratios of a model: levels are ratios over it."""
    grids: Iterable[tuple[Fraction, ...]] = (
        model.workload.cache_ratios,
        *(t.constraints.cache_ratios for t in model.tables if t.constraints.cache_ratios),
    )
    return math.lcm(*{ratio.denominator for grid in grids for ratio in grid})


def fusion_of(
    model: Model, ranks: int, choices: Sequence[Choice], columns: OptionColumns, denominator: int
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Group and level of every option, int64 arrays [options], and the groups' names.

    A group is −1 if the option fuses with nothing; a level is the cache ratio × ``denominator``.
    """
    group = np.full(len(choices), -1, dtype=np.int64)
    names: dict[str, int] = {}
    known: dict[tuple[int, str, bool], int] = {}
    for option, (choice, owner) in enumerate(zip(choices, columns.table.tolist(), strict=True)):
        if choice.caching_group is None or choice.dist_type is None:
            kernel = together(model.tables[owner], choice, model.workload, ranks)
            if kernel is not None:
                group[option] = names.setdefault(kernel, len(names))
            continue
        key = (owner, choice.dist_type, choice.caching_group)
        if key not in known:
            name = group_name(model.tables[owner], model.workload.trains, *key[1:])
            known[key] = names.setdefault(name, len(names))
        group[option] = known[key]
    level = np.where(group >= 0, columns.over * denominator // columns.under, 0)
    return group, level, tuple(names)


def collectives_of(model: Model, columns: OptionColumns) -> tuple[IntArray, tuple[str, ...]]:
    """One collective for each library, kind of output and sharding type, and its index by option.

    TorchRec exchanges the outputs of all tables of a module that share a sharding type in one call;
    a replicated table exchanges none: −1 in the int64 array [options]. Names are such as
    ``torchrec/sequence/row_wise``.
    """
    kinds: dict[str, int] = {}
    owner = [kinds.setdefault(f"{t.kind}/{t.output}", len(kinds)) for t in model.tables]
    kind = np.array(owner, dtype=np.int64)[columns.table]
    used, index = np.unique(kind * len(SHARDING_TYPES) + columns.sharding, return_inverse=True)
    names = list(kinds)
    labels = [divmod(int(code), len(SHARDING_TYPES)) for code in used]
    index = np.where(columns.is_sharding("data_parallel"), -1, index)
    return index, tuple(f"{names[k]}/{SHARDING_TYPES[s]}" for k, s in labels)
