"""Which choices are legal for a table on a cluster, and why the others are not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.interconnect import runs_of
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import (
    COLUMN_STEP,
    L1_RATIOS,
    LARGEST_L1,
    Constraints,
    DistType,
    Mode,
    ShardingType,
    Table,
)
from milp_planner.pricing import hugectr
from milp_planner.pricing.options import BY_MACHINE, SHARDING_TYPES, TIERED, WHOLE_ROWS, Choice
from milp_planner.pricing.storage import KEY_VALUE_OPTIMIZERS

LEAST_WIDTH = 32
"""Narrowest column shard offered by default: narrower rows are no cheaper to read."""


def column_cuts(dim: int, allowed: tuple[int, ...] | None) -> Iterator[tuple[int, int]]:
    """Legal cuts of a table into columns, as (width, shards), two shards or more.

    Widths are multiples of 4. If ``allowed`` lists widths, cuts have those, and the last shard
    takes the remaining columns. Otherwise, for every number of shards that divides the columns or
    is a power of two, there is the most even cut whose width is at least 32.
    """
    if allowed is not None:
        for width in sorted(set(allowed), reverse=True):
            if width < dim and width % COLUMN_STEP == 0:
                yield width, math.ceil(dim / width)
        return
    for shards in range(2, dim // LEAST_WIDTH + 1):
        if dim % shards and shards & (shards - 1):
            continue
        width = math.ceil(dim / shards / COLUMN_STEP) * COLUMN_STEP
        if width >= LEAST_WIDTH and math.ceil(dim / width) == shards:
            yield width, shards


def is_even(dim: int, width: int, shards: int) -> bool:
    """Whether no narrower legal width gives as many shards."""
    return width == math.ceil(dim / shards / COLUMN_STEP) * COLUMN_STEP


SEQUENCE_TYPES: tuple[ShardingType, ...] = (
    "data_parallel",
    "table_wise",
    "column_wise",
    "row_wise",
)
"""Sharding types of TorchRec 1.8.0's EmbeddingCollectionSharder."""
VIRTUAL_TYPES: tuple[ShardingType, ...] = ("table_wise", "row_wise", "table_row_wise")
"""Sharding types that support virtual tables in TorchRec 1.9.2 (``sharding/``)."""


