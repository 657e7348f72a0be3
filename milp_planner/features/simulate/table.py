"""Simulate one placed table: its tiers over many batches, and its exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from milp_planner.errors import BadInput
from milp_planner.features.simulate.job import TableJob, known_ids, warmup_lookups
from milp_planner.features.simulate.streams import Drawn, drawn, scattered
from milp_planner.features.simulate.tiers import Shape, Step, Tiers
from milp_planner.inputs.table import Table
from milp_planner.pricing.popularity import popularity
from milp_planner.pricing.units import FloatArray, IntArray

MAX_ROWS = 1 << 16
"""Rows of a table beyond which a sample of them stands for all."""
MAX_LOOKUPS = 1 << 18
"""Lookups of a batch beyond which the tiers see a sample of the rows, and the exchange a part of
every rank's lookups."""
LEAST_LOOKUPS = 20_000
"""Lookups that a hit ratio is to stand on: batches of a sample are repeated until then."""
MAX_SLOTS = 1 << 28
"""Slots of a table whose trace is replayed: never on a sample, 16 bytes a slot, 4 GiB in all."""
GOLDEN = (5**0.5 - 1) / 2
WARM_SHARE = 100
"""A warm-up batch has at least 1/100 of the rows, so that warming up takes few batches."""


@dataclass(frozen=True, eq=False)
class TableRun:
    """What was simulated.

    Attributes
    ----------
    rate : float
        Share of the rows that stood for all in the tiers.
    warmed : float
        Lookups a row before counting began.
    steps : list of Step
        One a counted batch, of the sample.
    ids : float array [batches, ranks]
        Ids each rank received a step.
    part : float
        Share of every rank's lookups that the exchange was simulated with.
    batches : int
        Batches behind ``steps``: several each where a sampled batch has few lookups.
    """

    job: TableJob
    rate: float
    warmed: float
    steps: list[Step]
    ids: FloatArray
    part: float
    batches: int

    @property
    def total(self) -> Step:
        """All counted batches together."""
        total = self.steps[0]
        for step in self.steps[1:]:
            total = total + step
        return total


