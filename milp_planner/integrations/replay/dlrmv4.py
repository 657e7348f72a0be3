"""The MLPerf DLRMv4 trainer: TorchRec's default planner, which knows neither batch nor traffic.

It constrains the type and kernel of tables and calls ``EmbeddingShardingPlanner`` with a batch of
512, one id a feature, ``HBM_CAP_GB`` of HBM a rank and ``ddr_cap=0``, for one
``EmbeddingCollection`` with row-wise Adagrad and the exchange's types.

References
----------
mlcommons/training PR 889 at a67b8459, ``recommendation_v4/generative_recommenders/dlrm_v4/train/
utils.py:871-990``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from milp_planner.drawing.units import show_bytes
from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import Mode, PinSpec
from milp_planner.inputs.table import ELEMENT_BYTES, Table
from milp_planner.integrations.exports.dlrmv4 import (
    DEFAULT_CAP,
    HBM,
    NO_HOST_MEMORY,
    OFFERED,
    assignments,
    cap_of,
    has_host_memory,
    read,
    stated,
    turned_off,
)
from milp_planner.integrations.replay import Pins, Ran, Trainer, proposals
from milp_planner.integrations.replay.estimate import (
    GIB,
    Asked,
    Job,
    asked_of,
    dense_bytes,
    least_width,
    machines_of,
    pins_of,
    shards_of,
)
from milp_planner.integrations.replay.greedy import partition, room_of
from milp_planner.pricing.options import Choice

WHY = (
    "its planner takes every feature for one id a sample, in a batch of 512; "
    "export --to torchrec-callback runs a plan for any trainer there"
)
BATCH = 512
"""TorchRec's default batch."""
HOST = 128 * GIB
"""Bytes of host memory a rank that TorchRec up to 1.6 takes ``ddr_cap=0`` to mean."""
MOST_CAPS = 12
"""Most memory caps tried."""
MIB = 2**20
DENSE = 128 * MIB
"""Bytes of dense parameters up to which ranks are to stay the same, at least."""


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """The plan at the trainer's own cap or, lower, the ranks' whole GiB; then at tighter caps.

    Only where that stops is a cap tried that is higher than the ranks' memory, since the planner
    leaves 15% of it unused: whether the tables fit is for our ledger to say.
    """
    tables, job, dense = _given(asked, model, cluster)
    whole = min(rank.hbm_bytes for rank in cluster.ranks) // GIB
    cap = min(DEFAULT_CAP, whole)
    try:
        ranks = _planned(tables, job, cap, dense)
    except FallsShort:
        cap = min(DEFAULT_CAP, math.ceil(whole / 0.85))
        ranks = _planned(tables, job, cap, dense)
    for _ in range(MOST_CAPS):
        yield Ran(pins_of(tables, ranks), {HBM: "" if cap == DEFAULT_CAP else str(cap)})
        cap = _tighter(tables, ranks, job, cap, dense)
        try:
            ranks = _planned(tables, job, cap, dense)
        except FallsShort:
            return


def steady(ran: Ran, asked: Pins, model: Model, cluster: Cluster) -> Ran:
    """The cap with which the ranks stay the same for the widest range of dense parameters.

    Every cap that leads to the same ranks is replayed at no dense parameters and at the most, which
    is twice what the model states, and at least :data:`DENSE`; if none survives both, the one that
    survives most of either side.
    """
    tables, job, dense = _given(asked, model, cluster)
    most = max(2 * dense, DENSE)

    def same(cap: int, bytes_: int) -> bool:
        try:
            return pins_of(tables, _planned(tables, job, cap, bytes_)) == ran.pins
        except FallsShort:
            return False

    def kept(cap: int) -> tuple[float, int, int]:
        low = _last(lambda bytes_: same(cap, bytes_), dense, 0)
        high = _last(lambda bytes_: same(cap, bytes_), dense, most)
        either = (high - dense) / (most - dense), 1.0 if low == 0 else (dense - low) / dense
        return min(either), low, high

    cap = int(ran.settings[HBM] or DEFAULT_CAP)
    found: dict[int, tuple[float, int, int]] = {}
    while cap and same(cap, dense) and (not found or max(found.values())[0] < 1):
        found[cap] = kept(cap)
        cap -= 1
    best = max(found, key=lambda each: found[each][0])
    _, low, high = found[best]
    text = (
        f"these ranks hold for {show_bytes(low)} to {show_bytes(high)} of dense parameters, which "
        f"the trainer's planner counts 6 times; stated are {show_bytes(dense)}"
    )
    return replace(ran, settings={HBM: "" if best == DEFAULT_CAP else str(best)}, kept=text)


