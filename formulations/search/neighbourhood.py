"""The exact model of part of the cluster: some tables free, some ranks open, the rest as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.linear import LinearModel
from formulations.instance import Instance, IntArray
from formulations.placement import Placement
from formulations.search.links import add_fusion_rows, add_move_rows
from formulations.search.rows import add_load_rows
from formulations.search.seats import BlockSeats, Seats, seat_values, seated_ranks
from formulations.search.state import Load


@dataclass(frozen=True, eq=False)
class Part:
    """Which part of a placement is open.

    Attributes
    ----------
    tables : sequence of int
        Tables whose option and ranks are chosen anew.
    free : bool array [ranks]
        Ranks that their movable shards may take.
    keep : bool array [options]
        Options in the game.
    limit : int or None
        Objective not to be exceeded.
    repair : bool
        Minimise what exceeds the capacities instead of the objective.
    soft : bool
        While repairing, what exceeds ``limit`` is paid for as well (else it is forbidden).
    """

    tables: Sequence[int]
    free: np.ndarray
    keep: np.ndarray
    limit: int | None = None
    repair: bool = False
    soft: bool = True


class Neighbourhood:
    """A model of the open part of a placement.

    Attributes
    ----------
    model : LinearModel
    """

    def __init__(
        self, instance: Instance, costs: IntArray, placement: Placement, rest: Load, part: Part
    ) -> None:
        self._instance, self._placement, self._part = instance, placement, part
        self.model = LinearModel()
        seats = Seats(instance, self.model, part.free)
        self._seats: dict[int, list[BlockSeats]] = {}
        self._column: dict[int, int] = {}
        for table in part.tables:
            self._add_table(table, seats)
        self._placing = self.model.num_columns
        add_load_rows(instance, costs, self.model, seats.terms, rest, part)
        add_fusion_rows(instance, self.model, placement, part.tables, self._column)
        add_move_rows(instance, self.model, placement, part.tables, self._column, self._seats)

    def _add_table(self, table: int, seats: Seats) -> None:
        columns = []
        for option in self._instance.options_of(table):
            if not self._part.keep[option]:
                continue
            column = self.model.columns(1)
            made = seats.add(option, column)
            if made is None:
                self.model.row([column], [1], high=0)
                continue
            self._column[option], self._seats[option] = column, made
            columns.append(column)
        self.model.row(columns, [1] * len(columns), 1, 1)

    def hint(self) -> dict[int, int] | None:
        """The present placement as values of the placing columns; None when it has no seat here.

        Columns derived from these (peaks, overflows, levels) are left to the solver.
        """
        values = dict.fromkeys(range(self._placing), 0)
        for table in self._part.tables:
            option = int(self._placement.options[table])
            if option not in self._column:
                return None
            values[self._column[option]] = 1
            for seats, ranks in zip(self._seats[option], self._placement.ranks[table], strict=True):
                found = seat_values(self._instance, seats, ranks)
                if found is None:
                    return None
                values.update(found)
        return values

    def placement(self, values: IntArray) -> Placement:
        """The placement with the open tables placed as a solution says."""
        options = self._placement.options.copy()
        ranks = list(self._placement.ranks)
        for option, column in self._column.items():
            if values[column]:
                table = int(self._instance.table_of[option])
                options[table] = option
                ranks[table] = [
                    seated_ranks(self._instance, seats, values) for seats in self._seats[option]
                ]
        return Placement(options, ranks)
