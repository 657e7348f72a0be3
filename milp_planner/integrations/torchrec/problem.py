"""TorchRec's search space as an Instance, and a Placement back as TorchRec's sharding options."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from torchrec.distributed.planner.constants import UVM_CACHING_RATIO
from torchrec.distributed.planner.types import Shard as TorchShard
from torchrec.distributed.planner.types import ShardingOption, Topology

from formulations import Instance, InstanceBuilder, Placement
from milp_planner.errors import BadInput
from milp_planner.inputs.model import Fusion
from milp_planner.integrations.torchrec.blocks import (
    DdrScope,
    Places,
    Together,
    blocks,
    groups_of,
    places,
    whole,
)
from milp_planner.integrations.torchrec.dynamicemb import marks
from milp_planner.integrations.torchrec.rating import RatingName, phased, with_sync
from milp_planner.integrations.torchrec.stash import is_stashed
from milp_planner.pricing.options import BY_COLUMN, SHARDING_TYPES
from milp_planner.pricing.shared_caches import Caches


@dataclass(frozen=True, eq=False)
class Problem:
    """An Instance and the TorchRec sharding option behind each of its options.

    Attributes
    ----------
    instance : Instance
    choices : tuple of ShardingOption
        By the instance's global option index (several options may share one, see
        :func:`compile_problem`).
    """

    instance: Instance
    choices: tuple[ShardingOption, ...]

    @property
    def caches(self) -> Caches:
        """The kernels whose caches tables share on a rank, as TorchRec groups them."""
        return Caches.named([_cached(option) for option in self.choices])

    @property
    def search_space(self) -> list[ShardingOption]:
        """TorchRec's options, each once."""
        return list({id(option): option for option in self.choices}.values())

    def apply(self, placement: Placement) -> list[ShardingOption]:
        """Copies of the sharding options of an accepted placement, with every shard's rank set.

        One per table, in the instance's order, as a TorchRec partitioner returns them.
        """
        plan = []
        for table, option in enumerate(placement.options):
            chosen = copy.deepcopy(self.choices[int(option)])
            ranks = [int(r) for block in placement.ranks[table] for r in block]
            for shard, rank in zip(chosen.shards, ranks, strict=True):
                shard.rank = rank
            plan.append(chosen)
        return plan

    def placement_of(self, plan: Sequence[ShardingOption]) -> Placement:
        """The Placement of TorchRec's own plan (options with ranks), for auditing or as a hint.

        BadInput if the plan lacks a table, has an unknown one, or holds an option not enumerated.
        """
        by_fqn = {option.fqn: option for option in plan}
        if len(by_fqn) != self.instance.num_tables:
            raise BadInput(
                f"the plan has {len(by_fqn)} tables, the model {self.instance.num_tables}"
            )
        picked = [self._find(table, by_fqn) for table in range(self.instance.num_tables)]
        return Placement(
            options=np.asarray([option for option, _ in picked], dtype=np.int64),
            ranks=[ranks for _, ranks in picked],
        )

    def _find(self, table: int, by_fqn: dict[str, ShardingOption]) -> tuple[int, list[np.ndarray]]:
        options = self.instance.options_of(table)
        fqn = self.choices[options[0]].fqn
        if fqn not in by_fqn:
            raise BadInput(f"the plan does not have table {fqn!r}")
        wanted = by_fqn[fqn]
        for option in options:
            ranks = self._split(option, [int(s.rank or 0) for s in wanted.shards])
            if identity(self.choices[option]) == identity(wanted) and self._sits(option, ranks):
                return option, ranks
        raise BadInput(
            f"table {fqn!r}: the plan's {option_name(wanted)} on ranks "
            f"{[s.rank for s in wanted.shards]} is not among the options enumerated for it"
        )

    def _sits(self, option: int, ranks: list[np.ndarray]) -> bool:
        """Whether the ranks are among those of the option's blocks (copies differ only there)."""
        for block, here in zip(self.instance.blocks_of(option), ranks, strict=True):
            view = self.instance.block(block)
            if view.places is None or view.where.name.endswith("MACHINE"):
                continue
            if not set(here.tolist()) <= set(view.places):
                return False
        return True

    def _split(self, option: int, ranks: list[int]) -> list[np.ndarray]:
        parts, start = [], 0
        for index in self.instance.blocks_of(option):
            size = self.instance.positions(self.instance.block(index))
            parts.append(np.asarray(ranks[start : start + size], dtype=np.int64))
            start += size
        return parts


def _cached(option: ShardingOption) -> tuple[str, Fraction] | None:
    """The kernel that a cached option joins, and its load factor; None for any other.

    As in TorchRec 1.8.0, ``distributed/embedding_sharding.py``, ``group_tables``: of one module,
    sharding type, data type and pooling, and of one width where a pipeline prefetches.
    """
    if not option.compute_kernel.endswith("uvm_caching"):
        return None
    path, module = option.module
    configs: Sequence[Any] = getattr(module, "embedding_bag_configs", list)()
    pooling = next((config.pooling for config in configs if config.name == option.name), None)
    prefetched = option.cache_params is not None and option.cache_params.prefetch_pipeline
    width = option.shards[0].size[1] if prefetched else None
    kernel = path, option.sharding_type, option.tensor.dtype, pooling, option.is_weighted, width
    factor = option.cache_load_factor
    return str(kernel), Fraction(UVM_CACHING_RATIO if factor is None else factor)


