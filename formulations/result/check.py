"""The solver-free check: is a placement feasible, and what does it cost?

Everything is recomputed from the Instance in integers. No formulation may return a placement that
:func:`check` rejects, and every objective that is shown is the one computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Pin, Scope
from formulations.instance.assigning import misplaced
from formulations.result.piles import Piles, piles, position_entries
from formulations.result.placement import Placement, current_part, same_ranks


@dataclass(frozen=True, eq=False)
class Loads:
    """The loads of a placement.

    Attributes
    ----------
    cost : int64 array [ranks, phases]
    unplaced_cost : int64 array [phases]
        Cost of ``CLUSTER`` blocks, which counts only towards ``total``.
    use : list [resources] of int64 array [places]
    """

    cost: IntArray
    unplaced_cost: IntArray
    use: list[IntArray]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The judgement of one placement.

    Attributes
    ----------
    violations : tuple of str
        One sentence each; empty when the placement is feasible.
    objectives : dict
        ``total``, ``busiest_rank`` and ``step_time``, or ``pipelined_step`` alone where that is
        minimised; empty when the placement is not well formed.
    loads : Loads or None
    """

    violations: tuple[str, ...]
    objectives: dict[str, int]
    loads: Loads | None

    @property
    def feasible(self) -> bool:
        """Whether no constraint is violated."""
        return not self.violations


def check(instance: Instance, placement: Placement) -> Verdict:
    """Judge a placement against every constraint family of the instance.

    Parameters
    ----------
    instance : Instance
    placement : Placement

    Returns
    -------
    Verdict
    """
    malformed = list(_malformed(instance, placement))
    if malformed:
        return Verdict(tuple(malformed), {}, None)
    return judge(instance, placement, compute_loads(instance, placement))


def judge(instance: Instance, placement: Placement, loads: Loads) -> Verdict:
    """:func:`check` of a placement known to be well formed, from its loads."""
    violations = [
        *_capacity(instance, loads),
        *_fusion(instance, placement),
        *_pins(instance, placement),
        *_moves(instance, placement),
    ]
    return Verdict(tuple(violations), objectives(instance, loads), loads)


def objectives(instance: Instance, loads: Loads) -> dict[str, int]:
    """All objectives of a placement from its loads; under ``pipelined_step`` that alone, because
    the phases of such an instance are other ones."""
    if instance.objective == Objective.PIPELINED_STEP:
        return {instance.objective.value: int(exposed(instance, loads).sum())}
    return {
        Objective.TOTAL.value: int(loads.cost.sum() + loads.unplaced_cost.sum()),
        Objective.BUSIEST_RANK.value: int(loads.cost.sum(axis=1).max()),
        Objective.STEP_TIME.value: int(loads.cost.max(axis=0).sum()),
    }


def exposed(instance: Instance, loads: Loads) -> IntArray:
    """Time of the busiest rank in each phase beyond what is hidden, int64 array [phases]."""
    return np.maximum(loads.cost.max(axis=0) - instance.hidden_time, 0)


def value_of(instance: Instance, placement: Placement) -> int | None:
    """Objective of a placement, from the solver-free check; None where it does not fit."""
    verdict = check(instance, placement)
    return verdict.objectives[instance.objective.value] if verdict.feasible else None


def compute_loads(
    instance: Instance, placement: Placement, tables: Iterable[int] | None = None
) -> Loads:
    """Sum the cost and use of every shard at its place (the placement must be well formed).

    With ``tables``, sum only over their shards.
    """
    return loads_of(instance, piles(instance, placement, tables))


def loads_of(instance: Instance, held: Piles) -> Loads:
    """The loads of all places from those of the ranks."""
    use = [gather(instance, i, held.use, int(off)) for i, off in enumerate(held.off_use)]
    return Loads(held.cost, held.off_cost, use)


def gather(instance: Instance, index: int, per_rank: IntArray, off: int) -> IntArray:
    """Use of one resource at its places, from use [ranks, resources] and the use on no rank."""
    scope = instance.resources[index].scope
    if scope == Scope.RANK:
        return per_rank[:, index]
    if scope == Scope.CLUSTER:
        return np.asarray([per_rank[:, index].sum() + off], dtype=np.int64)
    use = np.zeros(len(instance.machines), dtype=np.int64)
    np.add.at(use, instance.machine_of, per_rank[:, index])
    return use


