"""``price(model, cluster)``: enumerate every legal option and price it."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np

from formulations.instance import MAX_ACTIVITY, MAX_VALUE
from milp_planner.errors import CHECK, BadInput, Problem
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import mismatches
from milp_planner.inputs.model import Model
from milp_planner.inputs.sharding_group import group_of, unsynced
from milp_planner.inputs.table import Table
from milp_planner.pricing.buffers import exchanged_by
from milp_planner.pricing.entries import UPDATE
from milp_planner.pricing.enumeration import Enumeration, enumerations_of
from milp_planner.pricing.exchange import Links, links_of
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, job_of, option_columns
from milp_planner.pricing.law import shard_seconds
from milp_planner.pricing.lookup import hits_of
from milp_planner.pricing.measured_links import measured_links
from milp_planner.pricing.options import (
    Entries,
    Options,
    collectives_of,
    fusion_of,
    level_denominator,
)
from milp_planner.pricing.outside import capacities
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.replicas import sync_seconds
from milp_planner.pricing.runtimes.registry import home
from milp_planner.pricing.shards import offsets, shard_bytes, shards_of
from milp_planner.pricing.site import site_of
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, picoseconds


def price(
    model: Model, cluster: Cluster, profile: Profile | None = None, links: Links | None = None
) -> Options:
    """Every legal option of every table, with bytes and picoseconds of each of its shards.

    Profile and links default to the cluster's own; for a divided cluster, those of one sharding
    group. BadInput if there are no tables, a constraint names a rank that does not exist, a table
    has no legal option (the message says why), sizes exceed the integers that an Instance allows,
    or the profile is unknown.
    """
    if not model.tables:
        raise BadInput(f"{model.name}: tables: found none, so there is nothing to place")
    cluster = group_of(cluster)
    _check_stash(model, cluster)
    enumerations = _enumerations(model, cluster)
    profile = load_profile(cluster.profile) if profile is None else profile
    job = job_of(model, cluster, profile, links_of(cluster) if links is None else links)
    if links is None and profile.collectives is not None:
        job = replace(job, links=measured_links(job, profile.collectives))
    check_sizes(job)
    first = offsets([len(legal.choices) for legal in enumerations])
    choices = list(chain.from_iterable(legal.choices for legal in enumerations))
    columns = option_columns(choices, job.ranks, _owners(first))
    entry_first, shards = shards_of(job, choices, columns)
    denominator = level_denominator(model)
    group, level, groups = fusion_of(model, job.ranks, choices, columns, denominator)
    collective, collectives = collectives_of(model, columns)
    options = Options(
        model=model,
        cluster=cluster,
        profile=profile,
        links=job.links,
        first=first,
        choices=choices,
        names=list(chain.from_iterable(legal.names for legal in enumerations)),
        group=group,
        level=level,
        groups=groups,
        level_denominator=denominator,
        collective=collective,
        collectives=collectives,
        entries=_price_entries(job, columns, entry_first, shards),
        refused={
            table.name: legal.refused
            for table, legal in zip(model.tables, enumerations, strict=True)
            if legal.refused
        },
    )
    return within_sums(options)


def _check_stash(model: Model, cluster: Cluster) -> None:
    """Refuse stashing that would free no counted memory."""
    if model.workload.stash_window_ms is None or cluster.reservations.activations:
        return
    raise BadInput(
        "workload.stash_window_ms: stashed weights leave HBM in the dense part, but cluster "
        f"{cluster.name} reserves nothing for it alone; needed: reservations.activations, the "
        "memory of the dense part between forward and backward exchange"
    )


def _enumerations(model: Model, cluster: Cluster) -> list[Enumeration]:
    """The enumeration of every table; all tables without an option are reported at once."""
    enumerations = enumerations_of(model, cluster)
    wrong = mismatches(model, cluster) | unsynced(model, cluster)
    for table, legal in zip(model.tables, enumerations, strict=True):
        if not legal.choices and table.name not in wrong:
            wrong[table.name] = Problem(_no_option(cluster, table, legal))
    if wrong:
        raise BadInput.of(list(wrong.values()), CHECK)
    return enumerations


def _no_option(cluster: Cluster, table: Table, legal: Enumeration) -> str:
    """Why a table cannot be placed at all, and what would be allowed."""
    runtime = home(table.kind, table.key_value.virtual)
    allowed = runtime.allowed
    if site_of(cluster).cpu_only and "HOST_ONLY" in allowed:
        allowed += "; without HBM only HOST_ONLY"
    reasons = f" ({'; '.join(legal.refused)})" if legal.refused else ""
    return (
        f"table {table.name!r} has no legal option on cluster {cluster.name!r}: its "
        f"constraints leave none{reasons}; allowed: {allowed}"
    )


def _price_entries(
    job: Job, columns: OptionColumns, first: IntArray, shards: ShardColumns
) -> Entries:
    options = columns.at(shards.option)
    exchanged = exchanged_by(job, options, shards)
    sizes = shard_bytes(job, options, shards, exchanged)
    hits = hits_of(job, columns).at(shards.option)
    seconds, ssd_step = shard_seconds(job, options, shards, exchanged, hits)
    if job.cluster.replicas > 1:
        seconds = np.column_stack([seconds, sync_seconds(job, options, shards)])
    check_seconds(job, seconds, options.table)
    return Entries(
        first=first,
        repeat=shards.repeat,
        rows=shards.rows,
        columns=shards.columns,
        cost=picoseconds(seconds),
        ssd_step=ssd_step,
        **sizes._asdict(),
    )


def check_sizes(job: Job) -> None:
    """Refuse tables whose bytes could exceed 2^53, before any integer arithmetic on them."""
    tables, workload = job.tables, job.workload
    stored = np.zeros(len(tables.rows))
    for kind in {table.kind for table in job.model.tables}:
        own = np.array([table.kind == kind for table in job.model.tables])
        stored = np.where(own, home(kind).most_bytes(tables, job.ranks), stored)
    width = 8.0 + tables.dim * np.maximum(tables.element, 4) * (workload.codec_peak_factor or 2.5)
    moved = job.traffic.raw_ids * job.ranks * width
    problems: list[Problem] = []
    for what, amount in (
        ("rows and optimizer state", stored),
        ("admission counter", tables.counter.astype(np.float64)),
        ("exchange of one step", moved),
    ):
        problems += [
            Problem(
                f"table {job.model.tables[index].name!r}: its {what} would take "
                f"{amount[index]:.3g} bytes; allowed: below 2^53 (9e15)"
            )
            for index in np.flatnonzero(amount >= MAX_VALUE)
        ]
    if problems:
        raise BadInput.of(problems, CHECK)


def check_seconds(job: Job, seconds: FloatArray, table: IntArray) -> None:
    """Refuse a shard that would take 2^53 picoseconds (two and a half hours) or more."""
    if not len(seconds):
        return
    worst = int(np.argmax(seconds.max(axis=1)))
    slowest = float(seconds[worst].max())
    if slowest * 1e12 >= MAX_VALUE:
        name = job.model.tables[int(table[worst])].name
        raise BadInput(
            f"table {name!r}: one step of a shard would take {slowest:.3g} seconds; "
            "allowed: below 2^53 picoseconds (9007 seconds)"
        )


def within_sums(options: Options) -> Options:
    """The options, less those that fit nowhere if the sums of an Instance would exceed 2^62.

    Small problems keep every option: a plan under audit may use one that does not fit. BadInput if
    the sums are still too large.
    """
    if _largest_sum(options) < MAX_ACTIVITY:
        return options
    kept = select(options, fits_somewhere(options))
    if _largest_sum(kept) >= MAX_ACTIVITY:
        raise BadInput(
            f"model {options.model.name!r} on {options.cluster.num_ranks} ranks: bytes or "
            "picoseconds add up beyond 2^62; plan fewer tables or ranks at a time"
        )
    return kept


def fits_somewhere(options: Options) -> BoolArray:
    """Whether each option fits on an empty cluster, shard by shard; bool array [options].

    A shard must fit the largest rank and the largest machine (row-wise and replicated shards the
    smallest). If none of a table's options fits, all are kept, so that the answer is an infeasible
    plan and not a missing table.
    """
    entries, cluster = options.entries, options.cluster
    hbm, ddr = capacities(options.model, cluster)[UPDATE], cluster.usable_ddr(options.model)
    everywhere = np.array([c.sharding in ("row_wise", "data_parallel") for c in options.choices])
    option = _owners(entries.first)
    limit = np.where(everywhere[option], min(hbm), max(hbm))
    room = np.where(everywhere[option], min(ddr), max(ddr))
    drives = cluster.usable_ssd()
    live = np.where(everywhere[option], min(drives), max(drives))
    bad = (entries.hbm > limit) | (entries.ddr > room) | (entries.ssd > live)
    fits = ~np.logical_or.reduceat(bad, entries.first[:-1])
    stuck = ~np.logical_or.reduceat(fits, options.first[:-1])
    return fits | stuck[_owners(options.first)]


def _owners(first: IntArray) -> IntArray:
    """Which run each place of runs that begin at ``first`` belongs to."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def select(options: Options, keep: BoolArray) -> Options:
    """Only the options of a mask; ``refused`` counts those dropped."""
    table, rows = _owners(options.first), keep[_owners(options.entries.first)]
    entries = {
        name: getattr(options.entries, name)[rows]
        for name in Entries.__dataclass_fields__
        if name != "first"
    }
    chosen = np.flatnonzero(keep).tolist()
    refused = dict(options.refused)
    for index, dropped in enumerate(np.bincount(table[~keep], minlength=len(options.first) - 1)):
        if dropped:
            name = options.model.tables[index].name
            refused[name] = (*refused.get(name, ()), f"{dropped} options fit on no rank")
    return replace(
        options,
        first=offsets(np.bincount(table[keep], minlength=len(options.first) - 1)),
        choices=[options.choices[o] for o in chosen],
        names=[options.names[o] for o in chosen],
        group=options.group[keep],
        level=options.level[keep],
        collective=options.collective[keep],
        entries=Entries(first=offsets(np.diff(options.entries.first)[keep]), **entries),
        refused=refused,
    )


