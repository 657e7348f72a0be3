"""Translate a Placement into the value of every column (a complete hint), and back."""

from __future__ import annotations

from collections import Counter

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import settled_ranks
from formulations.model.build import Model
from formulations.model.columns import Columns
from formulations.model.linear import LinearModel, Matrix
from formulations.model.symmetry import renamed
from formulations.result.check import check
from formulations.result.placement import Placement, machine_ranks, same_ranks

#: Kind of shard -> ranks.
Named = dict[int, list[int]]


def encode(model: Model, placement: Placement) -> IntArray | None:
    """The value of every column under a placement, for any partition.

    Dependent columns (peaks, shared loads, levels, overflows) take the least value that their rows
    allow.

    Returns
    -------
    int64 array [columns], or None when the model lacks an option or place that the placement uses.
    """
    columns = model.columns
    candidates = columns.candidates
    values = np.zeros(model.linear.num_columns, dtype=np.int64)
    taken = _candidates(candidates, placement, np.unique(candidates.table))
    if taken is None:
        return None
    values[columns.x[taken]] = 1
    wanted = _shards(model, placement, taken)
    if wanted is None:
        return None
    for column, value in wanted.items():
        values[column] = value
    if (values > model.linear.upper).any():
        return None
    _follow(model.linear, values, len(columns.owners))
    return values


def fitted(model: Model, placement: Placement, replacement: IntArray) -> IntArray | None:
    """Values for a plan that the model can represent and that costs no more than the given one.

    Options that presolve removed are replaced by those that dominate them (``replacement``
    [options]); interchangeable ranks are permuted into the order that an ordered model requires.

    Returns
    -------
    int64 array [columns] or None
        None when the plan violates a constraint or cannot be represented.
    """
    candidates = model.columns.candidates
    instance = candidates.instance
    if not check(instance, placement).feasible:
        return None
    options = replacement[placement.options]
    if (options < 0).any():
        return None
    plan = Placement(options, placement.ranks)
    if model.parts.ordered:
        plan = renamed(candidates, plan)
    return encode(model, plan) if check(instance, plan).feasible else None


def _candidates(candidates: Candidates, placement: Placement, tables: IntArray) -> IntArray | None:
    """The candidate of each open table; the one that stays, if the table does not move."""
    instance = candidates.instance
    stays = {int(candidates.option[c]): int(c) for c in np.flatnonzero(candidates.stays)}
    moving = np.flatnonzero(~candidates.stays)
    free = np.full(instance.num_options, -1, dtype=np.int64)
    free[candidates.option[moving]] = moving
    current = {c.table: c for c in instance.current}
    taken = free[placement.options[tables]]
    for index, table in enumerate(tables.tolist()):
        option, now = int(placement.options[table]), current.get(table)
        here = now is not None and now.option == option and option in stays
        if here and now is not None and same_ranks(now.ranks, placement.to_lists(table)):
            taken[index] = stays[option]
    return None if (taken < 0).any() else taken


def _shards(model: Model, placement: Placement, taken: IntArray) -> dict[int, int] | None:
    """Values of the placing columns; None where the model lacks a place."""
    columns = model.columns
    assignments, rows = columns.assignments, columns.taken
    mine, own = np.isin(assignments.candidate, taken), np.isin(rows.candidate, taken)
    free = {int(b) for b in assignments.block[mine]}
    held = {int(b) for b in rows.block[own]}
    assigned, machines = _counted(model, placement, taken, (free, held))
    found: dict[int, int] = {}
    keys = (assignments.block, assignments.entry, assignments.cell, assignments.kind)
    fits = _assign(found, assigned, (*keys, assignments.column, assignments.each), mine)
    fits &= _assign(found, machines, (rows.block, rows.kind, rows.column, rows.each), own)
    return None if not fits or assigned or machines else found


def _counted(
    model: Model, placement: Placement, taken: IntArray, blocks: tuple[set[int], set[int]]
) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """Count the shards of (block, entry) in (cell, kind of machine), and the machines that (block,
    kind) takes, for the blocks that have columns for them."""
    candidates = model.columns.candidates
    instance, cells = candidates.instance, model.columns.partition.cell_of
    kind_of = _kind_of_machine(model)
    inside = {b for g in candidates.inside for b in g.block.tolist()}
    free, held = blocks
    assigned: Counter[tuple[int, ...]] = Counter()
    machines: Counter[tuple[int, ...]] = Counter()
    for table in candidates.table[taken].tolist():
        for index, block in enumerate(instance.blocks_of(int(placement.options[table]))):
            ranks = placement.ranks[table][index]
            if block in held and block not in inside:
                machines.update((block, m) for m in _machines_of(instance, ranks, kind_of))
            if block not in free:
                continue
            kind = -1
            if block in inside and block in held:
                kind = int(kind_of[instance.machine_of[ranks[0]]])
                machines[block, kind] += 1
            view = instance.block(block)
            for position, rank in enumerate(ranks.tolist()):
                entry = int(candidates.canonical[view.entry(position)])
                assigned[block, entry, int(cells[rank]), kind] += 1
    return assigned, machines


def _assign(
    found: dict[int, int],
    counts: Counter[tuple[int, ...]],
    table: tuple[IntArray, ...],
    mine: np.ndarray,
) -> bool:
    """Set the columns of a table (its last field but one) to their counts; False if one is
    missing."""
    for *key, column, each in zip(*(part[mine].tolist() for part in table), strict=True):
        count = counts.pop(tuple(key), 0)
        if each == 1:
            found[column] = count
        elif count not in (0, each):
            return False
    return True


