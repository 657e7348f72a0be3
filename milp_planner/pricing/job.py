"""Everything a price depends on besides the option itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.table import Table
from milp_planner.pricing.exchange import Links, wire_bytes
from milp_planner.pricing.options import MODES, SHARDING_TYPES, Choice, distinct
from milp_planner.pricing.popularity import distinct_rows, unique_fraction
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.runtimes.registry import index_of
from milp_planner.pricing.runtimes.torcheasyrec import planner_value_bytes
from milp_planner.pricing.site import Site, site_of
from milp_planner.pricing.storage import (
    INT8_ROW_BYTES,
    STATE_NUMBERS,
    admission_counter,
    runtime_value_bytes,
    state_multiple,
)
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, Places


@dataclass(frozen=True, eq=False)
class TableColumns:
    """One value per table; arrays [tables]."""

    rows: IntArray
    dim: IntArray
    element: IntArray
    output: IntArray
    """Bytes of an element in the table, and as a lookup returns it."""
    header: IntArray
    """Bytes that FBGEMM stores with each row besides its elements."""
    bucket: IntArray
    counter: IntArray
    score_words: IntArray
    planner_row: IntArray
    runtime_row: IntArray
    state_over: IntArray
    state_under: IntArray
    features: IntArray
    pooled: BoolArray
    weighted: BoolArray
    external: BoolArray
    wire: IntArray
    wire_backward: IntArray
    virtual: BoolArray
    l2: IntArray
    write_buffer: IntArray
    state_in_rows: BoolArray
    state_row: IntArray
    state_column: IntArray
    """Numbers of optimizer state that FBGEMM keeps per row, and per column of a row."""
    counts_steps: BoolArray
    """Whether a key-value kernel counts the updates of each row (Adam)."""


def table_columns(model: Model) -> TableColumns:
    """The model's tables as columns; inference keeps no optimizer state."""
    tables = model.tables
    optimizers = [model.optimizer_of(t) for t in tables]
    states = [state_multiple(o, t.dim) for o, t in zip(optimizers, tables, strict=True)]

    def integers(values: list[int]) -> IntArray:
        return np.array(values, dtype=np.int64)

    def flags(values: list[bool]) -> BoolArray:
        return np.array(values, dtype=np.bool_)

    pairs = [(t.dim, t.element_bytes, o) for t, o in zip(tables, optimizers, strict=True)]
    counters = [
        admission_counter(t.admission_capacity or 0, t.admission_bucket_capacity) for t in tables
    ]
    return TableColumns(
        rows=integers([t.rows for t in tables]),
        dim=integers([t.dim for t in tables]),
        element=integers([t.element_bytes for t in tables]),
        output=integers([t.output_bytes for t in tables]),
        header=integers([INT8_ROW_BYTES * (t.dtype == "int8") for t in tables]),
        bucket=integers([t.bucket_capacity for t in tables]),
        counter=integers(counters),
        score_words=integers([t.score_words for t in tables]),
        planner_row=integers([planner_value_bytes(*p) for p in pairs]),
        runtime_row=integers([runtime_value_bytes(*p) for p in pairs]),
        state_over=integers([s.numerator for s in states]),
        state_under=integers([s.denominator for s in states]),
        features=integers([t.num_features for t in tables]),
        pooled=flags([t.output == "pooled" for t in tables]),
        weighted=flags([t.weighted for t in tables]),
        external=flags([t.external_storage is not None for t in tables]),
        wire=integers([wire_bytes(model.workload, t)[0] for t in tables]),
        wire_backward=integers([wire_bytes(model.workload, t)[1] for t in tables]),
        virtual=flags([t.key_value.virtual for t in tables]),
        l2=integers([t.key_value.l2 for t in tables]),
        write_buffer=integers([t.key_value.write_buffer for t in tables]),
        state_in_rows=flags([t.key_value.optimizer_in_rows for t in tables]),
        state_row=integers([STATE_NUMBERS[o].row for o in optimizers]),
        state_column=integers([STATE_NUMBERS[o].column for o in optimizers]),
        counts_steps=flags([o == "adam" for o in optimizers]),
    )


