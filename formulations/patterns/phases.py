"""Which phases a row of peaks puts together: those that are multiples of each other, so that they
peak on the same rank; and the set among them in which loads go in units."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.instance.facts import per_option
from formulations.patterns.found import Floats, Mask
from formulations.proof.peaks import Peaks, Phases, peaks_of
from formulations.proof.rows import measures

#: Phases whose loads are multiples up to this share of each load are one, and so much of a load may
#: be lost where it is rounded down to units.
_ALIKE, _LOST = 1e-3, 1e-3
#: Most tables that are rather few for their ranks.
FEW_TABLES = 110
#: Most tables where the busiest rank is the only peak: many small shards fill a rank evenly.
MOST_ALONE = 60
#: Steps into which the second set's highest peak is divided, and the most units in it; with few
#: tables, into which a plan's cost is.
STEPS, MOST_UNITS, FEW_STEPS = 128, 256, 64


def sets_to_limit(instance: Instance, keep: Mask) -> tuple[Phases, Phases] | None:
    """Two sets of phases for boxes of peaks; the second is empty where one is enough.

    Phases of which something is hidden are in neither. Under ``busiest_rank`` the only set is that
    of the busiest rank's cost. None for another objective, where there is no table, and where
    something is hidden of every phase.
    """
    every = tuple(measures(instance).counted.tolist())
    if not instance.num_tables or not every:
        return None
    alone = [peaks_of(instance, (phase,), (), 1) for phase in every]
    kept = keep[alone[0].option]
    loads = np.stack([peaks.load[kept] for peaks in alone], axis=1)
    groups = [tuple(every[i] for i in group) for group in _alike(loads)]
    second = groups[1] if len(groups) > 1 else ()
    return tuple(phase for phase in every if phase not in second), second


def peaks_to_limit(instance: Instance, keep: Mask, most: int) -> Peaks | None:
    """The two sets of phases for rows of peaks, and the step of the second.

    The second is the set with the fewest distinct loads, one whose loads go in units if there is
    one. Where no unit divides them, they are rounded down to steps.

    Parameters
    ----------
    instance : Instance
    keep : bool array [options]
    most : int
        The cost of a plan, for the size of steps.

    Returns
    -------
    Peaks or None
        None without such sets, with many tables where there is one peak for all phases, and where
        an option kept is not a single block on ranks whose shards are alike or on different ranks.
    """
    many = instance.num_tables > MOST_ALONE and not instance.by_phase
    sets = None if many else sets_to_limit(instance, keep)
    if sets is None:
        return None
    peaks = peaks_of(instance, *sets, 1)
    if not peaks.suits[keep].all() or instance.unplaced[instance.option_blocks[:-1]][keep].any():
        return None
    if not sets[1]:
        return peaks
    kept = keep[peaks.option]
    loads = [np.unique(values[kept & (values > 0)]) for values in (peaks.load, peaks.second_load)]
    highest, steps, count = [most, most], FEW_STEPS, FEW_STEPS
    if shares_ranks(instance):
        highest, steps = [_highest(peaks, keep, most, i) for i in (0, 1)], STEPS
        count = MOST_UNITS
    units = [_unit(values, top, count) for values, top in zip(loads, highest, strict=True)]
    at = min((0, 1), key=lambda i: (units[i] is None, len(loads[i])))
    return peaks_of(instance, sets[1 - at], sets[at], units[at] or max(1, highest[at] // steps))


def shares_ranks(instance: Instance) -> bool:
    """Whether there are so many tables that a rank holds many small shards."""
    return instance.num_tables > FEW_TABLES


def _highest(peaks: Peaks, keep: Mask, most: int, at: int) -> int:
    """About the highest peak that a set has in a plan of a cost: what is left when each table takes
    the option with the least floor and load in the other set."""
    instance = peaks.instance
    other = peaks.second_load if at == 0 else peaks.load
    paid = peaks.floor + per_option(instance, other * peaks.number) / instance.num_ranks
    least = np.minimum.reduceat(np.where(keep, paid, np.inf), instance.table_options[:-1])
    return max(1, int(most - least.sum()))


def _alike(loads: IntArray) -> list[Phases]:
    """Sets of phases whose loads [entries, phases] are multiples of each other, at most two; not
    those without any load. The most alike are put together first."""
    groups: list[Phases] = [(phase,) for phase in np.flatnonzero(loads.sum(axis=0)).tolist()]
    while len(groups) > 1:
        sums = [loads[:, group].sum(axis=1).astype(float) for group in groups]
        pairs = list(combinations(range(len(groups)), 2))
        share, (a, b) = max((_share_alike(sums[a], sums[b]), (a, b)) for a, b in pairs)
        if len(groups) == 2 and share < 1:
            break
        rest = [group for i, group in enumerate(groups) if i not in (a, b)]
        groups = [groups[a] + groups[b], *rest]
    return groups


def _share_alike(a: Floats, b: Floats) -> float:
    """The share of entries, of those with a load in either, whose ratio is the usual one."""
    both = (a > 0) & (b > 0)
    if not both.any():
        return 0.0
    ratio = np.median(b[both] / a[both])
    alike = np.abs(b - ratio * a) <= _ALIKE * np.maximum(b, ratio * a)
    return float(alike[(a > 0) | (b > 0)].mean())


def _unit(values: IntArray, most: int, units: int) -> int | None:
    """The largest of the loads, or of its simple fractions, in which they can all be counted, if
    there are few enough up to the highest peak."""
    for unit in sorted({int(v) // n for v in values[:4] for n in (1, 2, 3, 4)}, reverse=True):
        lost = values - values // max(unit, 1) * unit
        if unit * units >= most and (lost <= _LOST * values).all():
            return unit
    return None