def simulate_table(job: TableJob, batches: int, seed: int) -> TableRun:
    """Draw lookups from the table's statistics and replay them."""
    generator = np.random.default_rng([seed, len(job.table.name), *job.table.name.encode()])
    stream = drawn(popularity(job.table.access, job.table.rows))
    order = int(generator.integers(1 << 40))
    lookups = job.lookups * job.senders
    rate = min(1.0, MAX_ROWS / stream.rows, MAX_LOOKUPS / lookups)
    thin = stream.thinned(rate) if rate < 1 else stream
    first = known_ids(job.table) if rate == 1 else ()
    ids = scattered(np.arange(thin.rows), thin.rows, order, first)
    if rate < 1:
        ids = _spread(thin.rows, job.table.rows)[ids]
    tiers = Tiers(job.thinned(rate), job.local(ids), job.owners(ids), job.ranks)
    warmed = _warm(tiers, thin, max(round(lookups * rate), 1), generator)
    count = max(round(lookups * rate), 1)
    repeat = max(-(-LEAST_LOOKUPS // (count * batches)), 1)
    steps = []
    for _ in range(batches):
        step = tiers.step(thin.draw(count, generator))
        for _ in range(repeat - 1):
            step = step + tiers.step(thin.draw(count, generator))
        steps.append(step)
    part = min(1.0, MAX_LOOKUPS / lookups)
    received = [_exchange(job, stream, part, order, generator) for _ in range(batches)]
    return TableRun(job, rate, warmed, steps, np.array(received), part, batches * repeat)


def check_keys(table: Table, keys: IntArray, where: str) -> None:
    """Refuse keys that a table cannot have: an array (TorchRec) has rows 0 to rows - 1.

    Raises
    ------
    BadInput
        ``where``, the first such key, and what is allowed.
    """
    if table.kind == "torchrec" and len(keys) and not 0 <= keys.min() <= keys.max() < table.rows:
        wrong = int(np.argmax((keys < 0) | (keys >= table.rows)))
        raise BadInput(
            f"{where}: key number {wrong + 1:,} is {int(keys[wrong])}; allowed: 0 to "
            f"{table.rows - 1}, the rows of table {table.name!r}"
        )


def check_trace(job: TableJob, keys: IntArray) -> None:
    """Refuse a trace that cannot be replayed.

    Raises
    ------
    BadInput
        The table cannot have one of the keys, there are less than two batches of all ranks, or the
        table has too many slots to replay every one.
    """
    name, lookups = job.table.name, job.lookups * job.senders
    check_keys(job.table, keys, f"the trace of table {name!r}")
    if len(keys) < 2 * lookups:
        raise BadInput(
            f"the trace of table {name!r} has {len(keys):,} keys; allowed: at least two "
            f"batches of {lookups:,} ({job.lookups:,} on each of {job.senders} ranks)"
        )
    slots = _slots(job.shape) * job.ranks
    if slots > MAX_SLOTS:
        raise BadInput(
            f"--trace: table {name!r} has {slots:,} slots; allowed: at most {MAX_SLOTS:,} (4 GiB "
            "here), as traces are not sampled; drop --trace for this table, and its lookups are "
            "drawn from its statistics"
        )


def _slots(shape: Shape) -> int:
    """Slots that the tiers of one rank keep a state for: a host that holds every row needs none."""
    near = shape.hbm_buckets * shape.hbm_bucket if shape.hbm_slots else 0
    return near + shape.host_buckets * shape.host_bucket * (shape.mode == "HYBRID")


def replay_table(job: TableJob, keys: IntArray, batches: int) -> TableRun:
    """Replay a trace (:func:`check_trace`) in order; the first half of its batches warms up."""
    lookups = job.lookups * job.senders
    whole = len(keys) // lookups
    ids, rows = np.unique(keys, return_inverse=True)
    counted = min(batches, whole // 2)
    tiers = Tiers(job.shape, job.local(ids), job.owners(ids), job.ranks)
    steps, received = [], []
    for number in range(whole):
        part = slice(number * lookups, (number + 1) * lookups)
        step = tiers.step(rows[part])
        if number >= whole - counted:
            steps.append(step)
            received.append(_received(job, list(keys[part].reshape(job.senders, -1))))
    warmed = (whole - counted) * lookups / len(ids)
    return TableRun(job, 1.0, warmed, steps, np.array(received), 1.0, counted)


def _spread(sample: int, rows: int) -> IntArray:
    """Ids of a sample of the rows, one from each of so many even parts.

    Even steps would all fall on the same few ranks where the step is a multiple of their number;
    places that follow the golden ratio inside the parts fall on all ranks alike.
    """
    edges = np.arange(sample + 1, dtype=np.int64) * rows // sample
    places = np.arange(sample) * GOLDEN % 1.0
    return edges[:-1] + (places * np.diff(edges)).astype(np.int64)


def _warm(tiers: Tiers, stream: Drawn, batch: int, generator: np.random.Generator) -> float:
    """Fill the tiers; lookups a row that it took."""
    wanted, done = warmup_lookups(stream.rows, batch), 0
    size = max(batch, stream.rows // WARM_SHARE, 1)
    while done < wanted:
        tiers.step(stream.draw(size, generator))
        done += size
    return done / stream.rows


def _exchange(
    job: TableJob, stream: Drawn, part: float, order: int, generator: np.random.Generator
) -> FloatArray:
    """Ids each rank receives in one step; without de-duplication a part stands for all."""
    lookups = max(round(job.lookups * part), 1)
    first = known_ids(job.table)
    batches = [
        scattered(stream.draw(lookups, generator), stream.rows, order, first)
        for _ in range(job.senders)
    ]
    return _received(job, batches) * (job.lookups / lookups)


def _received(job: TableJob, batches: list[IntArray]) -> FloatArray:
    counts = np.zeros(job.ranks)
    for sent in _sent(job, batches):
        counts += np.bincount(job.owners(sent), minlength=job.ranks)
    return counts


def _sent(job: TableJob, batches: list[IntArray]) -> Iterator[IntArray]:
    for batch in batches:
        yield np.unique(batch) if job.dedup else batch
