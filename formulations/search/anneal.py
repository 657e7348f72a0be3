"""Annealing towards a target, over options and places together, through infeasible states.

A target T for the objective acts as one more capacity, and any excess over a capacity is penalised
(:mod:`formulations.search.kernels`). A state without penalty is a plan that costs at most T; the
target is then lowered below its cost, and the search continues at the same temperature. The caller
must check every plan proposed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from formulations.fusion import mixed_groups
from formulations.instance import Instance, IntArray, Scope
from formulations.result.placement import Placement
from formulations.search import anneal_data as data
from formulations.search.anneal_data import lowered
from formulations.search.parameters import DEFAULT

#: Moves between two checks of the clock: a few hundredths of a second.
SLICE = 20_000
_NOBODY = np.zeros(0, dtype=np.int64)
#: Added to the size of shards on all ranks of a machine: larger than the size of any shard.
_WHOLE = 2.0**62
#: Targets are capped at this, so that their sum over phases stays below 2^63.
_FAR = 2**59


class Annealer:
    """A state of the search on one instance.

    Parameters
    ----------
    instance : Instance
    seed : int
        The same seed and number of moves give the same plans.

    Attributes
    ----------
    array : int64 array
        The state (:mod:`formulations.search.anneal_data`).
    capacity_weight : float
        Weight of excess use (as a share of the capacity) relative to excess cost (as a share of
        the target); a change takes effect at the next start.
    """

    def __init__(self, instance: Instance, seed: int = 0) -> None:
        from formulations.search import kernels

        self._kernels, self._lowered = kernels, lowered(instance)
        self._instance, self._seed = instance, seed
        self._peaks, self._sound = self._lowered.peaks, True
        self.capacity_weight = DEFAULT.capacity_weight
        self.array: IntArray
        self.choose_from(instance.allowed)
        self._empty()

    def reseed(self, seed: int) -> None:
        """Change the seed, from the next start on."""
        self._seed = seed

    def choose_from(self, keep: NDArray[np.bool_]) -> None:
        """Set the options that moves may choose; every table needs one that can be placed."""
        self._choice = np.flatnonzero(keep & self._lowered.placeable)
        table = self._instance.table_of[self._choice]
        counts = np.bincount(table, minlength=self._instance.num_tables)
        self._choice_start = np.append(0, np.cumsum(counts)).astype(np.int64)

    def start(
        self,
        options: IntArray,
        target: Sequence[int],
        machines: IntArray | None = None,
        most: int = 256,
    ) -> None:
        """Build a state from options alone: first what every rank carries, then the largest shards.

        Each shard takes the best of ``most`` places, on the machine given for its table where that
        is possible (−1: on any machine).
        """
        self._empty()
        preferred = self._lowered.view(data.PREFERRED, self._instance.num_tables, self.array)
        preferred[:] = -1 if machines is None else machines
        self.aim(target)
        options = self._one_level_a_group(options)
        order = np.argsort(-self._largest_shard(options)[options], kind="stable")
        self._lowered.view(data.OLD_OPTION, len(options), self.array)[:] = options
        self._run(order, (0, 0, 1), (1.0, 1.0), (0, 0, 0, 0, 0, 0, 0, most), (0.0, 0.0))
        preferred[:] = -1

    def load(self, placement: Placement, target: Sequence[int]) -> None:
        """Build the state of a placement."""
        self._empty()
        self.aim(target)
        self._sound = not mixed_groups(self._instance, placement)
        options = np.asarray(placement.options, dtype=np.int64)
        for table, option in enumerate(options.tolist()):
            ranks = placement.ranks[table]
            self._lowered.keep(self.array, data.OLD_PLACE, table, option, ranks)
        self._lowered.view(data.OLD_OPTION, len(options), self.array)[:] = options
        everything = np.arange(len(options))
        self._run(everything, (0, 0, 1), (1.0, 1.0), (0,) * 8, (0.0, 0.0))

    def settle(self, wish: Placement, most: int = 256) -> None:
        """Build the state of a partly valid placement, and make its cost the target.

        Tables whose ranks do not suit their option are placed after the others, as in
        :meth:`start`.
        """
        self._empty()
        options = self._one_level_a_group(np.asarray(wish.options, dtype=np.int64))
        there = np.zeros(len(options), dtype=bool)
        for table, option in enumerate(options.tolist()):
            same = option == wish.options[table] and self._lowered.placeable[option]
            there[table] = same and self._lowered.keep(
                self.array, data.OLD_PLACE, table, option, wish.ranks[table]
            )
        self._lowered.view(data.OLD_OPTION, len(options), self.array)[:] = options
        order = np.argsort(-self._largest_shard(options)[options], kind="stable")
        for tables, looks in ((order[there[order]], 0), (order[~there[order]], most)):
            mix = (0, 0, 0, 0, 0, 0, 0, looks)
            self._run(np.ascontiguousarray(tables), (0, 0, 1), (1.0, 1.0), mix, (0.0, 0.0))
            self.aim([max(1, top) for top in self.tops])

    @property
    def tops(self) -> list[int]:
        """Cost of the present state: one peak per phase, or the total."""
        if self._peaks:
            return [int(top) for top in self.peaks]
        loads = self._lowered.view(data.LOAD, int(self.array[data.LOADS]), self.array)
        return [int(loads[int(self.array[data.CLUSTER_LOAD])])]

    def aim(self, target: Sequence[int]) -> None:
        """Set the target: one number per phase under ``step_time``, else a single one."""
        target = [min(one, _FAR) for one in target]
        loads = int(self.array[data.LOADS])
        limit, weight = self._lowered.view(data.LIMIT, loads, self.array), self._weight
        wide, ranks = int(self.array[data.WIDE]), self._instance.num_ranks
        self.array[data.GOAL] = sum(target)
        if self._peaks:
            one = slice(0, wide * ranks)
            limit[one].reshape(ranks, wide)[:, : self._peaks] = target
            inverse = 1.0 / max(1, abs(sum(target)))
            weight[one].reshape(ranks, wide)[:, : self._peaks] = inverse
        else:
            limit[int(self.array[data.CLUSTER_LOAD])] = target[0]
            weight[int(self.array[data.CLUSTER_LOAD])] = 1.0 / max(1, abs(target[0]))

    def run(
        self, moves: int, heats: tuple[float, float], over: Callable[[], bool],
        mix: tuple[int, ...] = DEFAULT.mix, shrink: float = 5e-4, least: int = -(2**62),
    ) -> int:  # fmt: skip
        """Anneal; returns the moves made.

        Parameters
        ----------
        moves : int
        heats : (float, float)
            Temperatures at the first and the last move, as penalties.
        over : callable
            Called every few hundredths of a second; returns whether to stop.
        mix : seven ints
            Frequencies of the kinds of moves, and numbers of places tried
            (:func:`kernels.anneal`).
        shrink : float
            After each plan, the target is set below its objective by this share.
        least : int
            A plan with at most this objective ends the run.
        """
        if not self._instance.num_tables:
            return 0
        for first in range(0, moves, SLICE):
            last = min(moves, first + SLICE)
            span, limits = (first, last, moves), (shrink, float(least))
            self._run(_NOBODY, span, heats, (*mix, 0), limits)
            if over() or (self.value is not None and self.value <= least):
                return last
        return moves

    def replicate(self, heats: Sequence[float]) -> None:
        """Copy the present state to a replica at each of these temperatures, the hottest first."""
        self.array = data.replicated(self.array, len(heats))
        self._ladder = np.asarray(heats, dtype=np.float64)
        self._slot = np.arange(len(heats))

    def temper(
        self, moves: int, over: Callable[[], bool], mix: tuple[int, ...], shrink: float,
        burst: int, least: int = -(2**62),
    ) -> int:  # fmt: skip
        """Replica exchange (Swendsen and Wang, Physical Review Letters 57, 1986).

        Replicas anneal, each at its own temperature, and neighbours swap temperatures depending on
        their penalties. Hot replicas try other choices of options, and the good ones among them
        cool down, so no schedule needs to know the right temperature. Returns the moves made, and
        selects the coldest replica.

        Parameters
        ----------
        burst : int
            Moves of each replica between exchanges; the other parameters as in :meth:`run`.
        """
        if not self._instance.num_tables:
            return 0
        made, left = 0, np.zeros(len(self._ladder))
        rounds = max(1, SLICE // (burst * len(left)))
        limits = (shrink, float(least))
        while made < moves:
            self._kernels.temper(
                self.array, self._weight, self._choice_start, self._choice, self._ladder,
                self._slot, left, rounds, burst, (*mix, 0), limits,
            )  # fmt: skip
            made += rounds * burst * len(left)
            if over() or (self.value is not None and self.value <= least):
                break
        self._kernels.select(self.array, int(self._slot[-1]))
        return made

    def _run(
        self, order: IntArray, span: tuple[int, ...], heats: tuple[float, float],
        mix: tuple[int, ...], limits: tuple[float, float],
    ) -> None:  # fmt: skip
        self._kernels.anneal(
            self.array, self._weight, order, self._choice_start, self._choice,
            span, heats, mix, limits,
        )  # fmt: skip

    def hold(self, instance: Instance) -> None:
        """Adopt the limits of an instance that differs at most in its capacities and in the number
        of tables that may move, until the next start."""
        limits = np.concatenate([part.ravel() for part in data.capacities(instance)])
        own = self._lowered.view(data.LIMIT, len(limits), self.array)
        kept = np.ones(len(limits), dtype=bool)  # all but the limits that the target sets
        wide, ranks = int(self.array[data.WIDE]), instance.num_ranks
        kept[: wide * ranks].reshape(ranks, wide)[:, : self._peaks] = False
        if not self._peaks:
            kept[int(self.array[data.CLUSTER_LOAD])] = False
        own[kept] = limits[kept]
        self._weight[kept] = self.capacity_weight / np.maximum(1.0, np.abs(limits[kept]))

    def tidy(self, preferences: IntArray, most: int) -> None:
        """Let every table take the state it prefers most, within an objective of ``most`` and all
        capacities; the state must be a plan.

        Parameters
        ----------
        preferences : int64 array [2 × options]
            Rank of every option, then of every option as in production; the lowest is the best.
        most : int
        """
        choice, start = self._states(preferences)
        options = self._lowered.view(data.OPTION, self._instance.num_tables, self.array)
        order = np.argsort(-preferences[options], kind="stable")
        self._kernels.tidy(
            self.array, self._strict(most), order, start, choice, preferences, most
        )  # fmt: skip

    def even(self, order: IntArray, most: int, scope: Scope) -> None:
        """Move shards away from the rank or machine whose memory is fullest, as long as that lowers
        the largest fill, within an objective of ``most``; tables are tried in the given order."""
        weight, a = self._strict(most), data
        machines, end = (int(self.array[i]) for i in (a.MACHINE_LOAD, a.CLUSTER_LOAD))
        wide, wide_machine = int(self.array[a.WIDE]), int(self.array[a.MACHINE_WIDE])
        room = self._lowered.view(data.LIMIT, len(weight), self.array).copy()
        features = {
            Scope.RANK: [(f, machines, wide) for f in range(self._peaks, wide)],
            Scope.MACHINE: [(machines + f, end, wide_machine) for f in range(wide_machine)],
        }
        for low, high, step in features[scope]:
            self._kernels.even(self.array, weight, room, order, low, high, step, most)

    def _strict(self, most: int) -> NDArray[np.float64]:
        """Weights under which capacities are never broken."""
        weight, peaks = np.full(len(self._weight), 2 * self._kernels.BROKEN), self._peaks
        wide, step = int(self.array[data.WIDE]), 1.0 / max(1, abs(most))
        for place in range(int(self.array[data.RANKS])):
            weight[place * wide : place * wide + peaks] = step
        end = int(self.array[data.CLUSTER_LOAD])
        weight[end if not peaks else len(weight) :][:1] = step
        return weight

    def preference_sum(self, preferences: IntArray) -> int:
        """Sum over tables of the preferences of their states."""
        return int(self._kernels.preference_sum(self.array, preferences))

    def _states(self, preferences: IntArray) -> tuple[IntArray, IntArray]:
        """Options that moves may choose, and homes (option + number of options), table by table
        with the most preferred first; and where each table's states begin."""
        home = self._lowered.view(data.HOME_OPTION, self._instance.num_tables)
        home = home[home >= 0]
        states = np.append(self._choice, home + self._instance.num_options)
        table = self._instance.table_of[states % self._instance.num_options]
        order = np.lexsort((preferences[states], table))
        counts = np.bincount(table, minlength=self._instance.num_tables)
        return states[order], np.append(0, np.cumsum(counts)).astype(np.int64)

    @property
    def penalty(self) -> float:
        """Penalty of the present state."""
        loads = int(self.array[data.LOADS])
        load = self._lowered.view(data.LOAD, loads, self.array)
        limit = self._lowered.view(data.LIMIT, loads, self.array)
        return float((np.maximum(load - limit, 0) * self._weight).sum())

    @property
    def over(self) -> tuple[float, float]:
        """How far the present state exceeds the target, and the capacities: sums of shares."""
        loads = int(self.array[data.LOADS])
        load = self._lowered.view(data.LOAD, loads, self.array)
        limit = self._lowered.view(data.LIMIT, loads, self.array)
        share = np.maximum(load - limit, 0) * self._weight
        wide, ranks = int(self.array[data.WIDE]), self._instance.num_ranks
        if self._peaks:
            peaks = share[: wide * ranks].reshape(ranks, wide)[:, : self._peaks].sum()
        else:
            peaks = share[int(self.array[data.CLUSTER_LOAD])]
        return float(peaks), float((share.sum() - peaks) / self.capacity_weight)

    @property
    def value(self) -> int | None:
        """Objective of the best plan (a state without penalty) since the start; None: no plan."""
        found, value = self.array[data.TALLY : data.TALLY + 2]
        return int(value) if found and self._sound else None

    @property
    def peaks(self) -> IntArray:
        """Largest load of any rank in each phase, in the present state."""
        loads = self._lowered.view(data.LOAD, int(self.array[data.MACHINE_LOAD]), self.array)
        return loads.reshape(self._instance.num_ranks, int(self.array[data.WIDE]))[
            :, : self._peaks
        ].max(axis=0)

    def placement(self, best: bool = False) -> Placement:
        """The placement of the present state, or the best plan since the start."""
        names = (data.BEST_OPTION, data.BEST_PLACE) if best else (data.OPTION, data.PLACE)
        tables = self._instance.num_tables
        options = self._lowered.view(names[0], tables, self.array).copy()
        places = self._lowered.view(
            names[1], int(self.array[data.ASSIGNMENTS]), self.array
        ).tolist()
        start = self._lowered.view(data.STATE_START, tables + 1).tolist()
        ranks = [
            self._lowered.ranks(option, places[start[table] : start[table + 1]])
            for table, option in enumerate(options.tolist())
        ]
        return Placement(options, ranks)

    def _one_level_a_group(self, options: IntArray) -> IntArray:
        """Put every mixed fusion group at the level that most of its tables can take; the other
        tables leave the group if they can.

        Moves never mix levels, but cannot repair a mixed group: while one remains, no plan is
        proposed.
        """
        options = np.array(options, dtype=np.int64)
        group, level = self._instance.option_group, self._instance.option_level
        for _ in range(1 + len(self._instance.fusion_groups)):
            mixed = _mixed(group[options], level[options])
            if mixed is None:
                break
            tables = np.flatnonzero(group[options] == mixed).tolist()
            mine = [self._choice[slice(*self._choice_start[t : t + 2])] for t in tables]
            inside = np.concatenate([options[tables], *(c[group[c] == mixed] for c in mine)])
            ways = [
                [c[(group[c] != mixed) | (level[c] == at)] for c in mine]
                for at in np.unique(level[inside])
            ]
            away = np.where(group == mixed, 0, 1 + (group >= 0))  # this group, none, another
            best = min(ways, key=lambda fits: sum(min(away[c], default=9) for c in fits))
            for table, fits in zip(tables, best, strict=True):
                if len(fits) and options[table] not in fits:
                    options[table] = fits[away[fits].argmin()]
        self._sound = _mixed(group[options], level[options]) is None
        return options

    def _largest_shard(self, options: IntArray) -> NDArray[np.float64]:
        """Size of each option's largest shard, as a share of what a rank has left of its limits
        beside the loads that these options put on every rank (if nothing, of the largest shard).

        Options that choose no place are infinitely large, because they cannot give way, and those
        on whole machines come next.
        """
        entry, assignments = self._lowered.entry[0], self._lowered.assignments
        wide, ranks = entry.shape[1], self._instance.num_ranks
        count = self._instance.num_options
        every = self._lowered.view(data.EVERY_RANK, count * wide).reshape(count, wide)
        limit = self._lowered.view(data.LIMIT, ranks * wide, self.array).reshape(ranks, wide)
        left = limit.mean(axis=0) - every[options].sum(axis=0)
        room = np.where(left > 0, left, np.maximum(1, entry.max(axis=0, initial=1)))
        size = (entry[assignments[:, 0]] / room).max(axis=1, initial=0.0)
        size += np.where(assignments[:, 1] == data.RANK, 0.0, _WHOLE)
        largest = np.full(count, -np.inf)
        np.maximum.at(largest, self._instance.option_of[assignments[:, 2]], size)
        return np.where(largest < 0, np.inf, largest)

    def _empty(self) -> None:
        self.array = self._lowered.array.copy()
        self.array[data.RANDOM] = (2 * self._seed + 1) * 0x1E3779B97F4A7C15 % 2**63
        loads = int(self.array[data.LOADS])
        limit = self._lowered.view(data.LIMIT, loads, self.array)
        self._weight = self.capacity_weight / np.maximum(1.0, limit)


def _mixed(group: IntArray, level: IntArray) -> int | None:
    """A fusion group with tables at more than one level; None where there is none."""
    pairs = np.unique(np.stack([group, level])[:, group >= 0], axis=1)[0]
    again = pairs[1:][pairs[1:] == pairs[:-1]]
    return int(again[0]) if len(again) else None