def compile_problem(
    search_space: Sequence[ShardingOption],
    topology: Topology,
    ddr: DdrScope = "rank",
    objective: RatingName = "busiest_rank",
    fusion: Fusion = "honoured",
    together: Together = (),
    sync: Callable[[ShardingOption, TorchShard], int] | None = None,
) -> Problem:
    """Compile TorchRec's estimated search space into an Instance.

    The objective is TorchRec's own rating, ``busiest_rank``, or the critical path that it reports
    (:mod:`milp_planner.integrations.torchrec.rating`). Tables that carry the same ``dependency``
    (towers) share a machine: their options are copied once per machine and tied by a fusion group
    whose level is the machine. They are copied the same way if machine-bound shards span a pod of
    hosts while DDR is pooled by host. dynamicemb tables that the runtime fuses also share one ratio
    by fusion groups. If tables are stashed, their weights count in a resource ``stash``.

    Parameters
    ----------
    search_space : sequence of ShardingOption
        From an enumerator, estimates populated.
    topology : Topology
        Capacities after reservations (``StorageReservation.reserve``).
    ddr : {"rank", "machine"}
        Whether DDR is a capacity of each rank, as in TorchRec, or of the host.
    fusion : {"honoured", "free"}
        Whether dynamicemb tables that fuse must share one cache ratio, as in the runtime.
    together : sequence of sequences of str
        Tables that must share a rank, any rank; each is placed whole.
    sync : callable, optional
        Picoseconds per step of averaging a shard of an option with its replicas, a phase of its
        own.

    Raises
    ------
    BadInput
        If an option cannot be expressed, naming its table.
    InstanceError
        If a number is outside an Instance's range.
    """
    with_ssd = any(
        shard.storage is not None and shard.storage.ssd > 0
        for option in search_space
        for shard in option.shards
    )
    where = places(topology, ddr, with_ssd, any(map(is_stashed, search_space)))
    rating = phased(objective, search_space)
    if sync is not None:
        rating = with_sync(rating, sync)
    builder = InstanceBuilder(
        where.machines, rating.phases, where.resources, rating.objective, "torchrec",
        "TorchRec's enumerator and estimator",
    )  # fmt: skip
    choices: list[ShardingOption] = []
    tables = dict(_by_table(search_space))
    groups = groups_of(together, tables)
    for table, options in tables.items():
        builder.add_table(table)
        own_group = groups.get(table)
        for option_label, option in _named(options if own_group is None else whole(table, options)):
            for label, group, tied in _copies(option, option_label, where, own_group):
                if marks.is_dynamic(option) and fusion == "honoured":
                    tied = marks.fusion(option)
                builder.add_option(label, blocks(option, where, rating, group), tied)
                choices.append(option)
    return Problem(builder.build(), tuple(choices))


def option_name(option: ShardingOption, columns: bool = True) -> str:
    """``sharding_type:column shards/kernel/load factor``; the middle part only where columns split.

    The Instance omits the number of column shards if a table's names are unique without it, as in
    the project's instance files. The load factor is written if the option sets one. dynamicemb
    tables: ``row_wise/mode/ratio``.
    """
    if marks.is_dynamic(option):
        return marks.label(option)
    cut = columns and option.sharding_type in BY_COLUMN
    shards = f":{len({shard.offset[1] for shard in option.shards})}" if cut else ""
    factor = option.cache_load_factor
    caching = option.compute_kernel.endswith("uvm_caching") and factor is not None
    ratio = f"/{factor:g}" if caching else ""
    return f"{option.sharding_type}{shards}/{option.compute_kernel}{ratio}"


def identity(option: ShardingOption) -> tuple[object, ...]:
    """The values that distinguish the options of a table, ranks aside."""
    return (
        option.fqn,
        option.sharding_type,
        option.compute_kernel,
        option.cache_load_factor,
        marks.caches(option),
        tuple((*shard.size, *shard.offset) for shard in option.shards),
    )


def _by_table(search_space: Sequence[ShardingOption]) -> Iterator[tuple[str, list[ShardingOption]]]:
    """Options of each table under its name, or under its full path if names repeat."""
    tables: dict[str, list[ShardingOption]] = {}
    for option in search_space:
        tables.setdefault(option.fqn, []).append(option)
    names = Counter(options[0].name for options in tables.values())
    for fqn, options in tables.items():
        name = options[0].name
        yield (name if names[name] == 1 else fqn), options


def _named(options: Sequence[ShardingOption]) -> list[tuple[str, ShardingOption]]:
    """Options under unique names, in a fixed order: TorchRec's order comes from hashed sets."""
    ordered = sorted(options, key=_order)
    short = [option_name(option, columns=False) for option in ordered]
    repeats = Counter(short)
    names = [
        brief if repeats[brief] == 1 else option_name(option)
        for brief, option in zip(short, ordered, strict=True)
    ]
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        seen[name] += 1
        names[index] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    return list(zip(names, ordered, strict=True))


def _order(option: ShardingOption) -> tuple[int, int, str, bool, float]:
    known = option.sharding_type in SHARDING_TYPES
    kind = SHARDING_TYPES.index(option.sharding_type) if known else len(SHARDING_TYPES)
    return (
        kind, len(option.shards), option.compute_kernel, marks.caches(option),
        option.cache_load_factor or 0.0,
    )  # fmt: skip


def _copies(
    option: ShardingOption, name: str, where: Places, own_group: int | None
) -> Iterator[tuple[str, tuple[int, ...] | None, tuple[str, int] | None]]:
    """Name, ranks and fusion of an option: once, or once for every place it can be bound to."""
    if own_group is not None:
        for rank in range(where.ranks):
            yield f"{name}@{rank}", (rank,), (f"together#{own_group}", rank)
        return
    on_machine = option.partition_by == "host"
    tied = option.dependency if on_machine else None
    if not on_machine or (tied is None and set(where.groups) <= set(where.machines)):
        yield name, None, None
        return
    for index, group in enumerate(where.groups):
        yield f"{name}@{index}", group, (f"together:{tied}", index) if tied else None
