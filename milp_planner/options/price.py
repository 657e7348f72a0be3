"""``price(model, cluster)``: enumerate every legal option and price it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from milp_planner.costs.access import has_statistics, hit_ratios
from milp_planner.costs.exchange import Links, links_of
from milp_planner.costs.profile import Profile, load_profile
from milp_planner.costs.units import FloatArray, IntArray, picoseconds
from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.match import check_match
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.options.choice import WHOLE_ROWS, Choice
from milp_planner.options.columns import (
    OptionColumns,
    ShardColumns,
    TableColumns,
    choice_code,
    table_columns,
)
from milp_planner.options.fusion import group_name, level_denominator
from milp_planner.options.menu import Menu, Site, menu_of, order_of
from milp_planner.options.options import Entries, Options
from milp_planner.options.rows import RowSplit, dynamicemb_split, torchrec_split, whole
from milp_planner.options.shard_bytes import Exchanged, shard_bytes
from milp_planner.options.shard_seconds import bandwidths, shard_seconds
from milp_planner.options.traffic import Traffic, traffic_of


def price(
    model: Model, cluster: Cluster, profile: Profile | None = None, links: Links | None = None
) -> Options:
    """Every legal option of every table, with bytes and picoseconds of each of its shards.

    Parameters
    ----------
    model, cluster
    profile : Profile, optional
        Default: the one the cluster names.
    links : Links, optional
        Default: bottlenecks of the cluster's interconnect.

    Returns
    -------
    Options

    Raises
    ------
    BadInput
        When a constraint names a rank the cluster does not have, a table has no legal option (the
        sentence says why), or the profile is unknown.
    """
    check_match(model, cluster)
    profile = load_profile(cluster.profile) if profile is None else profile
    links = links_of(cluster) if links is None else links
    site = Site(cluster.machine_ranks, all(rank.hbm_bytes == 0 for rank in cluster.ranks))
    menus = _menus(model, cluster, site)
    tables = table_columns(model)
    first = _offsets([len(menu.choices) for menu in menus])
    choices = list(chain.from_iterable(menu.choices for menu in menus))
    columns = _option_columns(menus, first, site)
    traffic = traffic_of(model, site.ranks, _needs_distinct(model, profile))
    entry_first, shards = _shards(model, choices, columns, traffic, site)
    entries = _price_entries(
        _Job(model, cluster, profile, links, site, tables, traffic), columns, entry_first, shards
    )
    denominator = level_denominator(model)
    group, level, groups = _fusion(model, choices, columns.table, denominator)
    collective, collectives = _collectives(model, columns, choices)
    return Options(
        model=model,
        cluster=cluster,
        profile=profile,
        links=links,
        first=first,
        choices=choices,
        names=list(chain.from_iterable(menu.names for menu in menus)),
        group=group,
        level=level,
        groups=groups,
        level_denominator=denominator,
        collective=collective,
        collectives=collectives,
        entries=entries,
        refused={t.name: m.refused for t, m in zip(model.tables, menus, strict=True) if m.refused},
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """What the price of an entry depends on beside its own columns."""

    model: Model
    cluster: Cluster
    profile: Profile
    links: Links
    site: Site
    tables: TableColumns
    traffic: Traffic


def _menus(model: Model, cluster: Cluster, site: Site) -> list[Menu]:
    ratios = model.workload.cache_ratios
    fuses = model.workload.fusion == "honoured"
    menus = []
    for table in model.tables:
        menu = menu_of(order_of(table, ratios, fuses), site)
        if not menu.choices:
            raise BadInput(_no_option(table, cluster, site, menu))
        menus.append(menu)
    return menus


def _no_option(table: Table, cluster: Cluster, site: Site, menu: Menu) -> str:
    """Why a table cannot be placed at all, and what would be allowed."""
    kind = "dynamicemb tables are row_wise in HBM_ONLY, HYBRID, CACHING or HOST_ONLY"
    if table.kind == "torchrec":
        kind = "TorchRec tables take any sharding type in HBM_ONLY, CACHING or HOST_ONLY"
    if site.cpu_only:
        kind += "; without HBM only HOST_ONLY"
    reasons = f" ({'; '.join(menu.refused)})" if menu.refused else ""
    return (
        f"table {table.name!r} has no legal option on cluster {cluster.name!r}: its constraints "
        f"leave none{reasons}; allowed: {kind}"
    )


def _offsets(lengths: Sequence[int] | IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, dtype=np.int64)))).astype(np.int64)


def _option_columns(menus: list[Menu], first: IntArray, site: Site) -> OptionColumns:
    codes: dict[int, IntArray] = {}
    for menu in menus:
        if id(menu) not in codes:
            rows = [choice_code(choice, site.ranks) for choice in menu.choices]
            codes[id(menu)] = np.array(rows, dtype=np.int64).reshape(-1, 5)
    parts = [codes[id(menu)] for menu in menus] or [np.empty((0, 5), np.int64)]
    code = np.concatenate(parts)
    table = np.repeat(np.arange(len(menus)), np.diff(first))
    return OptionColumns(table, *(code[:, i].copy() for i in range(5)))


def _needs_distinct(model: Model, profile: Profile) -> bool:
    curves = (profile.caching, profile.hybrid, profile.uvm_caching)
    return model.workload.prefetch_pipeline or any(c.over == "batch_cover" for c in curves)


def _shards(
    model: Model,
    choices: list[Choice],
    columns: OptionColumns,
    traffic: Traffic,
    site: Site,
) -> tuple[IntArray, ShardColumns]:
    """Cut every option into runs of equal shards."""
    splits, which = _splits(model, choices, columns, traffic, site)
    lengths = np.array([len(split.rows) for split in splits], dtype=np.int64)
    starts = _offsets(lengths)
    dims = np.array([t.dim for t in model.tables], dtype=np.int64)[columns.table]
    width = np.array([c.width for c in choices], dtype=np.int64)
    count = np.array([c.columns for c in choices], dtype=np.int64)
    pinned = np.array([c.pinned is not None for c in choices], dtype=np.bool_)
    by_columns = columns.is_sharding(*WHOLE_ROWS)
    last = dims - width * (count - 1)
    uneven = by_columns & (last != width)
    times = np.where(by_columns & pinned, count, np.where(uneven, 2, lengths[which]))
    first = _offsets(times)
    option = np.repeat(np.arange(len(choices)), times)
    inside = np.arange(len(option)) - first[option]
    source = starts[which[option]] + np.where(by_columns[option], 0, inside)
    repeat, rows, load = (_gather(splits, i)[source] for i in range(3))
    final = inside == times[option] - 1
    cols = np.where(final & uneven[option], last[option], width[option])
    runs = np.where(final | pinned[option], 1, count[option] - 1)
    repeat = np.where(uneven[option], runs, repeat)
    repeat = np.where(times[option] == 1, 1, repeat)
    return first, ShardColumns(option, repeat, rows, cols, load.astype(np.float64))


def _gather(splits: list[RowSplit], field: int) -> IntArray:
    if not splits:
        return np.empty(0, np.int64)
    return np.concatenate([split[field] for split in splits])


def _splits(
    model: Model,
    choices: list[Choice],
    columns: OptionColumns,
    traffic: Traffic,
    site: Site,
) -> tuple[list[RowSplit], IntArray]:
    """Row splits, each computed once, and which one every option uses."""
    splits: list[RowSplit] = []
    known: dict[tuple[int, int, str | None], int] = {}
    which = np.empty(len(choices), dtype=np.int64)
    table_of, group_ranks = columns.table.tolist(), columns.group_ranks.tolist()
    for option, choice in enumerate(choices):
        key = (table_of[option], group_ranks[option], choice.dist_type)
        index = known.get(key)
        if index is None:
            index = known[key] = len(splits)
            splits.append(_split(model.tables[key[0]], key[1], key[2], traffic, key[0]))
        which[option] = index
    return splits, which


def _split(
    table: Table, ranks: int, dist_type: str | None, traffic: Traffic, index: int
) -> RowSplit:
    lookups = float(traffic.dedup_lookups[index])
    if dist_type is not None:
        return dynamicemb_split(table, ranks, dist_type, lookups)
    return whole(table) if ranks == 1 else torchrec_split(table, ranks, lookups)


def _exchanged(
    job: _Job, options: OptionColumns, shards: ShardColumns, table: IntArray
) -> Exchanged:
    """Ids a shard receives and embeddings it returns, in one step of all ranks."""
    ranks, traffic, pooled = job.site.ranks, job.traffic, job.tables.pooled[table]
    replicated = options.is_sharding("data_parallel")
    senders = np.where(replicated, 1.0, ranks / options.group_ranks)
    ids = traffic.ids[table] * senders * shards.load
    plain = traffic.raw_ids[table] * senders
    bags = traffic.outputs[table] * np.where(replicated, 1, ranks)
    return Exchanged(ids, np.where(pooled, bags, ids), plain, np.where(pooled, bags, plain))


def _price_entries(
    job: _Job, columns: OptionColumns, first: IntArray, shards: ShardColumns
) -> Entries:
    workload, tables = job.model.workload, job.tables
    options = columns.at(shards.option)
    exchanged = _exchanged(job, options, shards, options.table)
    sizes = shard_bytes(
        tables, options, shards, exchanged, workload, job.site.ranks, job.site.cpu_only
    )
    hits, cover, known = _hits(job, columns)
    bandwidth = bandwidths(
        tables, columns, hits, cover, known, job.profile, workload.prefetch_pipeline,
        job.site.cpu_only,
    )  # fmt: skip
    missing = (1.0 - hits) * columns.is_mode("CACHING") * job.traffic.distinct[columns.table]
    misses = (missing / columns.group_ranks)[shards.option]
    seconds = shard_seconds(
        tables, options, shards, exchanged, job.traffic, bandwidth[shards.option], misses,
        workload, job.profile, job.links,
    )  # fmt: skip
    return Entries(
        first=first,
        repeat=shards.repeat,
        rows=shards.rows,
        columns=shards.columns,
        hbm=sizes.hbm,
        buffer=sizes.buffer,
        ddr=sizes.ddr,
        cost=picoseconds(seconds),
        move=sizes.move,
    )


def _hits(job: _Job, columns: OptionColumns) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Hit ratio, batch cover and whether statistics exist, of every option."""
    tables = job.model.tables
    ratio = columns.over / columns.under
    distinct = np.maximum(job.traffic.distinct, 1.0)
    cover = ratio * (job.tables.rows / distinct)[columns.table]
    stats = np.array([has_statistics(t.access) for t in tables], dtype=np.bool_)
    known, hits = stats[columns.table], ratio.copy()
    starts = np.searchsorted(columns.table, np.arange(len(tables) + 1))
    tiered = columns.is_mode("CACHING") | columns.is_mode("HYBRID")
    for index in np.flatnonzero(stats):
        span = slice(starts[index], starts[index + 1])
        if not tiered[span].any():
            continue
        table = tables[index]
        frequency = table.kind == "dynamicemb" and table.score_strategy == "lfu"
        distinct_ratios, back = np.unique(ratio[span], return_inverse=True)
        hits[span] = hit_ratios(table.access, table.rows, distinct_ratios, frequency)[back]
    return hits, cover, known


