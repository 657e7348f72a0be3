"""How the tables are used: batch, training or inference, the exchange, and modelling choices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from milp_planner.inputs.constraints import TENTHS, RatioGrid
from milp_planner.inputs.spec import Count, Spec

StorageModel = Literal["runtime", "torcheasyrec"]
Fusion = Literal["honoured", "free"]
ExchangeDtype = Literal["fp32", "fp16", "bf16", "fp8", "int8"]


class Workload(Spec):
    """What one step does, the same on every rank."""

    batch_per_rank: Count
    """Samples per rank and step."""
    mode: Literal["training", "inference"] = "training"
    """Inference has no backward phases and stores no optimizer state."""
    dedup: bool = False
    """Whether equal ids of a rank's batch are exchanged once."""
    exchange_dtype: ExchangeDtype = "fp32"
    """Element type of embeddings on the wire; a table may have its own."""
    exchange_dtype_backward: ExchangeDtype | None = None
    """That of gradients; none: as forward."""
    codec_peak_factor: Annotated[float, Field(ge=1, le=16)] = 1.0
    """Peak memory of the exchange codec as a multiple of its input."""
    prefetch_pipeline: bool = False
    """Whether cache misses are fetched ahead of the step."""
    buffers: Literal["additive", "largest_collective"] = "additive"
    """Exchange buffers of all tables add up (conservative), or only the largest collective's."""
    storage_model: StorageModel = "runtime"
    """Bytes as the dynamicemb runtime uses them, or as TorchEasyRec's planner counts them."""
    fusion: Fusion = "honoured"
    """Whether fused tables must share one cache ratio, as the runtime makes them."""
    cache_ratios: RatioGrid = TENTHS
    """Default cache-ratio grid of all tables."""