@dataclass(frozen=True, eq=False)
class OptionColumns:
    """One value per option; arrays [options]. ``sharding`` and ``mode`` are indices."""

    table: IntArray
    sharding: IntArray
    mode: IntArray
    over: IntArray
    under: IntArray
    group_ranks: IntArray
    width: IntArray
    stash: IntArray
    """1 where weights are stashed, else 0."""
    runtime: IntArray
    """Index of its runtime in :func:`milp_planner.pricing.runtimes.registry.runtimes`."""

    def at(self, index: Places) -> OptionColumns:
        """The same columns gathered by option index (one row per shard entry)."""
        return OptionColumns(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def is_sharding(self, *names: str) -> BoolArray:
        """Where the sharding type is one of ``names``."""
        return np.isin(self.sharding, [SHARDING_TYPES.index(name) for name in names])

    def is_mode(self, name: str) -> BoolArray:
        """Where the mode is ``name``."""
        return self.mode == MODES.index(name)


@dataclass(frozen=True, eq=False)
class ShardColumns:
    """One value per shard entry (a run of equal shards); arrays [entries]."""

    option: IntArray
    repeat: IntArray
    rows: IntArray
    columns: IntArray
    load: FloatArray
    """Lookups over the mean of all shards, on average."""
    peak: FloatArray
    """The same in the worst batch."""

    def at(self, index: Places) -> ShardColumns:
        """Some of the entries."""
        return ShardColumns(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def option_columns(
    choices: Sequence[Choice], ranks: int, tables: Sequence[int] | IntArray
) -> OptionColumns:
    """Choices as columns; ``tables`` is the table index of each."""
    few, index = distinct(choices)
    codes = [
        (
            SHARDING_TYPES.index(choice.sharding),
            MODES.index(choice.mode),
            choice.ratio.numerator,
            choice.ratio.denominator,
            ranks if choice.sharding == "row_wise" else choice.row_parts,
            choice.width,
            int(choice.stash),
            index_of(choice.runtime),
        )
        for choice in few
    ]
    columns = np.array(codes, dtype=np.int64).reshape(-1, 8).T
    return OptionColumns(np.asarray(tables, dtype=np.int64), *columns[:, index].copy())


@dataclass(frozen=True, eq=False)
class Job:
    """One pricing run."""

    model: Model
    cluster: Cluster
    profile: Profile
    links: Links
    """As given to :func:`milp_planner.pricing.price`."""
    site: Site
    tables: TableColumns
    """The model's tables as arrays."""
    traffic: Traffic
    """Ids and embeddings of each of them in one step."""

    @property
    def workload(self) -> Workload:
        """How the tables are used."""
        return self.model.workload

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.site.ranks


def job_of(model: Model, cluster: Cluster, profile: Profile, links: Links) -> Job:
    """Collect what prices depend on."""
    site = site_of(cluster)
    curves = (profile.caching, profile.hybrid, profile.uvm_caching)
    counts = model.workload.prefetch_pipeline or any(c.over == "batch_cover" for c in curves)
    counts = counts or site.has_ssd or any(t.key_value.virtual for t in model.tables)
    traffic = traffic_of(model, site.ranks, counts or profile.step is not None)
    return Job(model, cluster, profile, links, site, table_columns(model), traffic)


@dataclass(frozen=True, eq=False)
class Traffic:
    """Per table, of one rank's batch; float arrays [tables]."""

    ids: FloatArray
    """Ids, deduplicated where the workload says so and the output is a sequence."""
    raw_ids: FloatArray
    """Ids before deduplication."""
    outputs: FloatArray
    """Embeddings: poolings with an id (pooled) or ids (sequence)."""
    dedup_lookups: FloatArray
    """``raw_ids`` where ids are deduplicated, else 0."""
    distinct: FloatArray
    """Distinct rows the global batch touches."""


def traffic_of(model: Model, ranks: int, needs_distinct: bool) -> Traffic:
    """Traffic of every table; distinct rows only if a price depends on them.

    Pooled outputs are min(1, pooling factor) per pooling; deduplication drops repeated ids of a
    rank's batch from sequences only (a pooled bag needs every one of its rows). Source: TorchRec
    1.8.0, ``planner/estimator/types.py`` (batch inputs and outputs).
    """
    batch, tables = model.workload.batch_per_rank, model.tables
    raw = np.array([batch * t.lookups_per_sample for t in tables], dtype=np.float64)
    ids, dedup = raw.copy(), np.zeros(len(tables))
    outputs = np.array([_outputs(t, batch) for t in tables], dtype=np.float64)
    distinct = np.zeros(len(tables))
    for i, table in enumerate(tables):
        if model.workload.dedup and table.output == "sequence":
            ids[i] = raw[i] * unique_fraction(table.access, table.rows, float(raw[i]))
            outputs[i], dedup[i] = ids[i], raw[i]
        if needs_distinct:
            distinct[i] = distinct_rows(table.access, table.rows, float(raw[i]), ranks)
    return Traffic(ids, raw, outputs, dedup, distinct)


def _outputs(table: Table, batch: int) -> float:
    if table.output == "sequence":
        return batch * table.lookups_per_sample
    mean = 1.0 if table.pooling_factor is None else table.pooling_factor
    return batch * table.num_features * table.num_poolings * min(1.0, mean)
