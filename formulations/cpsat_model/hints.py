"""A plan to start from, made to fit the model: kept options, ranks in the order it asks for."""

from __future__ import annotations

import numpy as np

from formulations.check import check
from formulations.cpsat_model.symmetry import equal_ranks, ordering_column
from formulations.instance import Instance, IntArray, Where
from formulations.placement import Placement
from formulations.presolve import Presolved


def fit_hint(
    instance: Instance, presolved: Presolved, placement: Placement, ordered: bool
) -> Placement | None:
    """A placement the model can represent, at most as costly as the one given.

    Removed options give way to those that dominate them; equal ranks are renamed so that no rank
    carries less than the next.

    Returns
    -------
    Placement or None
        None when the placement is malformed or breaks a constraint.
    """
    if not check(instance, placement).feasible:
        return None
    options = presolved.replacement[placement.options]
    if (options < 0).any():
        return None
    replaced = Placement(options, placement.ranks)
    better = renamed(instance, replaced) if ordered else replaced
    return better if check(instance, better).feasible else None


def renamed(instance: Instance, placement: Placement) -> Placement:
    """The same plan with equal ranks swapped into decreasing order of what they carry."""
    name = np.arange(instance.num_ranks)
    load = _loads(instance, placement, ordering_column(instance))
    for ranks in equal_ranks(instance):
        order = sorted(ranks, key=lambda r: -int(load[r]))
        name[order] = ranks
    return Placement(
        placement.options,
        [
            [
                _rename(instance, b, r, name)
                for b, r in zip(instance.blocks_of(int(o)), own, strict=True)
            ]
            for o, own in zip(placement.options, placement.ranks, strict=True)
        ],
    )


def _loads(instance: Instance, placement: Placement, column: IntArray) -> IntArray:
    """Σ of a column of shard entries at every rank, int64 array [ranks]."""
    from formulations.check import position_entries

    load = np.zeros(instance.num_ranks, dtype=np.int64)
    for option, own in zip(placement.options.tolist(), placement.ranks, strict=True):
        for index, ranks in zip(instance.blocks_of(option), own, strict=True):
            block = instance.block(index)
            if block.where != Where.CLUSTER:
                np.add.at(load, ranks, column[position_entries(instance, block, ranks)])
    return load


def _rename(instance: Instance, index: int, ranks: IntArray, name: IntArray) -> IntArray:
    """Fixed and whole-machine blocks stay; freely placed shards follow their rank's new name."""
    free = (Where.ANY_RANK, Where.ANY_RANK_OF_ONE_MACHINE)
    return name[ranks] if Where(int(instance.block_where[index])) in free else ranks
