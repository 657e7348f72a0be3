"""``price(model, cluster)``: enumerate every legal option and price it."""

from __future__ import annotations

from itertools import chain

import numpy as np

from milp_planner.errors import CHECK, BadInput, Problem
from milp_planner.inputs.cluster import Cluster, mismatches
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.pricing.bandwidth import bandwidths, hits_of
from milp_planner.pricing.columns import OptionColumns, ShardColumns, choice_code
from milp_planner.pricing.exchange import Links, links_of
from milp_planner.pricing.fusion import collectives_of, fusion_of, level_denominator
from milp_planner.pricing.job import Job, job_of
from milp_planner.pricing.limits import check_seconds, check_sizes, within_sums
from milp_planner.pricing.menu import Menu, menus_of, site_of
from milp_planner.pricing.options import Entries, Options
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.shards import exchanged_by, shard_bytes, shard_seconds
from milp_planner.pricing.split import offsets, shards_of
from milp_planner.pricing.units import IntArray, picoseconds


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
        When a constraint names a rank that is not there, a table has no legal option (the sentence
        says why), its sizes leave the integers an Instance allows, or the profile is unknown.
    """
    menus = _menus(model, cluster)
    profile = load_profile(cluster.profile) if profile is None else profile
    job = job_of(model, cluster, profile, links_of(cluster) if links is None else links)
    check_sizes(job)
    first = offsets([len(menu.choices) for menu in menus])
    choices = list(chain.from_iterable(menu.choices for menu in menus))
    columns = _option_columns(menus, first, job.ranks)
    entry_first, shards = shards_of(job, choices, columns)
    denominator = level_denominator(model)
    group, level, groups = fusion_of(model, choices, columns, denominator)
    collective, collectives = collectives_of(model, columns)
    options = Options(
        model=model,
        cluster=cluster,
        profile=profile,
        links=job.links,
        first=first,
        choices=choices,
        names=list(chain.from_iterable(menu.names for menu in menus)),
        group=group,
        level=level,
        groups=groups,
        level_denominator=denominator,
        collective=collective,
        collectives=collectives,
        entries=_price_entries(job, columns, entry_first, shards),
        refused={t.name: m.refused for t, m in zip(model.tables, menus, strict=True) if m.refused},
    )
    return within_sums(options)


def _menus(model: Model, cluster: Cluster) -> list[Menu]:
    """The menu of every table; every table that has none is told at once."""
    menus, wrong = menus_of(model, cluster), mismatches(model, cluster)
    for table, menu in zip(model.tables, menus, strict=True):
        if not menu.choices and table.name not in wrong:
            wrong[table.name] = Problem(_no_option(cluster, table, menu))
    if wrong:
        raise BadInput.of(list(wrong.values()), CHECK)
    return menus


def _no_option(cluster: Cluster, table: Table, menu: Menu) -> str:
    """Why a table cannot be placed at all, and what would be allowed."""
    kind = "dynamicemb tables are row_wise in HBM_ONLY, HYBRID, CACHING or HOST_ONLY"
    if table.kind == "torchrec":
        kind = "TorchRec tables take any sharding type in HBM_ONLY, CACHING or HOST_ONLY"
    if site_of(cluster).cpu_only:
        kind += "; without HBM only HOST_ONLY"
    reasons = f" ({'; '.join(menu.refused)})" if menu.refused else ""
    return (
        f"table {table.name!r} has no legal option on cluster {cluster.name!r}: its "
        f"constraints leave none{reasons}; allowed: {kind}"
    )


def _option_columns(menus: list[Menu], first: IntArray, ranks: int) -> OptionColumns:
    codes: dict[int, IntArray] = {}
    for menu in menus:
        if id(menu) not in codes:
            rows = [choice_code(choice, ranks) for choice in menu.choices]
            codes[id(menu)] = np.array(rows, dtype=np.int64).reshape(-1, 5)
    parts = [codes[id(menu)] for menu in menus] or [np.empty((0, 5), np.int64)]
    code = np.concatenate(parts)
    table = np.repeat(np.arange(len(menus)), np.diff(first))
    return OptionColumns(table, *(code[:, i].copy() for i in range(5)))


def _price_entries(
    job: Job, columns: OptionColumns, first: IntArray, shards: ShardColumns
) -> Entries:
    options = columns.at(shards.option)
    exchanged = exchanged_by(job, options, shards)
    sizes = shard_bytes(job, options, shards, exchanged)
    hits = hits_of(job, columns)
    bandwidth = bandwidths(job, columns, hits)[shards.option]
    missing = (1.0 - hits.unique) * columns.is_mode("CACHING") * job.traffic.distinct[columns.table]
    misses = (missing / columns.group_ranks)[shards.option]
    seconds = shard_seconds(job, options, shards, exchanged, bandwidth, misses)
    check_seconds(job, seconds, options.table)
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