def _fusion(
    model: Model, choices: list[Choice], table: IntArray, denominator: int
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    group = np.full(len(choices), -1, dtype=np.int64)
    level = np.zeros(len(choices), dtype=np.int64)
    groups: dict[str, int] = {}
    names: dict[tuple[int, str, bool], int] = {}
    training = model.workload.mode == "training"
    for option, choice in enumerate(choices):
        if choice.caching_group is None or choice.dist_type is None:
            continue
        key = (int(table[option]), choice.dist_type, choice.caching_group)
        if key not in names:
            name = group_name(model.tables[key[0]], training, key[1], key[2])
            names[key] = groups.setdefault(name, len(groups))
        group[option] = names[key]
        level[option] = int(choice.ratio * denominator)
    return group, level, tuple(groups)


def _collectives(
    model: Model, columns: OptionColumns, choices: list[Choice]
) -> tuple[IntArray, tuple[str, ...]]:
    """The exchange an option's buffers take part in: one a sharding type and kind of output."""
    result = np.full(len(choices), -1, dtype=np.int64)
    names: dict[str, int] = {}
    kinds = [f"{t.kind}/{t.output}" for t in model.tables]
    for option, (choice, table) in enumerate(zip(choices, columns.table.tolist(), strict=True)):
        if choice.sharding != "data_parallel":
            name = f"{kinds[table]}/{choice.sharding}"
            result[option] = names.setdefault(name, len(names))
    return result, tuple(names)
