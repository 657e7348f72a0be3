"""Annealing towards a target, over options and places together, through infeasible states.

A target T for the objective acts as one more capacity, and any excess over a capacity is penalised
(:mod:`formulations.search.kernels`). A state without penalty is a plan that costs at most T; the
target is then lowered below its cost, and the search continues at the same temperature. The caller
must check every plan proposed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.fusion import mixed_groups
from formulations.instance import Instance, IntArray, Scope
from formulations.result.placement import Placement
from formulations.search import anneal_data as data
from formulations.search.anneal_data import lowered
from formulations.search.first_state import largest_shard, mixed, one_level_a_group
from formulations.search.numbers import BROKEN, FAR_TARGET, LOOKS, NOTHING, PART, ROUNDS, SLICE, TIE
from formulations.search.parameters import DEFAULT, Parameters

#: A rung for every replica, the hottest first: its temperature, as a penalty, at the first and at
#: the last move. One replica anneals; several exchange temperatures.
Ladder = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Choice:
    """Options, and perhaps machines, that plans start from.

    Attributes
    ----------
    options : int64 array [tables]
    machines : int64 array [tables] or None
        Machine of each table, −1: any.
    value : int or None
        Its cost when shards need not fit into single ranks.
    """

    options: IntArray
    machines: IntArray | None = None
    value: int | None = None


@dataclass(frozen=True, eq=False)
class Within:
    """What a run keeps to.

    Attributes
    ----------
    target : sequence of int
        One number per phase where each has a peak, else a single one.
    over : callable
        Called every few hundredths of a second; returns whether to stop.
    least : int
        A plan with at most this objective ends the run.
    held : Instance, optional
        Differs from the sampler's at most in its capacities and in what may move; these count.
    """

    target: Sequence[int]
    over: Callable[[], bool] = lambda: False
    least: int = NOTHING
    held: Instance | None = None


class Sampler:
    """A state of the search on one instance, or several replicas of it.

    Parameters
    ----------
    instance : Instance
    seed : int
        The same seed and number of moves give the same plans.
    parameters : Parameters
        Of these, ``capacity_weight``, ``mix``, ``shrink`` and ``burst``.

    Attributes
    ----------
    array : int64 array
        The state (:mod:`formulations.search.anneal_data`).
    """

    def __init__(self, instance: Instance, seed: int = 0, parameters: Parameters = DEFAULT) -> None:
        from formulations.search import kernels

        self._kernels, self._lowered = kernels, lowered(instance)
        self._instance, self._seed, self._parameters = instance, seed, parameters
        self._peaks, self._sound = self._lowered.peaks, True
        self.array, self._slot = self._lowered.array, np.arange(1)
        self._aimed = self._limits_of_target()
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

    def run(
        self, start: Choice | Placement | None, within: Within, ladder: Ladder, moves: int
    ) -> int:
        """Anneal, or exchange replicas; returns the moves made, of all replicas together.

        With several rungs this is replica exchange (Swendsen and Wang, Physical Review Letters 57,
        1986): replicas anneal, each at its own temperature, and neighbours swap temperatures
        depending on their penalties. Hot replicas try other choices of options, and the good ones
        among them cool down, so no schedule needs to know the right temperature. The coldest one is
        the present state at the end.

        Parameters
        ----------
        start : Choice, Placement or None
            As in :meth:`begin`.
        within : Within
        ladder : sequence of (float, float)
        moves : int
        """
        self.begin(start, within)
        if len(ladder) != len(self._slot):
            self.array = data.replicated(self.array, len(ladder))
            self._slot = np.arange(len(ladder))
        made, count = 0, len(ladder) if self._instance.num_tables else 0
        rungs, left = np.asarray(ladder, dtype=np.float64), np.zeros(len(ladder))
        # nothing costs less than 0 where ranks have peaks, however much of these is hidden
        least = max(0, within.least) if self._peaks else within.least
        mix, limits = (*self._parameters.mix,), (self._parameters.shrink, float(least))
        while count and made < moves:
            each = self._parameters.burst if count > 1 else min(SLICE, moves - made)
            # at least two, as even and odd pairs exchange in turn
            rounds = max(2, SLICE // (each * count)) if count > 1 else 1
            span = (made, made + each, moves) if count == 1 else (0, each, each)
            self._kernels.sample(
                self.array, self._weights, self._choice_start, self._choice, rungs.ravel(),
                self._slot, left, rounds, span, mix, limits,
            )  # fmt: skip
            made += rounds * each * count
            if within.over() or (self.value is not None and self.value <= least):
                break
        if made:
            self._kernels.select(self.array, int(self._slot[-1]))
        return made

    def begin(self, start: Choice | Placement | None, within: Within) -> None:
        """Build a state: of a placement, or of a choice of options, first what every rank carries,
        then the largest shards, each at the best of ``LOOKS`` places, on its table's machine if
        that is given and possible. None: the present state goes on, towards another target."""
        if isinstance(start, Placement):
            self._load(start, within.target)
        elif start is not None:
            self._pack(start, within.target)
        else:
            self._aim(within.target)
        if within.held is not None:
            self._hold(within.held)

    def _pack(self, choice: Choice, target: Sequence[int]) -> None:
        self._empty()
        tables = self._instance.num_tables
        preferred = self._lowered.view(data.PREFERRED, tables, self.array)
        preferred[:] = -1 if choice.machines is None else choice.machines
        self._aim(target)
        options = self._fused(choice.options)
        self._lowered.view(data.OLD_OPTION, tables, self.array)[:] = options
        self._put(self._largest_first(options), LOOKS)
        preferred[:] = -1

    def _load(self, placement: Placement, target: Sequence[int]) -> None:
        self._empty()
        self._aim(target)
        self._sound = not mixed_groups(self._instance, placement)
        options = np.asarray(placement.options, dtype=np.int64)
        for table, option in enumerate(options.tolist()):
            ranks = placement.ranks[table]
            self._lowered.keep(self.array, data.OLD_PLACE, table, option, ranks)
        self._lowered.view(data.OLD_OPTION, len(options), self.array)[:] = options
        self._put(np.arange(len(options)), 0)

    def settle(self, wish: Placement) -> None:
        """Build the state of a partly valid placement, and make its cost the target.

        Tables whose ranks do not suit their option are placed after the others, as for a choice in
        :meth:`begin`.
        """
        self._empty()
        options = self._fused(np.asarray(wish.options, dtype=np.int64))
        there = np.zeros(len(options), dtype=bool)
        for table, option in enumerate(options.tolist()):
            same = option == wish.options[table] and self._lowered.placeable[option]
            there[table] = same and self._lowered.keep(
                self.array, data.OLD_PLACE, table, option, wish.ranks[table]
            )
        self._lowered.view(data.OLD_OPTION, len(options), self.array)[:] = options
        order = self._largest_first(options)
        for tables, looks in ((order[there[order]], 0), (order[~there[order]], LOOKS)):
            self._put(np.ascontiguousarray(tables), looks)
            self._aim([max(1, top) for top in self.tops])

    def _put(self, order: IntArray, looks: int) -> None:
        """Place tables: at the places in ``OLD_PLACE``, or at the best of so many."""
        self._kernels.put(self.array, self._weights, order, looks)

    def _fused(self, options: IntArray) -> IntArray:
        """The options with one level in every fusion group, as far as that is possible."""
        instance = self._instance
        choices = np.split(self._choice, self._choice_start[1:-1])
        options = one_level_a_group(instance, options, choices)
        self._sound = mixed(instance.option_group[options], instance.option_level[options]) is None
        return options

    def _largest_first(self, options: IntArray) -> IntArray:
        """The tables, those first whose largest shard is the largest beside what is everywhere."""
        limit = self._loads(data.LIMIT)[: int(self.array[data.MACHINE_LOAD])]
        return np.argsort(-largest_shard(self._lowered, options, limit), kind="stable")

    @property
    def tops(self) -> list[int]:
        """Cost of the present state: one peak per phase, beyond what is hidden, or the total."""
        loads = self._loads(data.LOAD)[self._aimed].reshape(-1, max(1, self._peaks))
        hidden = self._hidden()
        tops = np.maximum(loads.max(axis=0), hidden) - hidden if self._peaks else loads.max(axis=0)
        return [int(top) for top in tops]

    def _hidden(self) -> IntArray:
        """What is hidden of each peak; int64 array [peaks], and 0 under ``total``."""
        return self._lowered.view(data.HIDDEN, max(1, self._peaks))

    def _aim(self, target: Sequence[int]) -> None:
        target = [min(one, FAR_TARGET) for one in target]
        self.array[data.GOAL] = sum(target)
        limits = np.asarray(target) + self._hidden()
        self._loads(data.LIMIT)[self._aimed] = np.resize(limits, int(self._aimed.sum()))
        self._weight[self._aimed] = 1.0 / max(1, abs(sum(target)))

    def _hold(self, instance: Instance) -> None:
        """Adopt the limits of an instance, until the next start."""
        kept = ~self._aimed
        limits = np.concatenate([part.ravel() for part in data.capacities(instance)])[kept]
        self._loads(data.LIMIT)[kept] = limits
        self._weight[kept] = self._parameters.capacity_weight / np.maximum(1.0, np.abs(limits))

    def tidy(
        self, preferences: IntArray, most: int, over: Callable[[], bool] = lambda: False
    ) -> None:
        """Let every table take the state it prefers most, within an objective of ``most`` and all
        capacities, until nothing changes or it is ``over``; the state must be a plan.

        Parameters
        ----------
        preferences : int64 array [2 × options]
            Rank of every option, then of every option as in production; the lowest is the best.
        most : int
        """
        choice, start = self._states(preferences)
        options = self._lowered.view(data.OPTION, self._instance.num_tables, self.array)
        order = np.argsort(-preferences[options], kind="stable")
        strict = self._strict(most)
        parts = [order[at : at + PART] for at in range(0, len(order), PART)]
        for _ in range(ROUNDS):
            changed = 0
            for part in parts:
                if over():
                    return
                changed += self._kernels.tidy(
                    self.array, strict, part, start, choice, preferences, most
                )
            if not changed:
                return

    def even(
        self, order: IntArray, most: int, scope: Scope, only: int | None = None,
        over: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """Move shards away from the rank or machine whose memory is fullest, as long as that lowers
        the largest fill and it is not ``over``, within an objective of ``most``; tables are tried
        in the given order. ``only``: number of the one resource that counts, among those of the
        scope."""
        weight, a = self._strict(most), data
        machines, end = (int(self.array[i]) for i in (a.MACHINE_LOAD, a.CLUSTER_LOAD))
        wide, wide_machine = int(self.array[a.WIDE]), int(self.array[a.MACHINE_WIDE])
        room = self._loads(data.LIMIT).copy()
        features = {
            Scope.RANK: [(f, machines, wide) for f in range(self._peaks, wide)],
            Scope.MACHINE: [(machines + f, end, wide_machine) for f in range(wide_machine)],
        }
        for low, high, step in features[scope][slice(only, None if only is None else only + 1)]:
            left = 4 * self._instance.num_tables
            while left > 0 and not over():
                moves = min(left, PART)
                left -= moves
                made = self._kernels.even(
                    self.array, weight, room, order, low, high, step, most, moves
                )
                if made < moves:
                    break

    def _strict(self, most: int) -> NDArray[np.float64]:
        """Weights of all loads under which capacities are never broken, and behind them a share of
        ties so small that no tie counts as much as one unit of the objective."""
        weight = np.where(self._aimed, 1.0 / max(1, abs(most)), 2 * BROKEN)
        full = np.square(weight * self._loads(data.LIMIT)).sum()
        return np.append(weight, 0.5 / max(1, abs(most)) / max(1.0, full))

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
        return sum(self._excess())

    @property
    def over(self) -> float:
        """How far the present state exceeds the target and the capacities: the sum of shares."""
        target, capacity = self._excess()
        return target + capacity / self._parameters.capacity_weight

    def _excess(self) -> tuple[float, float]:
        """Penalty for what exceeds the target, and for what exceeds capacities."""
        share = np.maximum(self._loads(data.LOAD) - self._loads(data.LIMIT), 0) * self._weight
        return float(share[self._aimed].sum()), float(share[~self._aimed].sum())

    @property
    def value(self) -> int | None:
        """Objective of the best plan (a state without penalty) since the start; None: no plan."""
        found, value = self.array[data.TALLY : data.TALLY + 2]
        return int(value) if found and self._sound else None

    def plan(self) -> Placement | None:
        """The best plan since the start; None: no plan."""
        return None if self.value is None else self.placement(best=True)

    def placement(self, best: bool = False) -> Placement:
        """The placement of the present state, or the best plan since the start."""
        option, place = (data.BEST_OPTION, data.BEST_PLACE) if best else (data.OPTION, data.PLACE)
        tables, count = self._instance.num_tables, int(self.array[data.ASSIGNMENTS])
        options = self._lowered.view(option, tables, self.array).copy()
        places = self._lowered.view(place, count, self.array).tolist()
        start = self._lowered.view(data.STATE_START, tables + 1).tolist()
        ranks = [
            self._lowered.ranks(option, places[start[table] : start[table + 1]])
            for table, option in enumerate(options.tolist())
        ]
        return Placement(options, ranks)

    def _empty(self) -> None:
        self.array = self._lowered.array.copy()
        self.array[data.RANDOM] = (2 * self._seed + 1) * 0x1E3779B97F4A7C15 % 2**63
        limit = self._loads(data.LIMIT)
        self._weights = np.append(self._parameters.capacity_weight / np.maximum(1.0, limit), TIE)
        self._weight = self._weights[:-1]
        self._slot = np.arange(1)  # replica at each rung of the ladder

    def _loads(self, name: int) -> IntArray:
        """Loads or limits of all places, in the present state."""
        return self._lowered.view(name, int(self.array[data.LOADS]), self.array)

    def _limits_of_target(self) -> NDArray[np.bool_]:
        found = np.zeros(int(self.array[data.LOADS]), dtype=bool)
        ranks = found[: int(self.array[data.MACHINE_LOAD])]
        ranks.reshape(self._instance.num_ranks, -1)[:, : self._peaks] = True
        found[int(self.array[data.CLUSTER_LOAD]) :][:1] = not self._peaks
        return found
