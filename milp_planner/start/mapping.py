"""A plan to start from on the Instance of a model and a cluster: one mapper for ours and theirs.

Tables are matched by name, ranks by machine, options by kind. A plan of theirs, or one that is to
be judged, is taken literally: what it says must be legal. A plan of ours may be of another state:
what no longer exists starts from what is most like it, and counts as moved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from formulations import Instance, Placement
from formulations.instance import Current
from formulations.instance.assigning import Ranks, assigned, misplaced
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import (
    ClusterSource,
    Compiled,
    ModelSource,
    as_current,
    compile_for,
    regrouped,
    to_cluster,
    to_model,
)
from milp_planner.plans.placement import Plan
from milp_planner.pricing.options import Choice
from milp_planner.start.literal import COLUMN_WISE, as_they_run, matched, place, whole, widened
from milp_planner.start.rows import StartSource, StartTable, plan_of, read_start, refuse, rows_of

_WHOLE = {"HBM_ONLY": Fraction(1), "HOST_ONLY": Fraction(0)}
RankMap = dict[int, int]
"""Rank of the old cluster -> the same rank in the new one, without ranks that are gone."""


@dataclass(frozen=True)
class Start:
    """The part of a plan that applies to a model and a cluster."""

    compiled: Compiled
    """Its Instance counts moves from the plan (``current``), except of new tables."""
    placement: Placement
    """That part: option −1 for a new table, no ranks if they are gone."""
    gone: tuple[str, ...] = ()
    """Tables that the model no longer has."""
    new: tuple[str, ...] = ()
    """Tables that the plan does not have; placing them moves nothing."""
    displaced: tuple[str, ...] = ()
    """Tables whose option or ranks no longer exist: they must move."""


def start_on(
    source: StartSource,
    model: ModelSource,
    cluster: ClusterSource,
    objective: str,
    *,
    lost: Collection[int] = (),
    exact: bool = False,
    later: Plan | None = None,
) -> Start:
    """Compile a model for a cluster, with a plan to start from on it.

    Parameters
    ----------
    source
        A plan of ours, or one of theirs: see :func:`milp_planner.start.rows.read_start`.
    lost
        Ranks of the plan that are gone.
    exact
        Take a plan of ours literally too: every ratio and width of its own is offered, and what
        it says must be legal. Whether it fits is another question.
    later
        A plan from which new tables take their places.

    Raises
    ------
    BadInput
        For a plan that places nothing, or none of the model's tables, or never had a lost rank;
        taken literally, for every row that does not belong to the model and cluster.
    """
    read, site = to_model(model), to_cluster(cluster)
    ours = plan_of(source)
    rows = read_start(source) if ours is None else rows_of(ours)
    literal = exact or ours is None
    found, unknown = matched(rows, read)
    names = [table.name for table in read.tables]
    new = tuple(name for name, row in zip(names, found, strict=True) if row is None)
    if not literal and names and len(new) == len(names):
        made = "" if ours is None else f"; it was made for model {ours.model.name!r}"
        raise BadInput(
            f"the plan to start from places none of the tables of model {read.name!r}{made}"
        )
    ranks = same_ranks(site if ours is None else ours.cluster, site, lost)
    first = {row.table: whole(row) for row in (() if later is None else rows_of(later))}
    rows_here = [row or first.get(name) for name, row in zip(names, found, strict=True)]
    rows_here = as_they_run(rows_here, read) if literal else rows_here
    compiled = compile_for(widened(read, rows_here) if literal else read, site, objective)
    if literal and not lost:
        start = _literal(compiled, rows_here, unknown, new)
    else:
        refuse(unknown if literal else ())
        start = _nearest_of(compiled, rows_here, ranks, new)
    gone = () if literal else tuple(row.table for row in rows if row.table not in names)
    return replace(start, gone=gone, new=new)


def _literal(
    compiled: Compiled, rows: Sequence[StartTable | None], wrong: Sequence[str], new: Sequence[str]
) -> Start:
    placement = place(compiled.options, compiled.instance, rows, wrong=wrong)
    names = compiled.instance.table_names
    there = as_current(placement)
    current = [now for now in there if now.option >= 0 and names[now.table] not in new]
    return Start(_counting(compiled, current), placement)


def _nearest_of(
    compiled: Compiled,
    rows: Sequence[StartTable | None],
    ranks: RankMap,
    new: Sequence[str],
) -> Start:
    """Every table on the option most like its own, where its ranks still are."""
    instance = compiled.instance
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    places: list[list[np.ndarray]] = [[] for _ in range(instance.num_tables)]
    current, displaced = [], []
    for index, row in enumerate(rows):
        if row is None:
            continue
        option, there, same = _nearest(compiled, index, row, ranks)
        options[index] = option
        places[index] = [np.asarray(block, dtype=np.int64) for block in there or ()]
        if row.table in new:
            continue
        if there is None or not same:
            displaced.append(row.table)
        current.append(Current(index, option if there is not None and same else -1, there or ()))
    placement = Placement(options, places)
    return Start(_counting(compiled, current), placement, displaced=tuple(displaced))


def _counting(compiled: Compiled, current: Sequence[Current]) -> Compiled:
    return replace(compiled, instance=replace(compiled.instance, current=tuple(current)))


def placed_on(compiled: Compiled, plan: Plan) -> Placement | None:
    """A plan's placement on another Instance; None where that lacks one of its options or ranks."""
    rows, _ = matched(rows_of(plan), compiled.model)
    if None in rows:
        return None
    ranks = {rank: rank for rank in range(compiled.instance.num_ranks)}
    found = _nearest_of(compiled, rows, ranks, ())
    return None if found.displaced else found.placement