def _kind_of_machine(model: Model) -> IntArray:
    kind_of = np.empty(len(model.columns.candidates.instance.machines), dtype=np.int64)
    for index, kind in enumerate(model.columns.partition.kinds):
        kind_of[kind.machines] = index
    return kind_of


def _machines_of(instance: Instance, ranks: IntArray, kind_of: IntArray) -> list[int]:
    """Kind of every machine in a list of whole machines."""
    firsts = {m[0]: index for index, m in enumerate(instance.machines)}
    return [int(kind_of[firsts[r]]) for r in ranks.tolist() if r in firsts]


def _follow(model: LinearModel, values: IntArray, first: int) -> None:
    """Set the columns from ``first`` on to the least values that their rows allow."""
    matrix = model.matrix()
    row = np.repeat(np.arange(model.num_rows), np.diff(matrix.start))
    activity = np.zeros(model.num_rows, dtype=np.int64)
    np.add.at(activity, row, matrix.coefficient * values[matrix.column])
    order = np.argsort(matrix.column, kind="stable")
    ends = np.searchsorted(matrix.column[order], np.arange(len(values) + 1))
    upper, raised = model.upper, True
    while raised:  # a column may depend on one that was added later
        raised = False
        for column in range(first, len(values)):
            mine = order[ends[column] : ends[column + 1]]
            rise = _missing(matrix, row[mine], matrix.coefficient[mine], activity)
            rise = min(rise, int(upper[column] - values[column]))
            if rise > 0:
                raised = True
                values[column] += rise
                np.add.at(activity, row[mine], matrix.coefficient[mine] * rise)


def _missing(matrix: Matrix, rows: IntArray, coefficient: IntArray, activity: IntArray) -> int:
    """How much a column must grow to satisfy the rows in which its coefficient is negative."""
    below = coefficient < 0
    excess = activity[rows[below]] - matrix.high[rows[below]]
    return int(np.max(-(-excess // -coefficient[below]), initial=0))


def chosen(model: Model, values: np.ndarray) -> IntArray:
    """Candidate of every table in a solution over any partition, −1 for closed tables."""
    columns = model.columns
    found = np.full(columns.candidates.instance.num_tables, -1, dtype=np.int64)
    taken = np.flatnonzero(np.asarray(values)[columns.x] > 0.5)
    found[columns.candidates.table[taken]] = taken
    return found


def chosen_options(model: Model, values: np.ndarray) -> IntArray | None:
    """Option of every table in a solution; None if a table has none."""
    taken = chosen(model, values)
    return None if (taken < 0).any() else model.columns.candidates.option[taken]


def chosen_machines(model: Model, values: np.ndarray) -> IntArray:
    """Machine of every table in a solution over whole machines; −1 if it lies on several, or on one
    that the partition does not distinguish."""
    columns, partition = model.columns, model.columns.partition
    values, taken = np.rint(np.asarray(values)).astype(np.int64), chosen(model, values)
    machine_of = np.full(partition.count, -1, dtype=np.int64)
    for cell in range(partition.count):
        here = np.unique(partition.instance.machine_of[partition.cell_of == cell])
        machine_of[cell] = here[0] if len(here) == 1 else -1
    found: dict[int, set[int]] = {}
    for (candidate, _), kinds in _assigned(columns, values, taken).items():
        cells = [cell for named in kinds.values() for cell in named]
        found.setdefault(candidate, set()).update(machine_of[cells].tolist())
    for (candidate, _), machines in _machines(columns, values, taken).items():
        found.setdefault(candidate, set()).update(machines)
    ways = [found.get(int(candidate), set()) for candidate in taken]
    return np.asarray([next(iter(way)) if len(way) == 1 else -1 for way in ways], dtype=np.int64)


def decode(model: Model, values: IntArray) -> Placement:
    """The placement of a solution; closed tables stay as they are."""
    columns, base = model.columns, model.parts.base
    candidates, instance = columns.candidates, columns.candidates.instance
    taken = chosen(model, values)
    options = np.full(len(taken), -1, dtype=np.int64) if base is None else base.options.copy()
    ranks: list[list[IntArray]] = [[] for _ in taken] if base is None else list(base.ranks)
    assignments, machines = _assigned(columns, values, taken), _machines(columns, values, taken)
    for table in np.flatnonzero(taken >= 0).tolist():
        candidate = int(taken[table])
        options[table] = candidates.option[candidate]
        ranks[table] = [
            _by_kind(candidates, block, assignments[candidate, block])
            if (candidate, block) in assignments
            else machine_ranks(instance, machines[candidate, block])
            if (candidate, block) in machines
            else settled_ranks(candidates, candidate, block)
            for block in instance.blocks_of(int(options[table]))
        ]
    return Placement(options, ranks)


def _assigned(columns: Columns, values: IntArray, taken: IntArray) -> dict[tuple[int, int], Named]:
    """Ranks of freely placed shards, by (candidate, block), then by kind of shard."""
    assignments = columns.assignments
    times = values[assignments.column] * assignments.each
    table = columns.candidates.table[assignments.candidate]
    found: dict[tuple[int, int], Named] = {}
    for i in np.flatnonzero((times > 0) & (taken[table] == assignments.candidate)).tolist():
        kinds = found.setdefault((int(assignments.candidate[i]), int(assignments.block[i])), {})
        kinds.setdefault(int(assignments.entry[i]), []).extend(
            [int(assignments.cell[i])] * int(times[i])
        )
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
    """Ranks in position order: each position takes a rank of its kind of shard."""
    view = candidates.instance.block(block)
    left = {entry: list(ranks) for entry, ranks in kinds.items()}
    kind = [int(candidates.canonical[view.entry(i)]) for i in range(view.count)]
    return np.asarray([left[k].pop(0) for k in kind], dtype=np.int64)
