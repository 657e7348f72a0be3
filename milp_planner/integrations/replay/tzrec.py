"""TorchEasyRec: TorchRec's planner with the true batch and memory, and a proposer of its own.

With type and kernel of every TorchRec table given, its proposer has one option for each and what
is left is TorchRec's greedy partitioner. Load factor, width and ranks have no field. dynamicemb
tables are row-wise on all ranks; mode and ratio are its proposer's choice.

References
----------
alibaba/TorchEasyRec 54cac316, ``tzrec/utils/plan_util.py:93-206`` and ``tzrec/main.py:783-803``;
read, not run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from formulations.baselines.dp.transition import Choices, Grid, origin, step
from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec, ShardingType
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import tzrec
from milp_planner.integrations.replay import Pins, Ran, Trainer, proposals
from milp_planner.integrations.replay.estimate import (
    LOAD_FACTOR,
    Asked,
    Bytes,
    Job,
    asked_of,
    dense_bytes,
    least_width,
    machines_of,
    pins_of,
    shards_of,
    tiers,
)
from milp_planner.integrations.replay.greedy import partition, room_of
from milp_planner.integrations.replay.proposals import Proposal
from milp_planner.pricing.options import MODE_OF_KERNEL, Choice

WHY = (
    "its planner takes every table for one id a sample; "
    "export --to torchrec-callback runs a plan for any trainer there"
)
_RATIO = {"HBM_ONLY": Fraction(1), "HOST_ONLY": Fraction(0)}


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """The only way: types and kernels through the planner, dynamicemb tables as planned."""
    world, local = machines_of(cluster)
    static = [table for table in model.tables if table.kind == "torchrec"]
    tables = asked_of(static, asked)
    dynamic = {t.name: planned[t.name] for t in model.tables if t.kind == "dynamicemb"}
    hbm = min(rank.hbm_bytes for rank in cluster.ranks)
    ddr = min(machine.ddr_bytes // local for machine in cluster.machines)
    batch = model.workload.batch_per_rank
    room = room_of(hbm, ddr, tables, batch, dense_bytes(model, cluster))
    for name, pin in dynamic.items():
        held = _held(model.table(name), pin, model, world)
        room = Bytes(room.hbm - held.hbm, room.ddr - held.ddr)
    pins = pins_of(tables, partition(tables, Job(world, local, batch), room))
    yield Ran(pins | dynamic, left=_left(dynamic))


def _held(table: Table, pin: PinSpec, model: Model, world: int) -> Bytes:
    """Bytes that the planner counts on every rank for a dynamicemb table as planned."""
    mode = pin.mode or "HBM_ONLY"
    ratio = pin.cache_ratio if pin.cache_ratio is not None else _RATIO[mode]
    kernel = "CACHING" if mode == "CACHING" else "HYBRID"
    return tiers(_dynamic(table, model, kernel, ratio), -(-table.rows // world))


def _dynamic(table: Table, model: Model, kernel: str, ratio: Fraction) -> Asked:
    """A dynamicemb table as its planner sees it, one id a feature."""
    return Asked(
        table.name, table.rows, table.dim, table.element_bytes, model.optimizer_of(table),
        "row_wise", kernel, table.output == "pooled", weighted=table.weighted,
        load_factor=ratio, bucket=table.bucket_capacity,
    )  # fmt: skip


def _left(dynamic: Pins) -> tuple[str, ...]:
    if not dynamic:
        return ()
    return (
        f"mode and ratio of {len(dynamic)} dynamicemb tables are the choice of TorchEasyRec's own "
        "proposer, which is not replayed: they are taken from the plan",
    )


def runs_now(text: str, model: Model, cluster: Cluster) -> dict[str, PinSpec]:
    """What the trainer runs of a config, on the model with what the config states.

    What it leaves open is what the trainer's two proposers make of it: its dynamic programme
    (:func:`_programme`), and one type for all tables. FallsShort if it would stop.
    """
    world, local = machines_of(cluster)
    asked, batch = tzrec.spaces(text, model), model.workload.batch_per_rank
    spaces = [_options(table, asked.get(table.name), model, world == local)
              for table in model.tables]  # fmt: skip
    hbm = min(rank.hbm_bytes for rank in cluster.ranks)
    ddr = min(machine.ddr_bytes // local for machine in cluster.machines)
    room = room_of(hbm, ddr, [own[0] for own in spaces], batch, dense_bytes(model, cluster))
    job = Job(world, local, batch)
    proposed = chain(_programme(spaces, job, room), proposals.uniform(spaces, job))
    return pins_of(*proposals.plan(spaces, job, room, proposed))


_POOLED: tuple[ShardingType, ...] = (
    "data_parallel", "table_wise", "column_wise", "table_column_wise", "row_wise",
    "table_row_wise", "grid_shard",
)  # fmt: skip
"""Types that the sharders of pooled collections offer, in their order."""
_SEQUENCE: tuple[ShardingType, ...] = ("data_parallel", "table_wise", "column_wise", "row_wise")
_TENTHS = tuple(Fraction(n, 10) for n in range(1, 11))


def _options(table: Table, asked: tzrec.Space | None, model: Model, alone: bool) -> list[Asked]:
    """What the planner may make of a table; on one machine, of two names for the same the first."""
    if asked is None:
        return [_dynamic(table, model, k, x) for k in ("HYBRID", "CACHING") for x in _TENTHS]
    kinds, kernels = asked
    offered = _POOLED if table.output == "pooled" else _SEQUENCE
    found = []
    for kind in offered:
        if kind not in kinds if kinds else alone and kind in _ALONE:
            continue
        fits = ("dense",) if kind == "data_parallel" else ("fused", "fused_uvm", _CACHED)
        pins = [PinSpec(mode=MODE_OF_KERNEL[each], sharding_type=_ALONE.get(kind, kind) if alone
                        else kind) for each in fits if each in kernels or not kernels]  # fmt: skip
        found += [asked_of([table], {table.name: pin})[0] for pin in pins]
    if not found:
        raise FallsShort(
            f"table {table.name!r}: the trainer would stop with 'No available sharding type and "
            f"compute kernel combination': {', '.join([*kinds, *kernels])}"
        )
    return found


_CACHED = "fused_uvm_caching"
_ALONE: dict[str, ShardingType] = {
    "table_row_wise": "row_wise", "table_column_wise": "column_wise",
}  # fmt: skip
"""What types are called on a single machine."""
BINS = 100, 25
"""Bins of HBM and of host memory for each rank."""
MOST_CELLS = 200_000
"""Bins of both in all, here: on more than eight ranks each is larger than the trainer's."""


