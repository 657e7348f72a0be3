"""Where TorchRec's planner puts tables whose type and kernel are all given.

With one option a table every proposer proposes the same plan, so what comes out is one call of
``GreedyPerfPartitioner(sort_by=storage)``: a function of the tables, their order and the memory.
:mod:`formulations.baselines.partition` has the same rules on an Instance, in whole picoseconds;
here sums are TorchRec's floats, whose last digit breaks ties.

References
----------
TorchRec 1.9.2, ``distributed/planner/partitioners.py`` and ``storage_reservations.py``
(``HeuristicalStorageReservation``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

from milp_planner.drawing.units import show_bytes
from milp_planner.errors import FallsShort
from milp_planner.integrations.replay.estimate import Asked, Bytes, Job, Perf, Shard, shards_of

EVERYWHERE = ("row_wise", "data_parallel")
_BY_MACHINE = ("table_row_wise", "table_column_wise", "grid_shard")


@dataclass
class _Rank:
    """A rank with the memory that is left, and the time so far."""

    number: int
    room: Bytes
    perf: Perf

    def take(self, shard: Shard) -> bool:
        """Hold a shard; False, and nothing changes, if it does not fit."""
        if not shard.storage.fits(self.room):
            return False
        self.room = Bytes(self.room.hbm - shard.storage.hbm, self.room.ddr - shard.storage.ddr)
        self.perf = self.perf.plus(shard.perf)
        return True


def room_of(hbm: int, ddr: int, tables: Iterable[Asked], batch: int, dense: int = 0) -> Bytes:
    """What TorchRec's reservation leaves of a rank: 85% of HBM, less dense part and inputs.

    ``dense`` are the bytes of the dense parameters, counted 6 times; a table's inputs are an id of
    8 bytes a sample, 20 times. Host memory is left whole.
    """
    inputs = sum(batch * 8 for _ in tables) * 20
    return Bytes(int((1 - 0.15) * hbm) - 6 * dense - inputs, ddr)


def partition(tables: Sequence[Asked], job: Job, room: Bytes) -> dict[str, tuple[int, ...]]:
    """The rank of every shard of every table, in shard order.

    Row-wise and data-parallel tables come first, on all ranks. The others follow by decreasing
    bytes, equal ones in the tables' order: each shard goes to the rank of least time so far on
    which it fits, ties to the lower place in its machine, then to the lower rank; tables bound to
    a machine go to the machine of least time. All shards of no time land on the rank of least
    time, since they add nothing to it.

    Raises
    ------
    FallsShort
        In the planner's words, if a shard fits nowhere.
    """
    ranks = [_Rank(number, room, Perf(0.0, 0.0, 0.0, 0.0)) for number in range(job.world)]
    shards = {table.name: shards_of(table, job) for table in tables}
    found: dict[str, tuple[int, ...]] = {}
    for table in tables:
        if table.sharding_type in EVERYWHERE:
            for rank, shard in zip(ranks, shards[table.name], strict=True):
                if not rank.take(shard):
                    raise _no_plan(table, shard, [rank])
            found[table.name] = tuple(range(job.world))
    for table in sorted(tables, key=lambda t: _total(shards[t.name]), reverse=True):
        if table.sharding_type not in EVERYWHERE:
            own = shards[table.name]
            found[table.name] = _placed(table, own, ranks, job.local)
    return found


def _total(shards: Sequence[Shard]) -> Bytes:
    return Bytes(sum(s.storage.hbm for s in shards), sum(s.storage.ddr for s in shards))


def _placed(
    table: Asked, shards: Sequence[Shard], ranks: list[_Rank], local: int
) -> tuple[int, ...]:
    if table.sharding_type in _BY_MACHINE:
        return _on_machines(table, shards, ranks, local)
    found = _one_by_one(shards, ranks, local)
    if found is None:
        raise _no_plan(table, shards[0], ranks)
    return found


def _one_by_one(shards: Sequence[Shard], ranks: list[_Rank], local: int) -> tuple[int, ...] | None:
    """Each shard on the rank of least time where it fits; None if one fits nowhere."""
    found = []
    for shard in shards:
        fitting = [rank for rank in ranks if shard.storage.fits(rank.room)]
        if not fitting:
            return None
        least = min(fitting, key=lambda r: (r.perf.total, r.number % local, r.number))
        least.take(shard)
        found.append(least.number)
    return tuple(found)


def _on_machines(
    table: Asked, shards: Sequence[Shard], ranks: list[_Rank], local: int
) -> tuple[int, ...]:
    """All shards on one machine or, of a grid, on neighbours in the order of their time."""
    machines = [ranks[first : first + local] for first in range(0, len(ranks), local)]
    order = sorted(machines, key=lambda machine: sum(rank.perf.total for rank in machine))
    for window in _windows(table, len(shards), order, local):
        copies = {rank.number: copy(rank) for rank in window}  # a grid may come back to a machine
        trial = [copies[rank.number] for rank in window]
        if table.sharding_type == "table_column_wise":
            found = _one_by_one(shards, trial, local) if _has_room(shards, window) else None
        else:
            found = _one_each(shards, trial)
        if found is not None:
            for rank, after in zip(window, trial, strict=True):
                rank.room, rank.perf = after.room, after.perf
            return found
    raise _no_plan(table, shards[0], ranks)


def _has_room(shards: Sequence[Shard], window: Sequence[_Rank]) -> bool:
    room = Bytes(sum(r.room.hbm for r in window), sum(r.room.ddr for r in window))
    return _total(shards).fits(room)


def _windows(
    table: Asked, shards: int, order: list[list[_Rank]], local: int
) -> Iterable[list[_Rank]]:
    count = shards // local if table.sharding_type == "grid_shard" else 1
    if table.sharding_type == "grid_shard" and count >= len(order):
        yield [rank for i in range(count) for rank in order[i % len(order)]]
        return
    for start in range(len(order) - count + 1):
        yield [rank for machine in order[start : start + count] for rank in machine]


def _one_each(shards: Sequence[Shard], ranks: Sequence[_Rank]) -> tuple[int, ...] | None:
    for shard, rank in zip(shards, ranks, strict=True):
        if not rank.take(shard):
            return None
    return tuple(rank.number for rank in ranks)


def _no_plan(table: Asked, shard: Shard, ranks: Sequence[_Rank]) -> FallsShort:
    tier = "ddr" if shard.storage.ddr > max(rank.room.ddr for rank in ranks) else "hbm"
    most = max(getattr(rank.room, tier) for rank in ranks)
    needed = getattr(shard.storage, tier)
    return FallsShort(
        f"its planner finds no rank for a shard of {table.name!r} ({table.sharding_type}): it "
        f"counts {show_bytes(needed)} of {tier.upper()} for it and has {show_bytes(max(most, 0))}"
    )
