"""From values of the columns to a Placement: over cells of one rank."""

from __future__ import annotations

import numpy as np

from formulations.instance import IntArray
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import settled_ranks
from formulations.model.build import Model
from formulations.model.columns import Columns
from formulations.result.placement import Placement, machine_ranks

Named = dict[int, list[int]]


def chosen(model: Model, values: np.ndarray) -> IntArray:
    """Candidate of every table in a solution over any partition, −1 for closed tables."""
    columns = model.columns
    found = np.full(columns.candidates.instance.num_tables, -1, dtype=np.int64)
    taken = np.flatnonzero(np.asarray(values)[columns.x] > 0.5)
    found[columns.candidates.table[taken]] = taken
    return found


def chosen_options(model: Model, values: np.ndarray) -> IntArray | None:
    """Option of every table in a solution; None when some table has none."""
    taken = chosen(model, values)
    return None if (taken < 0).any() else model.columns.candidates.option[taken]


def chosen_machines(model: Model, values: np.ndarray) -> IntArray:
    """Machine of every table in a solution over whole machines; −1 where it is on several, or
    none is told apart."""
    columns, partition = model.columns, model.columns.partition
    values, taken = np.rint(np.asarray(values)).astype(np.int64), chosen(model, values)
    machine_of = np.full(partition.count, -1, dtype=np.int64)
    for cell in range(partition.count):
        here = np.unique(partition.instance.machine_of[partition.cell_of == cell])
        machine_of[cell] = here[0] if len(here) == 1 else -1
    found: dict[int, set[int]] = {}
    for (candidate, _), kinds in _seated(columns, values, taken).items():
        cells = [cell for named in kinds.values() for cell in named]
        found.setdefault(candidate, set()).update(machine_of[cells].tolist())
    for (candidate, _), machines in _machines(columns, values, taken).items():
        found.setdefault(candidate, set()).update(machines)
    ways = [found.get(int(candidate), set()) for candidate in taken]
    return np.asarray([next(iter(way)) if len(way) == 1 else -1 for way in ways], dtype=np.int64)


def decode(model: Model, values: IntArray) -> Placement:
    """The placement that a solution says; closed tables stay as they are."""
    columns, base = model.columns, model.parts.base
    candidates, instance = columns.candidates, columns.candidates.instance
    taken = chosen(model, values)
    options = np.full(len(taken), -1, dtype=np.int64) if base is None else base.options.copy()
    ranks: list[list[IntArray]] = [[] for _ in taken] if base is None else list(base.ranks)
    seats, machines = _seated(columns, values, taken), _machines(columns, values, taken)
    for table in np.flatnonzero(taken >= 0).tolist():
        candidate = int(taken[table])
        options[table] = candidates.option[candidate]
        ranks[table] = [
            _by_kind(candidates, block, seats[candidate, block])
            if (candidate, block) in seats
            else machine_ranks(instance, machines[candidate, block])
            if (candidate, block) in machines
            else settled_ranks(candidates, candidate, block)
            for block in instance.blocks_of(int(options[table]))
        ]
    return Placement(options, ranks)


def _seated(columns: Columns, values: IntArray, taken: IntArray) -> dict[tuple[int, int], Named]:
    """Ranks of freely placed shards, by (candidate, block), then by kind of shard."""
    seats = columns.seats
    times = values[seats.column] * seats.each
    table = columns.candidates.table[seats.candidate]
    found: dict[tuple[int, int], Named] = {}
    for i in np.flatnonzero((times > 0) & (taken[table] == seats.candidate)).tolist():
        kinds = found.setdefault((int(seats.candidate[i]), int(seats.block[i])), {})
        kinds.setdefault(int(seats.entry[i]), []).extend([int(seats.cell[i])] * int(times[i]))
    return found


def _machines(
    columns: Columns, values: IntArray, taken: IntArray
) -> dict[tuple[int, int], list[int]]:
    """Machines taken, by (candidate, block)."""
    rows = columns.taken
    times = values[rows.column] * rows.each
    table = columns.candidates.table[rows.candidate]
    found: dict[tuple[int, int], list[int]] = {}
    for i in np.flatnonzero((times > 0) & (taken[table] == rows.candidate)).tolist():
        machine = int(columns.partition.kinds[int(rows.kind[i])].machines[0])
        block = (int(rows.candidate[i]), int(rows.block[i]))
        found.setdefault(block, []).extend([machine] * int(times[i]))
    return found


def _by_kind(candidates: Candidates, block: int, kinds: Named) -> IntArray:
    """Ranks in position order: each position takes one of its kind's."""
    view = candidates.instance.block(block)
    left = {entry: list(ranks) for entry, ranks in kinds.items()}
    kind = [int(candidates.canonical[view.entry(i)]) for i in range(view.count)]
    return np.asarray([left[k].pop(0) for k in kind], dtype=np.int64)
