"""One embedding table: its shape, its use, and the limits on its placement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import (
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from milp_planner.errors import CONTROLS
from milp_planner.inputs.access import (
    Access,
    Frequency,
    Sample,
    TopIds,
    Unknown,
    Zipf,
    histogram_of,
)
from milp_planner.inputs.constraints import COLUMN_STEP, Constraints, DistType
from milp_planner.inputs.problems import Loc, problem_at, problems_at
from milp_planner.inputs.spec import Count, Many, OneOrSome, Spec
from milp_planner.inputs.ssd import KeyValue
from milp_planner.kinds import KINDS

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(KINDS)]

DYNAMICEMB_FIELDS = (
    "admission_capacity",
    "admission_bucket_capacity",
    "bucket_capacity",
    "init_capacity",
    "external_storage",
    "dist_types",
    "score_strategy",
    "admit_strategy",
)
"""Fields that only dynamicemb tables have; elsewhere they stay at their defaults."""

ScoreStrategy = Literal[
    "timestamp", "step", "customized", "lfu", "no_eviction", "timestamp+lfu", "lfu+timestamp"
]  # fmt: skip
"""dynamicemb's eviction scores. The compound ones are its tuples (TIMESTAMP, LFU) and (LFU,
TIMESTAMP)."""

Dtype = Literal["fp32", "fp16", "bf16", "fp8", "int8"]
Optimizer = Literal[
    "none",
    "sgd",
    "adam",
    "adagrad",
    "rowwise_adagrad",
    "lamb",
    "partial_rowwise_adam",
    "partial_rowwise_lamb",
    "other",
]
FBGEMM_ALONE = ("lamb", "partial_rowwise_adam", "partial_rowwise_lamb")
"""Optimizers that only TorchRec's tables have."""
#: No blanks or separators, no control characters, no characters that change the direction of
#: text.
_NAME = rf"^[^\s,;={CONTROLS}]+$"
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=_NAME)]

ELEMENT_BYTES: dict[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}


class Table(Spec):
    """One embedding table; sizes are global, and the planner splits them over ranks."""

    shorthand = ("names",)

    name: Name
    """Name, unique in the model; no blanks, commas, semicolons, equals signs or control characters.
    """
    rows: Count
    """Number of rows (for a dynamicemb table, its capacity)."""
    dim: Annotated[int, Field(ge=1, le=1_048_576)]
    """Columns of the table, in elements."""
    dtype: Dtype = "fp32"
    """Element type of the weights."""
    kind: Kind = "torchrec"
    """Library that holds the table."""
    output: Literal["pooled", "sequence"] = "pooled"
    """Whether a feature's rows are summed (pooled) or returned one by one (sequence)."""
    pooling_factor: Annotated[float, Field(ge=0)] | None = None
    """Mean ids per pooling of a pooled table; default 1; 0 for a feature that never occurs."""
    num_poolings: Annotated[float, Field(gt=0)] = 1.0
    """Mean poolings per sample and feature of a pooled table."""
    sequence_length: Annotated[float, Field(gt=0)] | None = None
    """Mean ids per sample and feature of a sequence table; default 1."""
    num_features: Count = 1
    """Number of features that share the table."""
    features: Many[Name] = ()
    """Feature names for exports; by default the table's name."""
    weighted: bool = False
    """Whether lookups carry per-sample weights."""
    optimizer: Optimizer = "rowwise_adagrad"
    """Optimizer of the table; its state is stored with the rows (none in inference)."""
    output_dtype: Dtype | None = None
    """Element type that its lookups return (FBGEMM's output_dtype); by default fp32, as there, and
    for other libraries the table's own."""
    exchange_dtype: Dtype | None = None
    """Element type of its embeddings on the wire; by default the workload's."""
    exchange_dtype_backward: Dtype | None = None
    """Element type of its gradients; by default its own forward type, else the workload's."""
    access: Access = Unknown()
    """Access statistics."""
    admission_capacity: Count | None = None
    """Slots of a dynamicemb admission counter; by default there is no counter."""
    admission_bucket_capacity: Count = 1024
    """Slots per bucket of that counter."""
    bucket_capacity: Count = 128
    """Slots per dynamicemb hash bucket."""
    init_capacity: Count | None = None
    """Rows for which a dynamicemb table has room at first, at most ``rows``; its capacity then
    doubles until it has room for all. By default it has from the start."""
    external_storage: Name | None = None
    """Name of an external store that replaces the host tier in CACHING and HOST_ONLY (a grouped-key
    field)."""
    index_type: Literal["int32", "int64", "uint64"] = "int64"
    """Type of the ids (a grouped-key field)."""
    dist_types: OneOrSome[DistType] = ("roundrobin",)
    """Routing rules that the planner may choose from (a grouped-key field)."""
    score_strategy: ScoreStrategy = "timestamp"
    """Eviction score (a grouped-key field); two joined by + are compound: two words a key, in this
    order in checkpoints, and the least frequent row is evicted, of several the longest unused."""
    admit_strategy: Name | None = None
    """Admission rule, for instance frequency (a grouped-key field)."""
    key_value: KeyValue = KeyValue()
    """Settings for a key-value store, such as on SSD."""
    constraints: Constraints = Constraints()
    """Limits on where and how the table may be placed."""

    @property
    def lookups_per_sample(self) -> float:
        """Mean ids of one sample over all features that share the table."""
        mean = self.sequence_length if self.output == "sequence" else self.pooling_factor
        return self.num_features * self.num_poolings * (1.0 if mean is None else mean)

    @property
    def score_words(self) -> int:
        """Words of 8 bytes that a key's score takes in a dynamicemb table."""
        return self.score_strategy.count("+") + 1

    @property
    def evicts_least_frequent(self) -> bool:
        """Whether rows are evicted by frequency and not by age; only dynamicemb tables can."""
        return self.kind == "dynamicemb" and "lfu" in self.score_strategy.split("+")

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of ``dtype``."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def output_bytes(self) -> int:
        """Bytes of one element that a lookup returns."""
        own = "fp32" if self.kind == "torchrec" else self.dtype
        return ELEMENT_BYTES[self.output_dtype or own]

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights alone: rows × dim × element size."""
        return self.rows * self.dim * self.element_bytes

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names for exports: ``features``, or the table's name, numbered if it is shared."""
        if self.features:
            return self.features
        if self.num_features == 1:
            return (self.name,)
        return tuple(f"{self.name}_{i}" for i in range(self.num_features))

    @field_validator("access", mode="after")
    @classmethod
    def _read_files(cls, access: Access, info: ValidationInfo) -> Access:
        """Samples and curves become histograms; the context names the folder of their files."""
        folder = (info.context or {}).get("folder", Path())
        if not isinstance(access, Sample | Frequency) or folder is None or "rows" not in info.data:
            return access
        return histogram_of(access, folder, info.data["rows"], info.data.get("kind") == "torchrec")

    @model_validator(mode="after")
    def _consistent(self) -> Table:
        """Refuse fields that contradict each other."""
        _check_output(self)
        _check_ids(self)
        _check_kind(self)
        _check_constraints(self)
        return self