def _programme(tables: Sequence[Sequence[Asked]], job: Job, room: Bytes) -> Iterator[Proposal]:
    """Every table's smallest option; then, for each bin of HBM from the last, the least sum of
    times, under the sum of all memory.
    """
    held = [sorted(own, key=lambda o: sum(_bytes(o, job))) for own in tables]
    yield tuple(own[0] for own in held)
    total = [job.world * each for each in room]
    bins = [job.world * n if each > 0 else 1 for n, each in zip(BINS, total, strict=True)]
    finer = min(1.0, math.sqrt(MOST_CELLS / (bins[0] * bins[1])))
    grid = Grid(*(max(1, int(each * finer)) for each in bins))
    cells, steps = origin(np.float32), []
    order = sorted(range(len(held)), key=lambda t: sum(_bytes(held[t][0], job)))
    for table in order:
        own = [i for i, o in enumerate(held[table]) if _fits(o, job, room)]
        use = np.array([_bytes(held[table][i], job) for i in own]).reshape(len(own), 2)
        hbm, ddr = (
            (use[:, m] * (n / each if each > 0 else 0.0)).astype(np.float32)
            for m, (n, each) in enumerate(zip((grid.hbm, grid.ddr), total, strict=True))
        )
        times = [sum(s.perf.total for s in shards_of(held[table][i], job)) for i in own]
        choices = Choices(np.array(own), hbm, ddr, np.array(times, dtype=np.float32))
        cells, last = step(cells, choices, grid)
        steps.append((table, own, last))
    by_bin = np.lexsort((cells.cost, cells.cell // grid.ddr))
    starts = np.flatnonzero(np.diff((cells.cell // grid.ddr)[by_bin], prepend=-1))
    for end in by_bin[starts][::-1].tolist():
        found: dict[int, Asked] = {}
        for table, own, last in reversed(steps):
            found[table], end = held[table][own[last.choice[end]]], last.previous[end]
        yield tuple(found[table] for table in range(len(held)))


def _bytes(option: Asked, job: Job) -> tuple[int, int]:
    stored = [shard.storage for shard in shards_of(option, job)]
    return sum(each.hbm for each in stored), sum(each.ddr for each in stored)


def _fits(option: Asked, job: Job, room: Bytes) -> bool:
    """Whether its largest shard fits in a rank's HBM and in a machine's host memory."""
    whole = Bytes(room.hbm, room.ddr * job.local)
    return all(shard.storage.fits(whole) for shard in shards_of(option, job))


def can_run(table: Table, choice: Choice) -> bool:
    """TorchRec's default load factor, and the least legal width from 128."""
    if table.kind != "torchrec":
        return choice.mode != "HOST_ONLY" and choice.dist_type == "roundrobin"
    if choice.columns > 1 and choice.width != least_width(table.dim):
        return False
    if choice.mode == "CACHING" and choice.ratio != LOAD_FACTOR:
        return False
    return choice.mode != "SSD" and not choice.stash


def grid(table: Table) -> dict[str, Any]:
    """Its width of column shards and its load factor."""
    if table.kind != "torchrec":
        return {}
    return {"column_widths": least_width(table.dim), "cache_ratios": LOAD_FACTOR}


TRAINER = Trainer(
    runs, True, WHY, can_run=can_run, grid=grid,
    priced_otherwise=lambda model: tzrec.priced_otherwise(model.workload),
)  # fmt: skip
