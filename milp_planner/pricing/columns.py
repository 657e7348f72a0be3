"""Tables, options and shard entries as columns of arrays, ready for the price formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milp_planner.inputs.model import Model
from milp_planner.pricing.choice import MODES, SHARDING_TYPES, Choice
from milp_planner.pricing.dynamicemb_storage import planner_value_bytes, runtime_value_bytes
from milp_planner.pricing.exchange import wire_bytes
from milp_planner.pricing.storage import admission_counter, state_multiple
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TableColumns:
    """One value a table; arrays [tables]."""

    rows: IntArray
    dim: IntArray
    element: IntArray
    bucket: IntArray
    counter: IntArray
    planner_row: IntArray
    runtime_row: IntArray
    state_over: IntArray
    state_under: IntArray
    pooled: BoolArray
    weighted: BoolArray
    dynamic: BoolArray
    external: BoolArray
    wire: IntArray
    wire_backward: IntArray


def table_columns(model: Model) -> TableColumns:
    """The model's tables as columns; inference keeps no optimizer state."""
    training = model.workload.mode == "training"
    tables = model.tables
    optimizers = [t.optimizer if training else "none" for t in tables]
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
        bucket=integers([t.bucket_capacity for t in tables]),
        counter=integers(counters),
        planner_row=integers([planner_value_bytes(*p) for p in pairs]),
        runtime_row=integers([runtime_value_bytes(*p) for p in pairs]),
        state_over=integers([s.numerator for s in states]),
        state_under=integers([s.denominator for s in states]),
        pooled=flags([t.output == "pooled" for t in tables]),
        weighted=flags([t.weighted for t in tables]),
        dynamic=flags([t.kind == "dynamicemb" for t in tables]),
        external=flags([t.external_storage is not None for t in tables]),
        wire=integers([wire_bytes(model.workload, t)[0] for t in tables]),
        wire_backward=integers([wire_bytes(model.workload, t)[1] for t in tables]),
    )


@dataclass(frozen=True, eq=False)
class OptionColumns:
    """One value an option; arrays [options]. ``sharding`` and ``mode`` index the vocabulary."""

    table: IntArray
    sharding: IntArray
    mode: IntArray
    over: IntArray
    under: IntArray
    group_ranks: IntArray

    def at(self, index: IntArray) -> OptionColumns:
        """The same columns gathered by option index (one row a shard entry)."""
        return OptionColumns(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def is_sharding(self, *names: str) -> BoolArray:
        """Where the sharding type is one of ``names``."""
        return np.isin(self.sharding, [SHARDING_TYPES.index(name) for name in names])

    def is_mode(self, name: str) -> BoolArray:
        """Where the mode is ``name``."""
        return self.mode == MODES.index(name)


@dataclass(frozen=True, eq=False)
class ShardColumns:
    """One value a shard entry (a run of equal shards); arrays [entries]."""

    option: IntArray
    repeat: IntArray
    rows: IntArray
    columns: IntArray
    load: FloatArray


def choice_code(choice: Choice, ranks: int) -> tuple[int, int, int, int, int]:
    """A choice as integers: sharding, mode, ratio as a pair, ranks its rows are split over."""
    split = {"row_wise": ranks}.get(choice.sharding, choice.machine_ranks or 1)
    return (
        SHARDING_TYPES.index(choice.sharding),
        MODES.index(choice.mode),
        choice.ratio.numerator,
        choice.ratio.denominator,
        split,
    )