def same_ranks(before: Cluster, after: Cluster, lost: Collection[int] = ()) -> RankMap:
    """The rank of the new cluster that corresponds to each rank of the old one.

    Machines correspond in order, and so do the ranks of each. If the new cluster has as many
    machines, or a machine as many ranks, lost ones were replaced in place; otherwise they are
    removed first, and those after them move up. Further ranks of the new cluster are new, and old
    ranks without a counterpart are gone.

    Raises
    ------
    BadInput
        If the old cluster does not have a lost rank.
    """
    strange = sorted(set(lost) - set(range(before.num_ranks)))
    if strange:
        raise BadInput(
            f"lost rank {strange[0]}: the plan's cluster {before.name!r} has the ranks 0 to "
            f"{before.num_ranks - 1}"
        )
    machines = list(before.machine_ranks)
    if len(machines) != len(after.machine_ranks):
        machines = [ranks for ranks in machines if not set(ranks) <= set(lost)]
    found: RankMap = {}
    for ranks, others in zip(machines, after.machine_ranks, strict=False):
        left = [rank for rank in ranks if rank not in lost or len(ranks) == len(others)]
        found |= zip(left, others, strict=False)
    return {old: new for old, new in found.items() if old not in lost}


def _nearest(
    compiled: Compiled, table: int, row: StartTable, ranks: RankMap
) -> tuple[int, Ranks | None, bool]:
    """The option most like that of a table, its ranks, and whether it is the same option.

    The same mode, else the nearest share of rows in HBM, then the same sharding type, number of
    column shards, and routing. Ranks are None if the option cannot be placed on them.
    """
    options, instance = compiled.options, compiled.instance
    ratio = _WHOLE.get(row.mode, row.ratio or Fraction(0))
    several = row.sharding_type in COLUMN_WISE and row.ranks is not None
    columns = len(row.ranks or ()) if several else None
    width = row.column_width or compiled.model.tables[table].dim

    def unlike(option: int) -> tuple[object, ...]:
        choice: Choice = options.choices[option]
        return (
            choice.mode != row.mode,
            abs(choice.ratio - ratio),
            choice.sharding != row.sharding_type,
            0 if columns is None else abs(choice.columns - columns),
            abs(choice.width - width),
            choice.dist_type != row.dist_type,
            choice.caching_group != row.fusion_caching,
        )

    try:
        likest = [options.index(table, row.option or "")]
    except KeyError:  # with machines of several sizes, one option has several names
        least = min(map(unlike, options.of(table)))
        likest = [option for option in options.of(table) if unlike(option) == least]
    found = [(option, _places(instance, option, row, ranks)) for option in likest]
    option, there = next((pair for pair in found if pair[1] is not None), found[0])
    return option, there, not any(unlike(option))


def _places(instance: Instance, option: int, row: StartTable, ranks: RankMap) -> Ranks | None:
    """The ranks of a table's blocks, newly numbered; None if its option cannot be placed there."""
    blocks = instance.blocks_of(option)
    placed = regrouped((row.ranks or (),), len(blocks) > 1)
    if len(placed) != len(blocks) or any(rank not in ranks for block in placed for rank in block):
        return None
    moved = tuple(tuple(ranks[rank] for rank in block) for block in placed)
    pairs = zip(blocks, moved, strict=True)
    if all(misplaced(instance, instance.block(b), np.asarray(own)) is None for b, own in pairs):
        return moved
    return assigned(instance, option, moved)
