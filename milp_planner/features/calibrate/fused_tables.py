"""FBGEMM's table-batched embeddings (TBE), which TorchRec trains with: one call for all tables.

The gradient of the rows and the optimizer's step are one fused kernel.
"""

from __future__ import annotations

from typing import Any

from milp_planner.features.calibrate.steps import StepSpec
from milp_planner.features.calibrate.torch_steps import EPSILON, RATE, TorchTables, thirds

OPTIMIZERS = {
    "sgd": "EXACT_SGD", "adagrad": "EXACT_ADAGRAD", "rowwise_adagrad": "EXACT_ROWWISE_ADAGRAD",
    "adam": "ADAM",
}  # fmt: skip
"""FBGEMM's names of the optimizers."""


class FusedTables(TorchTables):
    """One TBE of all tables, whose weights and states are slices of ``storage``."""

    fused = True

    def __init__(self, spec: StepSpec, storage: Any, device: str) -> None:
        import torch

        self.torch = torch
        shapes = [(table.rows, table.dim) for table in spec.tables]
        self.tbe = fused(shapes, device, spec.optimizer)
        place = "host" if device == "cpu" else "dev"
        for field, part in zip(("weights", "momentum1", "momentum2"), thirds(storage), strict=True):
            name = f"{field}_{place}"
            own = getattr(self.tbe, name, torch.empty(0))
            if own.numel():
                taken = part[: own.numel()].view_as(own)
                kept = isinstance(own, torch.nn.Parameter)
                setattr(self.tbe, name, torch.nn.Parameter(taken) if kept else taken)
        lengths = torch.tensor([t.pooling for t in spec.tables], device=device)
        self.offsets = offsets(lengths.repeat_interleave(spec.batch))

    def inputs(self, ids: list[Any]) -> Any:
        """The ids of all tables in one array."""
        return self.torch.cat(ids)

    def lookup(self, inputs: Any) -> list[Any]:
        """The joined outputs of all tables."""
        return [self.tbe(inputs, self.offsets)]

    def update(self, outputs: list[Any], gradients: list[Any]) -> None:
        """The fused gradient and step."""
        self.torch.autograd.backward(outputs, gradients)


def fused(
    shapes: list[tuple[int, int]], device: str, optimizer: str = "sgd", **options: Any
) -> Any:
    """A TBE of fp32 tables of these (rows, columns), in the device's memory."""
    from fbgemm_gpu.split_embedding_configs import (
        EmbOptimType,
    )
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        EmbeddingLocation,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

    cpu = device == "cpu"
    where = EmbeddingLocation.HOST if cpu else options.pop("location", EmbeddingLocation.DEVICE)
    unit = ComputeDevice.CPU if cpu else ComputeDevice.CUDA
    return SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, columns, where, unit) for rows, columns in shapes],
        optimizer=getattr(EmbOptimType, OPTIMIZERS[optimizer]), learning_rate=RATE, eps=EPSILON,
        device=None if cpu else "cuda", **options,
    )  # fmt: skip


def offsets(lengths: Any) -> Any:
    """Where every bag begins, and the end of the last; int64 array [bags + 1]."""
    import torch

    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0))


def fbgemm_version(device: str) -> str:
    """FBGEMM's version if its TBE looks up a row on the device.

    Raises ImportError, with the reason, if it does not: not installed, built for another torch,
    without code for this device.
    """
    try:
        import torch
        from fbgemm_gpu import __version__

        one = torch.zeros(1, dtype=torch.int64, device=device)
        fused([(1, 4)], device)(one, offsets(one + 1))
        return str(__version__)
    except (ImportError, OSError, AttributeError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ImportError(f"{type(error).__name__}: {reason}") from error