def _largest_sum(options: Options) -> float:
    """The largest total of costs, HBM, DDR or SSD that one option per table can add up to."""
    if not len(options):
        return 0.0
    entries, ranks = options.entries, options.cluster.num_ranks
    size = {name: ranks for name in ("row_wise", "data_parallel")}
    choices, index = options.distinct
    shared = [size.get(c.sharding, c.row_parts * c.columns) for c in choices]
    copies = [  # on listed ranks every column slice has entries of its own
        c.columns if c.sharding == "grid_shard" and c.members is None else 1 for c in choices
    ]
    runs = np.diff(entries.first)
    own = entries.repeat * np.repeat(np.array(copies, dtype=np.int64)[index], runs)
    alone = np.repeat(runs == 1, runs)
    times = np.where(alone, np.repeat(np.array(shared, dtype=np.int64)[index], runs), own)[:, None]
    memory = [entries.hbm + entries.buffer, entries.ddr, entries.ssd, entries.ssd_step]
    columns = np.column_stack([entries.cost, *memory])
    values = columns.astype(np.float64)
    phases = entries.cost.shape[1]
    each = np.column_stack([values[:, :phases].sum(axis=1), values[:, phases:]]) * times
    per_option = np.add.reduceat(each, entries.first[:-1])
    return float(np.maximum.reduceat(per_option, options.first[:-1]).sum(axis=0).max())
