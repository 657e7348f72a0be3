"""Fusion groups: what a plan that ignores them becomes when the runtime runs it.

The runtime fuses the tables of a group into one module and gives all of them one share of the
fast memory: s = Σ fast bytes asked for / Σ bytes of the group (dynamicemb, ``reference`` in
docs/method.md). A plan with several levels in one group is therefore not what runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from formulations.instance import Instance, IntArray, Scope
from formulations.instance.facts import total_use
from formulations.result.placement import Placement


def without_fusion(instance: Instance) -> Instance:
    """The same instance with every option free of fusion groups."""
    if not len(instance.fusion_groups):
        return instance
    return replace(instance, option_group=np.full(instance.num_options, -1, dtype=np.int64))


def mixed_groups(instance: Instance, placement: Placement) -> dict[int, list[int]]:
    """Groups whose chosen options are at more than one level: group -> its tables."""
    groups = instance.option_group[placement.options]
    levels = instance.option_level[placement.options]
    mixed = {}
    for group in np.unique(groups[groups >= 0]).tolist():
        tables = np.flatnonzero(groups == group)
        if len(np.unique(levels[tables])) > 1:
            mixed[group] = tables.tolist()
    return mixed


def respread(instance: Instance, placement: Placement) -> Placement | None:
    """The placement that the runtime would make of a plan with several levels in a group.

    The nearest of :func:`respreads`: each mixed group at the level whose use of the fast memory,
    the first resource of scope rank, is closest to what the plan's own options use together.

    Parameters
    ----------
    instance : Instance
    placement : Placement
        Well formed; its groups may mix levels.

    Returns
    -------
    Placement or None
        None when a group has no level that all its tables offer.
    """
    return next(respreads(instance, placement), None)


def respreads(instance: Instance, placement: Placement) -> Iterator[Placement]:
    """The expressible placements on either side of what the runtime would do, nearest first.

    For options that differ only in level, the use of fast memory is a constant plus ratio ×
    bytes of the table, so the group's summed use determines the runtime's common ratio s; the
    constants cancel. s need not be on the instance's grid of levels: the truth then lies between
    the level below and the level above. Both are given (for every combination of mixed groups),
    ordered by the summed distance |use at the level − use in the plan|. Ranks stay as they are.

    Tables keep their group; a table with several options at the level keeps its kind of blocks.
    """
    mixed = mixed_groups(instance, placement)
    if not mixed:
        yield placement
        return
    use = _fast_use(instance)
    choices = []
    for group, tables in mixed.items():
        wanted = int(use[placement.options[tables]].sum())
        moves = _levels(instance, placement, group, tables)
        distance = {level: int(use[o].sum()) - wanted for level, o in moves.items()}
        below = max((d for d in distance.values() if d <= 0), default=None)
        above = min((d for d in distance.values() if d >= 0), default=None)
        near = sorted({d for d in (below, above) if d is not None}, key=abs)
        choices.append(
            [(abs(d), tables, next(moves[k] for k, v in distance.items() if v == d)) for d in near]
        )
    combinations = sorted(product(*choices), key=lambda c: sum(item[0] for item in c))
    for combination in combinations[:64]:
        options = placement.options.copy()
        for _, tables, new in combination:
            options[tables] = new
        yield Placement(options, placement.ranks)


def _levels(
    instance: Instance, placement: Placement, group: int, tables: list[int]
) -> dict[int, IntArray]:
    """Levels that all these tables offer in the group -> option of each table there."""
    offers = [_offers(instance, group, t, int(placement.options[t])) for t in tables]
    common = set.intersection(*(set(o) for o in offers))
    return {
        level: np.asarray([o[level] for o in offers], dtype=np.int64) for level in sorted(common)
    }


def _offers(instance: Instance, group: int, table: int, chosen: int) -> dict[int, int]:
    shape = _shape(instance, chosen)
    result: dict[int, int] = {}
    for option in instance.options_of(table):
        usable = instance.allowed[option] and int(instance.option_group[option]) == group
        if not usable or _shape(instance, option) != shape:
            continue
        level = int(instance.option_level[option])
        if option == chosen or level not in result:
            result[level] = option
    return result


def _shape(instance: Instance, option: int) -> list[tuple[int, ...]]:
    """What must agree for ranks to carry over: kind of place, count, distinct, allowed places."""
    columns = (
        instance.block_where, instance.block_count, instance.block_distinct, instance.block_places
    )  # fmt: skip
    return [tuple(int(c[b]) for c in columns) for b in instance.blocks_of(option)]


def _fast_use(instance: Instance) -> IntArray:
    """Use of the fast memory by every option, int64 array [options]."""
    if not instance.resources:
        return np.zeros(instance.num_options, dtype=np.int64)
    scopes = [r.scope for r in instance.resources]
    column = scopes.index(Scope.RANK) if Scope.RANK in scopes else 0
    return total_use(instance)[:, column]