def _check_output(table: Table) -> None:
    if table.output == "pooled" and table.sequence_length is not None:
        raise problem_at(
            "goes with output: sequence; a pooled table has pooling_factor", "sequence_length"
        )
    if table.output == "sequence" and table.pooling_factor is not None:
        raise problem_at(
            "goes with output: pooled; a sequence table has sequence_length", "pooling_factor"
        )
    if table.output == "sequence" and table.num_poolings != 1:
        raise problem_at("goes with output: pooled; a sequence is not pooled", "num_poolings")
    if table.features and len(table.features) != table.num_features:
        raise problem_at(
            f"found {len(table.features)} names; allowed: {table.num_features}, as num_features "
            "says",
            "features",
        )


def _check_ids(table: Table) -> None:
    """Refuse ids and rows that the runtime's keys could not distinguish."""
    access, bits = table.access, 32 if table.index_type == "int32" else 64
    limit = f"allowed with index_type {table.index_type}"
    if table.rows > 1 << bits:
        raise problem_at(f"found {table.rows}; {limit}: up to 2**{bits}", "rows")
    known: list[int | None] = []
    if isinstance(access, Zipf):
        known = [*access.hot_ids]
    elif isinstance(access, TopIds):
        known = [hot.id for hot in access.ids]
    for each in known:
        if each is not None and each >> bits:
            raise problem_at(f"found id {each}; {limit}: ids below 2**{bits}", "access")


def _check_kind(table: Table) -> None:
    if (table.init_capacity or 0) > table.rows:
        raise problem_at(f"found {table.init_capacity}; allowed: up to its rows", "init_capacity")
    if table.kind != "torchrec" and table.optimizer in FBGEMM_ALONE:
        allowed = ", ".join(o for o in get_args(Optimizer) if o not in FBGEMM_ALONE)
        raise problem_at(
            f"found {table.optimizer}; allowed with kind: {table.kind}: {allowed}", "optimizer"
        )
    if table.kind == "dynamicemb":
        if table.key_value != KeyValue():
            raise problem_at("goes with kind: torchrec; this table is dynamicemb", "key_value")
        return
    if table.dim % COLUMN_STEP:
        raise problem_at(
            f"found {table.dim}; allowed with kind: torchrec: multiples of {COLUMN_STEP}, as "
            "FBGEMM's kernels read no others",
            "dim",
        )
    for name in DYNAMICEMB_FIELDS:
        if getattr(table, name) != Table.model_fields[name].default:
            raise problem_at(f"goes with kind: dynamicemb; this table is {table.kind}", name)


def _check_constraints(table: Table) -> None:
    limits, pin = table.constraints, table.constraints.pin
    modes = (*(limits.modes or ()), *((pin.mode,) if pin and pin.mode else ()))
    types = (
        *(limits.sharding_types or ()),
        *((pin.sharding_type,) if pin and pin.sharding_type else ()),
    )
    if table.kind == "torchrec" and "HYBRID" in modes:
        raise problem_at("HYBRID exists only for dynamicemb tables", "constraints")
    if table.kind == "dynamicemb" and "SSD" in modes:
        raise problem_at("SSD exists only for torchrec tables", "constraints")
    if table.kind == "dynamicemb" and any(each != "row_wise" for each in types):
        raise problem_at("dynamicemb tables are sharded row_wise only", "constraints")
    _check_widths(table)
    if pin and pin.dist_type and pin.dist_type not in table.dist_types:
        raise problem_at(
            f"found {pin.dist_type}; allowed: dist_types of the table "
            f"({', '.join(table.dist_types)})",
            "constraints",
            "pin",
            "dist_type",
        )


def _check_widths(table: Table) -> None:
    """Refuse widths that no column shard of this table can have."""
    limits, pin = table.constraints, table.constraints.pin
    wrong: list[tuple[str, Loc]] = [
        (
            f"found {width}; allowed: multiples of {COLUMN_STEP} up to dim {table.dim}",
            ("constraints", "column_widths", index),
        )
        for index, width in enumerate(limits.column_widths or ())
        if width > table.dim or width % COLUMN_STEP
    ]
    if pin and pin.column_width is not None and pin.column_width > table.dim:
        what = f"found {pin.column_width}; allowed: up to dim {table.dim}"
        wrong.append((what, ("constraints", "pin", "column_width")))
    if wrong:
        raise problems_at(wrong)
