"""A plan to start from, made to fit the model: kept options, ranks in the order it asks for."""

from __future__ import annotations

import numpy as np

from formulations.check import check
from formulations.cpsat_model.symmetry import FREE, anchor_table, equal_ranks
from formulations.instance import Instance, IntArray
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
    """The same plan with equal ranks swapped into decreasing order of the anchor's shards."""
    anchor = anchor_table(instance)
    if anchor is None:
        return placement
    held = np.zeros(instance.num_ranks, dtype=np.int64)
    for index, ranks in zip(
        instance.blocks_of(int(placement.options[anchor])), placement.ranks[anchor], strict=True
    ):
        if instance.block_where[index] in FREE:
            np.add.at(held, ranks, 1)
    name = np.arange(instance.num_ranks)
    for equal in equal_ranks(instance):
        name[sorted(equal, key=lambda r: -int(held[r]))] = equal
    blocks = [
        [_rename(instance, b, r, name) for b, r in zip(instance.blocks_of(o), own, strict=True)]
        for o, own in zip(placement.options.tolist(), placement.ranks, strict=True)
    ]
    return Placement(placement.options, blocks)


def _rename(instance: Instance, index: int, ranks: IntArray, name: IntArray) -> IntArray:
    """Fixed and whole-machine blocks stay; freely placed shards follow their rank's new name."""
    return name[ranks] if instance.block_where[index] in FREE else ranks