@dataclass(frozen=True)
class Site:
    """The properties of a cluster that decide which choices are legal."""

    machine_ranks: tuple[tuple[int, ...], ...]
    """Ranks of each machine."""
    cpu_only: bool
    """Whether no rank has HBM: everything then lives in DDR."""
    has_ssd: bool = False
    """Whether any machine has SSD."""
    span: int = 1
    """Machines over which table-row-wise and grid shards split rows."""
    replicated: bool = False
    """Whether other sharding groups hold copies of the same tables."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return sum(map(len, self.machine_ranks))

    @property
    def row_groups(self) -> tuple[tuple[int, ...], ...]:
        """Ranks of each run of ``span`` machines."""
        return runs_of(self.machine_ranks, self.span)


def site_of(cluster: Cluster) -> Site:
    """The site of a cluster."""
    replicated = cluster.replicas > 1
    return Site(cluster.machine_ranks, cluster.cpu_only, cluster.has_ssd, cluster.span, replicated)


@dataclass(frozen=True)
class Enumeration:
    """Legal choices of a table, and a sentence for every family of choices that is not offered."""

    choices: tuple[Choice, ...]
    names: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class TableTraits:
    """The properties of a table that decide which choices are legal.

    Tables with equal traits share one enumeration.
    """

    kind: str
    output: str
    dim: int
    constraints: Constraints
    ratios: tuple[Fraction, ...]
    dist_types: tuple[DistType, ...]
    fuses: bool
    virtual: bool
    l1_ratios: tuple[Fraction, ...]
    """Cache ratios in a key-value store; empty if the table cannot be in one."""
    no_store: str
    """Why the table cannot be in a key-value store; empty if it can."""
    replicated: bool = False
    """HugeCTR: data-parallel because the table is among the smallest."""
    by_machine: bool = False
    """HugeCTR: placed on whole machines."""
    stash: tuple[bool, ...] = (False,)
    """Whether weights leave HBM between forward and backward (True), stay (False), or both are
    offered."""


def traits_of(
    table: Table,
    ratios: tuple[Fraction, ...],
    fuses: bool,
    l1_ratios: tuple[Fraction, ...] = L1_RATIOS,
    trains: bool = True,
    replicated: bool = False,
    by_machine: bool = False,
) -> TableTraits:
    """The traits of a table.

    ``ratios`` and ``l1_ratios`` are the workload's grids; the table's own constraint takes
    precedence.
    """
    no_store = _no_store(table, trains)
    own = table.constraints.cache_ratios
    if own:
        l1_ratios = tuple(ratio for ratio in own if ratio <= LARGEST_L1)
    return TableTraits(
        kind=table.kind,
        output=table.output,
        dim=table.dim,
        constraints=table.constraints,
        ratios=table.constraints.cache_ratios or ratios,
        dist_types=tuple(dict.fromkeys(table.dist_types)) if table.kind == "dynamicemb" else (),
        fuses=fuses and table.kind == "dynamicemb",
        virtual=table.key_value.virtual,
        l1_ratios=() if no_store else l1_ratios,
        no_store=no_store,
        replicated=replicated,
        by_machine=by_machine,
    )


def _stash(table: Table, offered: bool) -> tuple[bool, ...]:
    """Values of ``stash`` to offer; none if the table must be stashed and cannot be."""
    wanted = table.constraints.stash
    possible = offered and table.kind == "torchrec" and not table.key_value.virtual
    twins = {"allow": (False, True), "always": (True,), "never": (False,)}[wanted]
    return tuple(each for each in twins if possible or not each)


def _no_store(table: Table, trains: bool) -> str:
    """Why a table cannot be in a key-value store; empty if it can."""
    if table.kind == "dynamicemb":
        return "dynamicemb tables have stores of their own"
    if table.kind == "hugectr":
        return "HugeCTR's tables are in HBM"
    if table.dtype not in ("fp32", "fp16"):
        return f"FBGEMM's key-value kernels hold fp32 and fp16, not {table.dtype}"
    if trains and table.optimizer not in KEY_VALUE_OPTIMIZERS:
        return (
            "FBGEMM's key-value kernels have rowwise_adagrad, adam and partial_rowwise_adam, not "
            f"{table.optimizer}"
        )
    if all(ratio > LARGEST_L1 for ratio in table.constraints.cache_ratios or (LARGEST_L1,)):
        return f"all its cache ratios exceed {LARGEST_L1}, the most that FBGEMM's cache allows"
    return ""


def enumerations_of(model: Model, cluster: Cluster) -> list[Enumeration]:
    """The enumeration of every table of a model."""
    workload, site = model.workload, site_of(cluster)
    fuses, of_hugectr = workload.fusion == "honoured", hugectr.traits(model)
    ratios = workload.cache_ratios, fuses, workload.l1_ratios, workload.trains
    window = workload.stash_window_ms is not None and workload.storage_model == "runtime"
    traits = [
        replace(traits_of(t, *ratios, *of_hugectr(t)), stash=_stash(t, window and workload.trains))
        for t in model.tables
    ]
    return [enumeration_of(each, site) for each in traits]


@lru_cache(maxsize=4096)
def enumeration_of(traits: TableTraits, site: Site) -> Enumeration:
    """All legal choices, in a fixed order.

    A choice is legal if its sharding type and mode suit the kind of table, the cluster has the
    machines and ranks for it, and the table's constraints allow it. Of two names for the same
    placement only one is offered: on a single machine table_row_wise equals row_wise and
    table_column_wise equals column_wise, so the former are offered only if the constraints do not
    allow the latter. The same holds for table_row_wise if a single row group is the whole cluster.
    """
    refused: list[str] = []
    shapes = list(_shapes(traits, site, refused))
    choices = [  # data-parallel tables are dense, in HBM (DDR on CPUs), as their shape says
        replace(shape, **fields)
        for shape in shapes
        for fields in _mode_fields(traits, site)
        if shape.sharding != "data_parallel"
        or (fields["mode"] == shape.mode and not fields["stash"])
    ]
    choices = [choice for choice in choices if _pin_allows(traits.constraints, choice)]
    refused += _without_store(traits, site)
    if traits.constraints.stash == "always" and not any(choice.stash for choice in choices):
        refused.append(f"stash: {NO_STASH}")
    if shapes and not choices:
        refused.append("no allowed mode goes with the allowed sharding types")
    return Enumeration(tuple(choices), tuple(choice.name for choice in choices), tuple(refused))


def _mode_fields(traits: TableTraits, site: Site) -> Iterator[dict[str, Any]]:
    """Mode, ratio, routing and fusion group, as fields of a choice."""
    for mode, ratio in _modes(traits, site):
        for dist_type in traits.dist_types or (None,):
            for group in _groups(traits, mode):
                for stash in traits.stash:
                    if not stash or (mode == "HBM_ONLY" and not site.replicated):
                        yield {
                            "mode": mode, "ratio": ratio, "dist_type": dist_type,
                            "caching_group": group, "stash": stash,
                        }  # fmt: skip


NO_STASH = (
    "it needs stash_window_ms in the workload, training, HBM, a single sharding group, and a "
    "TorchRec table in HBM_ONLY that is not data_parallel"
)
"""Why a table that must be stashed cannot be."""
UNSYNCED = {
    "HYBRID": "TorchRec's tables have no such mode",
    "CACHING": "2D's sync() averages rows in host memory and misses what a cache has changed",
    "SSD": "2D's sync() averages no rows on SSD",
}
"""Why modes with two tiers are not offered if sharding groups are averaged."""


def _without_store(traits: TableTraits, site: Site) -> Iterator[str]:
    """Why SSD is not offered although requested; why a virtual table has no option."""
    if site.replicated and traits.constraints.modes is not None:
        for mode in set(traits.constraints.modes) & {*TIERED}:
            yield f"{mode}: {UNSYNCED[mode]}"
        return
    if not traits.virtual and "SSD" not in (traits.constraints.modes or ()):
        return
    if traits.no_store:
        yield f"{'virtual tables' if traits.virtual else 'SSD'}: {traits.no_store}"
    elif site.cpu_only:
        yield "key-value kernels need HBM for their cache"
    elif not site.has_ssd:
        yield "SSD: no machine of the cluster has any (ssd: {size: …, bandwidth: …})"


def _modes(traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
    """Modes with their ratios; SSD only if a machine has it, virtual tables only in a store."""
    allowed = traits.constraints.modes
    on_ssd = traits.l1_ratios if site.has_ssd else ()
    if traits.virtual:
        stored: list[tuple[Mode, Iterable[Fraction]]] = [
            ("CACHING", traits.l1_ratios), ("SSD", on_ssd)
        ]  # fmt: skip
        for mode, ratios in stored:
            if not site.cpu_only and (allowed is None or mode in allowed):
                yield from ((mode, ratio) for ratio in ratios)
        return
    tiered: tuple[Mode, ...] = ("CACHING",)
    if traits.kind == "dynamicemb":
        tiered = ("HYBRID", "CACHING")
    listed: list[tuple[Mode, Iterable[Fraction]]] = [
        ("HBM_ONLY", [Fraction(1)]),
        *((mode, traits.ratios) for mode in tiered),
        ("HOST_ONLY", [Fraction(0)]),
        ("SSD", on_ssd),
    ]
    for each, grid in listed:
        if site.cpu_only and each != "HOST_ONLY":
            continue
        if site.replicated and each in TIERED:
            continue
        if traits.kind == "hugectr" and each != "HBM_ONLY":
            continue
        if allowed is None or each in allowed:
            yield from ((each, ratio) for ratio in grid)


def _groups(traits: TableTraits, mode: Mode) -> tuple[bool | None, ...]:
    """Fusion groups that a mode may join; HBM_ONLY may join either of the two."""
    if not traits.fuses:
        return (None,)
    return {"HBM_ONLY": (False, True), "CACHING": (True,)}.get(mode, (False,))


def _shapes(traits: TableTraits, site: Site, refused: list[str]) -> Iterator[Choice]:
    """Sharding types with their cuts and places, in any mode."""
    legal, why = _legal(traits)
    allowed = traits.constraints.sharding_types
    for sharding in SHARDING_TYPES:
        if allowed is not None and sharding not in allowed:
            continue
        if sharding not in legal:
            if allowed is not None:
                refused.append(f"{sharding}: {why}")
            continue
        reason = None if traits.kind == "hugectr" else _impossible(sharding, site, allowed)
        if reason:
            refused.append(f"{sharding}: {reason}")
            continue
        found = list(_placed(sharding, traits, site))
        if not found:
            refused.append(f"{sharding}: {_no_shape(sharding, traits)}")
        yield from found


def _legal(traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
    """Sharding types that a kind of table can have at all, and why it can have no others."""
    if traits.kind == "dynamicemb":
        return ("row_wise",), "dynamicemb tables are sharded row_wise only"
    if traits.kind == "hugectr":
        return hugectr.legal(traits.constraints, traits.replicated, traits.by_machine)
    if traits.virtual:
        legal = tuple(t for t in VIRTUAL_TYPES if traits.output == "pooled" or t in SEQUENCE_TYPES)
        return legal, f"virtual tables are sharded {', '.join(legal)} only"
    if traits.output == "sequence":
        return SEQUENCE_TYPES, (
            "TorchRec's EmbeddingCollection (sequence output) is sharded "
            f"{', '.join(SEQUENCE_TYPES)} only"
        )
    return SHARDING_TYPES, ""


def _impossible(sharding: str, site: Site, allowed: tuple[str, ...] | None) -> str | None:
    machines, groups = len(site.machine_ranks), len(site.row_groups)
    if sharding == "grid_shard" and groups < 2:
        of = "machines" if machines == groups else f"groups of {machines} machines"
        return f"needs two {of} or more"
    same = {"table_row_wise": "row_wise", "table_column_wise": "column_wise"}.get(sharding)
    alone = (groups if sharding == "table_row_wise" else machines) == 1
    if alone and same and (allowed is None or same in allowed):
        where = "a single machine" if machines == 1 else "a single group of machines"
        return f"the same placement as {same} on {where}"
    return None


def _no_shape(sharding: str, traits: TableTraits) -> str:
    if traits.kind == "hugectr":
        places = "machines of equal size" if traits.by_machine else "ranks"
        return f"{traits.dim} columns cannot be cut this way on the allowed {places}"
    if traits.constraints.ranks or traits.constraints.pin:
        return "none of its placements lies on the ranks that the constraints allow"
    return (
        f"{traits.dim} columns cannot be cut into shards of a multiple of {COLUMN_STEP} columns "
        f"({LEAST_WIDTH} or more unless column_widths says otherwise) that the ranks can take"
    )


def _placed(sharding: ShardingType, traits: TableTraits, site: Site) -> Iterator[Choice]:
    """Every cut of one sharding type, restricted to the ranks that the constraints allow."""
    mode: Mode = "HOST_ONLY" if site.cpu_only else "HBM_ONLY"
    base = Choice(sharding, mode, Fraction(1), traits.dim)
    if traits.kind == "hugectr":
        machines = site.machine_ranks
        yield from hugectr.shapes(base, traits.constraints, machines, traits.by_machine)
        return
    for shape in _cut(base, traits, site):
        placed = _on_allowed_ranks(shape, traits.constraints, site)
        if placed is not None:
            yield placed


def _cut(base: Choice, traits: TableTraits, site: Site) -> Iterator[Choice]:
    sharding, sizes = base.sharding, sorted({len(ranks) for ranks in site.machine_ranks})
    if sharding in ("data_parallel", "table_wise", "row_wise"):
        yield base
        return
    most = {"column_wise": site.ranks, "table_column_wise": sizes[-1]}.get(sharding, 0)
    cuts = list(column_cuts(traits.dim, traits.constraints.column_widths))
    if sharding in WHOLE_ROWS:
        for width, shards in cuts:
            if shards <= most:
                yield replace(
                    base, width=width, columns=shards, even=is_even(traits.dim, width, shards)
                )
        return
    if len(site.row_groups) < len(site.machine_ranks):
        yield from _over_groups(base, traits, site, cuts)
        return
    for size in sizes:
        members = tuple(i for i, r in enumerate(site.machine_ranks) if len(r) == size)
        place = replace(base, machine_ranks=size, machines=members if len(sizes) > 1 else None)
        if sharding == "table_row_wise":
            yield place
            continue
        for width, shards in cuts:
            if shards <= len(members) and traits.dim % width == 0:
                yield replace(place, width=width, columns=shards)


MOST_GROUPINGS = 64
"""Most sets of row groups offered for a grid cut; beyond, only sets of consecutive groups are."""


def _over_groups(
    base: Choice, traits: TableTraits, site: Site, cuts: list[tuple[int, int]]
) -> Iterator[Choice]:
    """Row splits over several machines: one option for every row group, or set of row groups.

    An Instance has no kind of place for a group of machines, so the options list ranks.
    """
    shapes = [(traits.dim, 1)]
    if base.sharding == "grid_shard":
        shapes = [(width, shards) for width, shards in cuts if traits.dim % width == 0]
    by_size: dict[int, list[int]] = {}
    for index, ranks in enumerate(site.row_groups):
        by_size.setdefault(len(ranks), []).append(index)
    for size, groups in by_size.items():
        for width, shards in shapes:
            for chosen in _sets(groups, shards):
                members = tuple(rank for group in chosen for rank in site.row_groups[group])
                yield replace(
                    base, width=width, columns=shards, machine_ranks=size, groups=chosen,
                    members=members,
                )  # fmt: skip


def _sets(groups: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    if math.comb(len(groups), size) <= MOST_GROUPINGS:
        yield from combinations(groups, size)
        return
    for first in range(0, len(groups) - size + 1, size):
        yield tuple(groups[first : first + size])


def _on_allowed_ranks(shape: Choice, limits: Constraints, site: Site) -> Choice | None:
    pinned = limits.pin.ranks if limits.pin is not None else None
    allowed = limits.ranks if pinned is None else tuple(dict.fromkeys(pinned))
    if allowed is None:
        return shape
    if any(rank >= site.ranks for rank in allowed):
        return None
    if shape.sharding in ("row_wise", "data_parallel"):
        return shape if len(set(allowed)) == site.ranks else None
    if shape.members is not None:
        inside = set(shape.members) <= set(allowed)
        return shape if inside and (pinned is None or len(allowed) == len(shape.members)) else None
    if shape.sharding in BY_MACHINE or (shape.sharding == "table_column_wise" and pinned is None):
        return _on_whole_machines(shape, allowed, site, pinned is not None)
    if pinned is None:
        return replace(shape, ranks=tuple(sorted(set(allowed))))
    if len(pinned) != shape.columns:
        return None
    if shape.sharding == "table_column_wise" and not _one_machine(pinned, site):
        return None
    return replace(shape, pinned=tuple(pinned))


def _on_whole_machines(
    shape: Choice, allowed: tuple[int, ...], site: Site, exactly: bool
) -> Choice | None:
    """Restrict to machines all of whose ranks are allowed; a pin must name exactly as many."""
    inside = [i for i, ranks in enumerate(site.machine_ranks) if set(ranks) <= set(allowed)]
    if shape.machines is not None:
        inside = [i for i in inside if i in shape.machines]
    need = shape.columns if shape.sharding in BY_MACHINE else 1
    if len(inside) < need or (exactly and len(allowed) != need * shape.machine_ranks):
        return None
    return replace(shape, machines=tuple(inside))


def _one_machine(ranks: tuple[int, ...], site: Site) -> bool:
    return any(set(ranks) <= set(machine) for machine in site.machine_ranks)


def _pin_allows(limits: Constraints, choice: Choice) -> bool:
    """Whether a choice matches the pin; column shards on SSD must be pinned to different ranks."""
    pin = limits.pin
    if pin is None:
        return True
    if choice.mode == "SSD" and len(set(choice.pinned or ())) < len(choice.pinned or ()):
        return False
    wanted = (
        (pin.mode, choice.mode),
        (pin.sharding_type, choice.sharding),
        (pin.cache_ratio, choice.ratio),
        (pin.dist_type, choice.dist_type),
        (pin.column_width, choice.width),
        (pin.stash, choice.stash),
    )
    return all(want is None or want == have for want, have in wanted)