def _last(holds: Callable[[int], bool], start: int, end: int) -> int:
    """The last of the values from ``start`` towards ``end`` for which it holds, to one MiB."""
    if holds(end):
        return end
    while abs(end - start) > MIB:
        middle = (start + end) // 2
        start, end = (middle, end) if holds(middle) else (start, middle)
    return start


def runs_now(
    text: str, model: Model, cluster: Cluster, torchrec: str | None = None
) -> dict[str, PinSpec]:
    """What the trainer runs today with a file of its variables, at the cap that they set.

    What the file leaves open is what the trainer's planner makes of it. ``torchrec`` is the version
    that is installed, where the file does not state it. BadInput for a file that is no such,
    FallsShort if the trainer would stop.
    """
    variables = assignments(text)
    job, dense = _job(stated(text, model), cluster), dense_bytes(model, cluster)
    hosted = has_host_memory(variables, torchrec)
    asked = read(text, model)
    spaces = [_options(table, asked[table.name], hosted) for table in model.tables]
    cap = cap_of(variables) * GIB
    room = room_of(cap, HOST if hosted else 0, [own[0] for own in spaces], BATCH, dense)
    tables, ranks = proposals.plan(spaces, job, room)
    return pins_of(tables, ranks)


_MODES: tuple[Mode, ...] = ("HBM_ONLY", "HOST_ONLY", "CACHING")


def _options(table: Table, pin: PinSpec, hosted: bool) -> list[Asked]:
    """What the planner may make of a table, in the order in which TorchRec lists it."""
    found = []
    for kind in OFFERED if pin.sharding_type is None else (pin.sharding_type,):
        modes = _MODES if pin.mode is None else (pin.mode,)
        if kind == "data_parallel":  # its only kernel is dense, which no placement asks for
            modes = ("HBM_ONLY",) if pin.mode is None else ()
        found += [PinSpec(mode=mode, sharding_type=kind) for mode in modes if kind in OFFERED]
    if not found:
        raise FallsShort(
            f"table {table.name!r}: the trainer would stop with 'No available sharding type and "
            f"compute kernel combination': {pin.sharding_type} is not offered with that placement"
        )
    if not hosted and all(each.mode != "HBM_ONLY" for each in found):
        raise FallsShort(f"table {table.name!r}: {NO_HOST_MEMORY}")
    return [asked_of([table], {table.name: each}, pooled=False)[0] for each in found]


def _given(asked: Pins, model: Model, cluster: Cluster) -> tuple[list[Asked], Job, int]:
    """Tables, machines and bytes of the dense part as the planner gets them."""
    tables = asked_of(model.tables, asked, pooled=False)
    return tables, _job(model, cluster), dense_bytes(model, cluster)


def _job(model: Model, cluster: Cluster) -> Job:
    """Machines and batch, and the bytes of an element in the exchange unless all are fp32."""
    work = model.workload
    wire = work.exchange_dtype, work.exchange_dtype_backward or work.exchange_dtype
    there, back = (float(ELEMENT_BYTES[each]) for each in wire)
    coded = None if wire == ("fp32", "fp32") else (there, back)
    return Job(*machines_of(cluster), BATCH, coded)


def _planned(tables: Sequence[Asked], job: Job, cap: int, dense: int) -> dict[str, tuple[int, ...]]:
    hosted = any(table.kernel in ("fused_uvm", "fused_uvm_caching") for table in tables)
    ddr = HOST if hosted else 0  # such a plan is written for a TorchRec that has it
    return partition(tables, job, room_of(cap * GIB, ddr, tables, job.batch, dense))


def _tighter(
    tables: Sequence[Asked], ranks: dict[str, tuple[int, ...]], job: Job, cap: int, dense: int
) -> int:
    """The largest lower cap at which the fullest rank, as the planner counts, does not fit."""
    used = [0] * job.world
    for table in tables:
        for rank, shard in zip(ranks[table.name], shards_of(table, job), strict=True):
            used[rank] += shard.storage.hbm
    while cap > 0 and room_of(cap * GIB, 0, tables, job.batch, dense).hbm >= max(used):
        cap -= 1
    return cap


def can_run(table: Table, choice: Choice) -> bool:
    """The four types of its sharder, in HBM; column shards of the least legal width from 128."""
    if choice.sharding == "column_wise" and choice.width != least_width(table.dim):
        return False
    return choice.sharding in OFFERED and choice.mode == "HBM_ONLY" and not choice.stash


def grid(table: Table) -> dict[str, Any]:
    """Its width of column shards."""
    return {"column_widths": least_width(table.dim)}


TRAINER = Trainer(runs, True, WHY, steady, can_run, lambda model: turned_off(model.workload), grid)
