"""A recommender model: a workload and its embedding tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    WrapValidator,
    field_validator,
    model_validator,
)

from milp_planner.inputs.constraints import L1_RATIOS, LARGEST_L1, TENTHS, RatioGrid
from milp_planner.inputs.problems import (
    Loc,
    explain,
    likeliest_first,
    problem_at,
    problems_at,
    unknown_field,
    unknown_table,
)
from milp_planner.inputs.repeated import check_count, spread, written_names
from milp_planner.inputs.spec import Bytes, Count, Spec, as_tuple
from milp_planner.inputs.table import Dtype, Name, Table

StorageModel = Literal["runtime", "torcheasyrec", "rows"]
CostModel = Literal["law", "torcheasyrec", "torcheasyrec_first"]
Fusion = Literal["honoured", "free"]
Codec = Literal["stock", "low_memory"]
Pipeline = Literal["none", "sparse_dist", "hugectr"]
Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]


class DensePart(Spec):
    """Milliseconds of a step that a rank spends outside the embeddings: they are the same under
    every plan, and hide other work (objective pipelined_step)."""

    forward_ms: Milliseconds = 0.0
    """The whole forward pass of the dense part."""
    backward_ms: Milliseconds = 0.0
    """Its backward pass."""
    beside_forward_exchange_ms: Milliseconds = 0.0
    """The part of forward_ms that needs no embeddings (a bottom MLP), so that it goes on while they
    are exchanged."""
    beside_backward_exchange_ms: Milliseconds = 0.0
    """The part of backward_ms that goes on while gradients of embeddings are exchanged."""

    @model_validator(mode="after")
    def _parts(self) -> DensePart:
        for way in ("forward", "backward"):
            part, whole = f"beside_{way}_exchange_ms", f"{way}_ms"
            if getattr(self, part) > getattr(self, whole):
                raise problem_at(
                    f"found {getattr(self, part):g}; allowed: up to {whole}, "
                    f"{getattr(self, whole):g}, of which it is a part", part,
                )  # fmt: skip
        return self


class Workload(Spec):
    """The work of one step, the same on every rank."""

    batch_per_rank: Count
    """Samples per rank and step."""
    mode: Literal["training", "inference"] = "training"
    """Inference has no backward phases and stores no optimizer state."""
    dedup: bool = False
    """Whether equal ids of a rank's batch are exchanged once."""
    exchange_dtype: Dtype = "fp32"
    """Element type of embeddings on the wire, unless a table has its own."""
    exchange_dtype_backward: Dtype | None = None
    """Element type of gradients on the wire; by default as in the forward direction."""
    codec: Codec = "stock"
    """How embeddings are cast to the wire's type: stock clamps a full copy first, low_memory casts
    at once; nothing is cast if the wire uses the type that lookups return."""
    codec_peak_factor: Annotated[float, Field(ge=1, le=16)] | None = None
    """Peak memory of the exchange codec as a multiple of its input; by default it follows from
    codec and types."""
    pipeline: Pipeline | None = None
    """How the trainer overlaps batches: none has one in flight; sparse_dist (TorchRec's, the
    default in training) and hugectr have two, and exchange ids of the next beside the dense part.
    """
    dense_part: DensePart | None = None
    """Time of the dense part, which hides other work under the objective pipelined_step; if absent,
    it hides nothing."""
    prefetch_pipeline: bool = False
    """Whether cache misses are fetched ahead of the step; three batches are then in flight."""
    prefetch_passes: Count = 1
    """Number of passes in which a batch's rows are fetched ahead, each with buffers for its own ids
    only."""
    stash_window_ms: Annotated[float, Field(gt=0, le=3_600_000)] | None = None
    """Milliseconds available for copying weights to host memory during the dense part's forward,
    and as many for copying them back during its backward; if absent, no table is stashed."""
    stash_caches: bool = False
    """With a stash_window_ms: whether caches of tables in host memory may leave HBM, too, as the
    trainer calls TorchRec's stash_emo_cache (1.9.2 has it, and no module of it calls it)."""
    buffers: Literal["additive", "largest_collective"] = "additive"
    """Whether output buffers of all tables add up (conservative), or only those of one collective.
    """
    storage_model: StorageModel = "runtime"
    """Bytes as the runtime uses them, moment by moment, or as the planners of TorchRec and
    TorchEasyRec count them (rows, ids and outputs of an average batch), or rows and optimizer
    state alone, as the literature's tasks do."""
    cost_model: CostModel = "law"
    """Times of dynamicemb lookups by the profile's law of the tiers, or by the rules of
    TorchEasyRec's planner as merged or in its first version, for comparison."""
    fusion: Fusion = "honoured"
    """Whether fused tables must share one cache ratio, as in the runtime."""
    cache_ratios: RatioGrid = TENTHS
    """Default cache-ratio grid of all tables."""
    l1_ratios: RatioGrid = L1_RATIOS
    """Default cache-ratio grid of tables in a key-value store (SSD); up to 1/5."""
    ssd_step_ms: Annotated[float, Field(gt=0, le=3_600_000)] | None = None
    """Milliseconds per step that a machine's drives may be busy; by default there is no such limit,
    only a price."""

    @field_validator("l1_ratios", mode="after")
    @classmethod
    def _at_most_a_fifth(cls, ratios: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        if ratios[-1] > LARGEST_L1:
            raise ValueError(
                f"found {ratios[-1]}; allowed: up to {LARGEST_L1}, the most that FBGEMM's cache of "
                "a key-value store holds"
            )
        return ratios

    @model_validator(mode="after")
    def _caches_are_filled(self) -> Workload:
        if self.stash_caches and (self.stash_window_ms is None or not self.prefetch_pipeline):
            raise problem_at("needs stash_window_ms and prefetch_pipeline: true", "stash_caches")
        return self

    @property
    def pipelined(self) -> Pipeline:
        """The pipeline, also where none is named."""
        return self.pipeline or ("sparse_dist" if self.trains else "none")

    @property
    def trains(self) -> bool:
        """Whether there are backward phases and optimizer states."""
        return self.mode == "training"


class OutsideEmbeddings(Spec):
    """HBM that a rank needs besides embeddings, in figures that users have at hand."""

    measured_peak: Bytes | None = None
    """HBM in use outside the embeddings and their exchange at the fullest moment of a step, as
    measured; replaces all fields below, including context, except the part per sample."""
    measured_batch: Count | None = None
    """Samples per rank in that measurement; if given, the peak grows with the batch by
    activation_bytes_per_sample per sample."""
    parameter_bytes: Bytes = 0
    """Bytes of the dense parameters on one rank, which a trainer's own planner counts, too."""
    parameter_multiple: Annotated[int, Field(ge=1, le=100)] = 4
    """Copies of these parameters: weights, gradients, and Adam's two states."""
    activation_bytes_per_sample: Bytes = 0
    """Bytes per sample that the dense part keeps between forward and backward."""
    context: Bytes = 2 * 2**30
    """Bytes of the library's context and of communication buffers."""

    @model_validator(mode="after")
    def _measured_alone(self) -> OutsideEmbeddings:
        if self.measured_peak is None:
            if self.measured_batch is not None:
                raise problem_at("needs measured_peak", "measured_batch")
            return self
        fields = type(self).model_fields.items()
        changed = {name for name, each in fields if getattr(self, name) != each.default}
        changed.discard("parameter_bytes")  # for the planner of a trainer
        grows = {"measured_batch", "activation_bytes_per_sample"}
        if changed not in ({"measured_peak"}, {"measured_peak", *grows}):
            raise problem_at(
                "replaces the other fields; allowed: it alone, or with measured_batch and "
                "activation_bytes_per_sample, and parameter_bytes",
                "measured_peak",
            )
        if self.measured_batch and self.constant_peak < 0:
            raise problem_at(
                "is less than activation_bytes_per_sample · measured_batch", "measured_peak"
            )
        return self

    @property
    def constant_peak(self) -> int:
        """The part of the measured peak that does not depend on the batch, in bytes."""
        followed = self.activation_bytes_per_sample * (self.measured_batch or 0)
        return (self.measured_peak or 0) - followed


class HostMemory(Spec):
    """Host memory that a machine needs besides embeddings."""

    loader_workers: Annotated[int, Field(ge=0, le=1024)] = 0
    """Data-loading processes per rank."""
    loader_prefetch: Annotated[int, Field(ge=1, le=1024)] = 2
    """Batches that each process keeps ready."""
    bytes_per_sample: Bytes = 0
    """Bytes of a sample in such a batch; at least 8 per id of the model are assumed."""
    checkpoint: Literal["direct", "staged"] = "direct"
    """How rows and optimizer state are saved: straight to a file, or staged, which copies all of
    them to host memory first, as asynchronous checkpoints do."""


__all__ = ["DensePart", "HostMemory", "Model", "OutsideEmbeddings", "Table", "Workload"]


class Model(Spec):
    """Workload and tables; the order of the tables is kept."""

    shorthand = ("defaults", "patterns")

    name: Name
    """Name of the model."""
    source: str = ""
    """Source of the figures."""
    description: str = ""
    """Description of the model and its assumptions."""
    workload: Workload
    """How the tables are used."""
    outside_embeddings: OutsideEmbeddings | None = None
    """HBM of the step besides embeddings; if absent, a share of the HBM is assumed."""
    host_memory: HostMemory | None = None
    """Host memory of machines besides embeddings; if absent, nothing is reserved for it."""
    tables: Annotated[tuple[Table, ...], WrapValidator(spread), BeforeValidator(as_tuple)]
    """The embedding tables; an empty list if there are none."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        """Apply ``patterns`` and ``defaults``.

        ``defaults: {dim: 128}`` gives every table the fields that it does not set itself;
        ``patterns: {"user_*": {dim: 64}}`` gives them to tables with matching names, before the
        defaults.
        """
        if isinstance(data, dict):
            check_count(data.get("tables"))
        if not isinstance(data, dict) or data.keys().isdisjoint(("defaults", "patterns")):
            return data
        rest = {key: value for key, value in data.items() if key not in ("defaults", "patterns")}
        patterns, tables = data.get("patterns", {}), data.get("tables")
        if not isinstance(patterns, dict):
            raise problem_at("allowed: a mapping of name patterns to table fields", "patterns")
        layers = [(str(key), fields, ("patterns", key)) for key, fields in patterns.items()]
        for pattern, fields, path in (*layers, ("*", data.get("defaults", {}), ("defaults",))):
            _check_names(fields, path)
            if isinstance(tables, list | tuple):
                tables = _filled(tables, pattern, fields, path)
        return rest if tables is None else {**rest, "tables": tables}

    @property
    def stages(self) -> bool:
        """Whether a checkpoint copies rows and optimizer state to host memory."""
        return self.host_memory is not None and self.host_memory.checkpoint == "staged"

    @property
    def loader_bytes(self) -> int:
        """Host memory of the batches that one rank's data loaders keep ready.

        workers · batches each · samples · bytes per sample, which are at least 8 per id.

        References
        ----------
        PyTorch 2.13, ``torch.utils.data.DataLoader``: ``num_workers`` processes load
        ``prefetch_factor`` batches each in advance (2 by default).
        """
        held = self.host_memory
        if held is None:
            return 0
        ids = sum((Fraction(table.lookups_per_sample) for table in self.tables), Fraction(0))
        sample = max(Fraction(held.bytes_per_sample), 8 * ids)
        batches = held.loader_workers * held.loader_prefetch
        return math.ceil(batches * self.workload.batch_per_rank * sample)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, without optimizer state."""
        return sum(table.weight_bytes for table in self.tables)

    @property
    def grows(self) -> bool:
        """Whether a table's capacity doubles while it is trained."""
        return any(table.init_capacity is not None for table in self.tables)

    def optimizer_of(self, table: Table) -> str:
        """The optimizer whose state is kept: none in inference."""
        return table.optimizer if self.workload.trains else "none"

    def table(self, name: str) -> Table:
        """The table of that name.

        Raises
        ------
        UnknownName
            If there is none: BadInput, and a KeyError.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise unknown_table(name, [table.name for table in self.tables])


def _check_names(fields: Any, path: Loc) -> None:
    """Refuse anything but a mapping of table fields."""
    if not isinstance(fields, dict):
        raise problem_at("allowed: a mapping of table fields", *path)
    allowed = [each for each in Table.model_fields if each != "name"]
    unknown = [str(name) for name in fields if name not in allowed]
    if unknown:
        raise problems_at([(unknown_field(name, allowed), (*path, name)) for name in unknown])


def _filled(tables: Sequence[Any], pattern: str, fields: dict[str, Any], path: Loc) -> list[Any]:
    """Tables; those with matching names get the fields that they do not set themselves."""
    takes = [isinstance(t, dict) and _matches(t, pattern, path) for t in tables]
    if fields and not any(takes) and all(isinstance(t, dict) for t in tables):
        raise problem_at("there are no tables to apply them to; leave them out", *path)
    _check_untaken(fields, [t for t, take in zip(tables, takes, strict=True) if take], path)
    return [{**fields, **t} if take else t for t, take in zip(tables, takes, strict=True)]


def _matches(table: dict[str, Any], pattern: str, path: Loc) -> bool:
    """Whether a pattern matches the names of a line: all of them or none."""
    found = {fnmatchcase(name, pattern) for name in written_names(table)}
    if len(found) > 1:
        some = f"matches only some of {table['names']}; allowed: all of them or none"
        raise problem_at(some, *path)
    return found.pop()


def _check_untaken(fields: dict[str, Any], tables: list[dict[str, Any]], at: Loc) -> None:
    """Refuse a wrong field even if every table that could take it sets its own."""
    untaken = {
        name: value for name, value in fields.items() if all(name in table for table in tables)
    }
    try:
        table = {"name": "any", "rows": 1, "dim": 1, **untaken}
        Table.model_validate(table, context={"folder": None})  # does not read files of keys
    except ValidationError as error:
        found = [
            (explain(Table, finding), (*at, *path))
            for finding, path in likeliest_first(Table, error)
            if finding["loc"]  # otherwise the combination of fields, which no table has
        ]
        if found:
            raise problems_at(found) from None
