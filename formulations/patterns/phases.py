"""Which phases a row of peaks puts together: those that are multiples of each other, so that they
peak on the same rank; and the set among them in which loads go in units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray
from formulations.proof.peaks import Peaks, Phases, peaks_of

Mask = NDArray[np.bool_]
#: Phases whose loads are multiples up to this share of each load are one, and so much of a load may
#: be lost where it is rounded down to units.
_ALIKE, _LOST = 1e-3, 1e-3
#: Most steps into which the second set's peak is divided.
STEPS = 64


def peaks_to_limit(instance: Instance, keep: Mask, most: int) -> Peaks | None:
    """The two sets of phases for rows of peaks, and the step of the second.

    The second is the set with the fewest distinct loads among those whose loads go in units; the
    first has all others. Phases of which something is hidden are in neither. Where no unit divides
    any set's loads, the second set's are rounded down to steps.

    Parameters
    ----------
    instance : Instance
    keep : bool array [options]
    most : int
        About the highest peak of the second set, for the size of steps.

    Returns
    -------
    Peaks or None
        None for another objective, where something is hidden of every phase, and where an option
        kept is not a single block on ranks whose shards are alike or on different ranks.
    """
    every = tuple(np.flatnonzero(instance.bare_phases).tolist())
    if not instance.by_phase or not instance.num_tables or not every:
        return None
    alone = [peaks_of(instance, (phase,), (), 1) for phase in every]
    if not alone[0].suits[keep].all() or instance.unplaced[instance.option_blocks[:-1]][keep].any():
        return None
    kept = keep[alone[0].option]
    loads = np.stack([peaks.load[kept] for peaks in alone], axis=1)
    groups = [tuple(every[i] for i in group) for group in _alike(loads)]
    if len(groups) < 2:
        return peaks_of(instance, every, (), 1)
    sums = [np.unique(loads[:, np.isin(every, group)].sum(axis=1)) for group in groups]
    units = [_unit(values[values > 0], most) for values in sums]
    at = min(range(len(groups)), key=lambda i: (units[i] is None, len(sums[i])))
    first = tuple(phase for phase in every if phase not in groups[at])
    return peaks_of(instance, first, groups[at], units[at] or _least(most))


def _alike(loads: IntArray) -> list[Phases]:
    """Sets of phases whose loads [entries, phases] are multiples of each other; not those without
    any load."""
    groups: list[list[int]] = []
    total = loads.sum(axis=0)
    for phase in np.flatnonzero(total).tolist():
        share = loads[:, phase] / total[phase]
        for group in groups:
            other = loads[:, group[0]] / total[group[0]]
            if (np.abs(share - other) <= _ALIKE * np.maximum(share, other)).all():
                group.append(phase)
                break
        else:
            groups.append([phase])
    return [tuple(group) for group in groups]


def _least(most: int) -> int:
    return max(1, most // STEPS)


def _unit(values: IntArray, most: int) -> int | None:
    """The largest of the loads, or of its simple fractions, in which they can all be counted."""
    for unit in sorted({int(v) // n for v in values[:4] for n in (1, 2, 3, 4)}, reverse=True):
        lost = values - values // max(unit, 1) * unit
        if unit >= _least(most) and (lost <= _LOST * values).all():
            return unit
    return None
