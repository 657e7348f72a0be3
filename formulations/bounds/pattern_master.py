"""The linear program over rank patterns, and the proof its prices give, in integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.highs import solve_highs
from formulations.aggregate.linear import LinearModel
from formulations.bounds.own import total_use
from formulations.bounds.rank_items import RankClass, RankItems
from formulations.instance import Instance, IntArray, Scope

#: Prices are rounded to integers up to this, so that sums stay below 2^53.
_SCALE = 2**36
#: Further factor of the prices of one byte of a pooled resource.
_FINE = 2**30
_MANY = 10**6

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Prices:
    """Multipliers: for covering an item once, and for a byte of each pooled resource.

    Attributes
    ----------
    item : float array [items]
    pooled : float array [pooled resources]
    """

    item: FloatArray
    pooled: FloatArray

    def towards(self, other: Prices, share: float) -> Prices:
        """A mean of two, with ``share`` of the other."""
        return Prices(
            (1 - share) * self.item + share * other.item,
            (1 - share) * self.pooled + share * other.pooled,
        )

    def whole(self) -> IntArray:
        """Item prices as integers, int64 array [items]."""
        top = float(self.item.max(initial=0.0)) or 1.0
        return np.round(self.item / top * _SCALE).astype(np.int64)

    def whole_pooled(self) -> list[int]:
        """Pooled prices on the scale of :meth:`whole`, times a further factor."""
        top = float(self.item.max(initial=0.0)) or 1.0
        return [round(p / top * _SCALE * _FINE) for p in self.pooled.tolist()]


class PatternMaster:
    """Cover one option a table with as few ranks as possible, relative to those there are.

    minimise θ subject to, with λ the patterns used and x the options,

        Σ_p λ_p·(shards like item i in p) ≥ count_i·x_o   for every item i of option o
        Σ_{o of t} x_o = 1                                for every table t
        Σ_{p of class k} λ_p ≤ N_k·θ                      for every class of ranks
        Σ_o use_o·x_o ≤ capacity·θ                        for every pooled resource.

    θ > 1 at the optimum means that no plan fits.

    Parameters
    ----------
    instance : Instance
    items : RankItems
    classes : list of RankClass
    options : int64 array
        Options whose shards all fit some rank.
    """

    def __init__(
        self, instance: Instance, items: RankItems, classes: Sequence[RankClass], options: IntArray
    ) -> None:
        self._items, self._classes, self._options = items, classes, options
        self._table = instance.table_of[options]
        self._tables = instance.num_tables
        pooled = [i for i, r in enumerate(instance.resources) if r.scope != Scope.RANK]
        self._use = total_use(instance)[options][:, pooled]
        self._room = [int(instance.resources[i].capacity.sum()) for i in pooled]
        self._column = np.full(instance.num_options, -1, dtype=np.int64)
        self._column[options] = np.arange(len(options))

    def solve(self, patterns: Sequence[tuple[int, IntArray]]) -> tuple[float, Prices] | None:
        """Least θ with these patterns, and its prices; None when some item is in no pattern.

        Parameters
        ----------
        patterns : sequence of (class, int64 array [items])
        """
        model = LinearModel()
        model.columns(len(self._options), whole=False)
        theta = model.columns(1, upper=_MANY, whole=False)
        first = model.columns(len(patterns), upper=_MANY, whole=False)
        model.objective[theta] = 1
        self._cover(model, first, patterns)
        self._one_option_each(model)
        for index, rank in enumerate(self._classes):
            used = [first + p for p, (k, _) in enumerate(patterns) if k == index]
            model.row([*used, theta], [1] * len(used) + [-rank.size], high=0)
        for index, room in enumerate(self._room):
            columns = [*range(len(self._options)), theta]
            model.row(columns, [*self._use[:, index].tolist(), -room], high=0)
        result = solve_highs(model, whole=False)
        if result.status != "optimal" or result.duals is None:
            return None
        number = self._items.number
        pooled = -result.duals[model.num_rows - len(self._room) :]
        prices = Prices(np.maximum(result.duals[:number], 0.0), np.maximum(pooled, 0.0))
        return float(result.objective or 0.0), prices

    def pooled(self, target: int) -> Prices | None:
        """Prices at which a shard pays for the memory and the time it takes, ranks pooled.

        A first guess: with them the proof is as strong as the LP over pooled places.
        """
        items = self._items
        load = np.column_stack([items.use, items.cost])
        room = [
            sum(c.size * part for c, part in zip(self._classes, parts, strict=True))
            for parts in zip(*((*c.capacity, target) for c in self._classes), strict=True)
        ]
        total = np.zeros((len(self._column), load.shape[1]), dtype=np.int64)
        np.add.at(total, items.option, load * items.count[:, None])
        model = LinearModel()
        model.columns(len(self._options), whole=False)
        theta = model.columns(1, upper=_MANY, whole=False)
        model.objective[theta] = 1
        self._one_option_each(model)
        rows = np.column_stack([total[self._options], self._use])
        for index, most in enumerate([*room, *self._room]):
            columns = [*range(len(self._options)), theta]
            model.row(columns, [*rows[:, index].tolist(), -most], high=0)
        result = solve_highs(model, whole=False)
        if result.status != "optimal" or result.duals is None:
            return None
        dual = np.maximum(-result.duals[self._tables :], 0.0)
        return Prices(load.astype(np.float64) @ dual[: load.shape[1]], dual[load.shape[1] :])

    def _one_option_each(self, model: LinearModel) -> None:
        for table in range(self._tables):
            own = np.flatnonzero(self._table == table)
            model.row(own, np.ones(len(own), dtype=np.int64), 1, 1)

    def _cover(
        self, model: LinearModel, first: int, patterns: Sequence[tuple[int, IntArray]]
    ) -> None:
        held = np.asarray([p for _, p in patterns], dtype=np.int64)
        held = held.reshape(len(patterns), self._items.number)
        for item in range(self._items.number):
            own = int(self._column[self._items.option[item]])
            using = np.flatnonzero(held[:, item])
            columns, counts = first + using, held[using, item]
            if own >= 0:
                columns = np.append(columns, own)
                counts = np.append(counts, -int(self._items.count[item]))
            model.row(columns, counts, low=0)

    def sides(self, prices: Prices, most: Sequence[int]) -> tuple[int, int]:
        """What every choice of options is worth at least, and what all ranks hold at most.

        The first above the second proves that no plan fits: in a plan, the worth of the options
        chosen is that of the patterns on its ranks plus that of the pooled resources used.

        Parameters
        ----------
        prices : Prices
        most : sequence of int
            Per class of ranks, an upper limit on the worth of one pattern at ``prices.whole()``.
        """
        items, pooled = self._items, prices.whole_pooled()
        worth = np.zeros(len(self._column), dtype=np.int64)
        np.add.at(worth, items.option, prices.whole() * items.count)
        value = worth[self._options].astype(object) * _FINE
        for index, price in enumerate(pooled):
            value = value + self._use[:, index].astype(object) * price
        least = sum(int(min(value[self._table == t])) for t in range(self._tables))
        ranks = sum(c.size * w for c, w in zip(self._classes, most, strict=True))
        return least, ranks * _FINE + sum(p * r for p, r in zip(pooled, self._room, strict=True))