def _malformed(instance: Instance, placement: Placement) -> Iterator[str]:
    if len(placement.options) != instance.num_tables or len(placement.ranks) != instance.num_tables:
        found = f"options of {len(placement.options)} and ranks of {len(placement.ranks)} tables"
        yield f"the placement has {found}, the instance {instance.num_tables} tables"
        return
    for table, option in enumerate(placement.options):
        name = instance.table_names[table]
        if int(option) not in instance.options_of(table):
            yield f"table {name!r}: option index {int(option)} is not one of its options"
            continue
        blocks = instance.blocks_of(int(option))
        if len(placement.ranks[table]) != len(blocks):
            yield f"table {name!r}: ranks for {len(placement.ranks[table])} of {len(blocks)} blocks"
            continue
        for block, ranks in zip(blocks, placement.ranks[table], strict=True):
            problem = misplaced(instance, instance.block(block), np.asarray(ranks))
            if problem:
                yield f"table {name!r}, option {instance.option_names[int(option)]!r}: {problem}"


def _capacity(instance: Instance, loads: Loads) -> Iterator[str]:
    for resource, use in zip(instance.resources, loads.use, strict=True):
        for place in np.flatnonzero(use > resource.capacity):
            over = int(use[place] - resource.capacity[place])
            at = "" if resource.scope == Scope.CLUSTER else f" {place}"
            yield (
                f"{resource.name} of {resource.scope.value}{at}: {int(use[place])} used, "
                f"{int(resource.capacity[place])} there, {over} too much"
            )


def _fusion(instance: Instance, placement: Placement) -> Iterator[str]:
    groups = instance.option_group[placement.options]
    levels = instance.option_level[placement.options]
    for group in np.unique(groups[groups >= 0]):
        found = np.unique(levels[groups == group])
        if len(found) > 1:
            yield (
                f"fusion group {instance.fusion_groups[group]!r}: its tables are at levels "
                f"{found.tolist()}, one level is needed"
            )


def _pins(instance: Instance, placement: Placement) -> Iterator[str]:
    for option in placement.options:
        if not instance.allowed[option]:
            table = int(instance.table_of[option])
            yield (
                f"table {instance.table_names[table]!r}: option "
                f"{instance.option_names[int(option)]!r} is forbidden or another is pinned"
            )
    for pin in instance.pins:
        if int(placement.options[pin.table]) == pin.option and not _pinned(pin, placement):
            yield f"table {instance.table_names[pin.table]!r}: not on its pinned ranks"


def _pinned(pin: Pin, placement: Placement) -> bool:
    return pin.ranks is None or same_ranks(pin.ranks, placement.to_lists(pin.table))


def moved_tables(instance: Instance, placement: Placement) -> list[int]:
    """Tables of ``current`` whose option or ranks (each block as a multiset) differ."""
    return [
        now.table
        for now in instance.current
        if int(placement.options[now.table]) != now.option
        or not same_ranks(now.ranks, placement.to_lists(now.table))
    ]


def missing_tables(instance: Instance) -> list[str]:
    """New tables, if the plan in production lacks only these and its own tables still fit."""
    part = current_part(instance)
    if part is None:
        return []
    known = np.flatnonzero(part.options >= 0).tolist()
    if any(_capacity(instance, compute_loads(instance, part, known))):
        return []
    return [instance.table_names[table] for table in np.flatnonzero(part.options < 0)]


def moved_bytes(instance: Instance, placement: Placement, tables: list[int]) -> int:
    """Bytes that move: ``move_bytes`` of every shard of the new placement of these tables."""
    total = 0
    for table in tables:
        blocks = instance.blocks_of(int(placement.options[table]))
        for index, ranks in zip(blocks, placement.ranks[table], strict=True):
            block = instance.block(index)
            if block.unplaced:
                ranks = np.zeros(block.count, dtype=np.int64)
            total += int(instance.shard_move[position_entries(instance, block, ranks)].sum())
    return total


def _moves(instance: Instance, placement: Placement) -> Iterator[str]:
    if not instance.limits_moves:
        return
    moved = moved_tables(instance, placement)
    if instance.max_moved_tables is not None and len(moved) > instance.max_moved_tables:
        yield f"{len(moved)} tables move, {instance.max_moved_tables} may"
    if instance.max_moved_bytes is not None:
        total = moved_bytes(instance, placement, moved)
        if total > instance.max_moved_bytes:
            yield f"{total} bytes move, {instance.max_moved_bytes} may"
