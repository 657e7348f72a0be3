"""TorchRec's own planner with type and kernel of every table pinned, as trainers call it."""

from collections.abc import Sequence
from typing import Any

from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.replay.estimate import Asked, Job


def module_of(tables: Sequence[Asked], dense: int = 0) -> Any:
    """One collection of the tables, on no device, with their optimizers marked.

    ``dense`` are bytes of parameters beside it.
    """
    import torch
    from torchrec import EmbeddingBagCollection, EmbeddingCollection
    from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig
    from torchrec.optim import RowWiseAdagrad

    pooled = tables[0].pooled
    config: Any = EmbeddingBagConfig if pooled else EmbeddingConfig
    configs = [
        config(
            name=t.name, num_embeddings=t.rows, embedding_dim=t.dim,
            feature_names=[f"{t.name}_0"],
        )
        for t in tables
    ]  # fmt: skip
    meta = torch.device("meta")
    collection = (
        EmbeddingBagCollection(tables=configs, is_weighted=tables[0].weighted, device=meta)
        if pooled
        else EmbeddingCollection(tables=configs, device=meta)
    )
    classes = {
        "adam": torch.optim.Adam, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad,
        "rowwise_adagrad": RowWiseAdagrad,
    }  # fmt: skip
    wanted = {t.name: classes[t.optimizer] for t in tables}
    for name, parameter in collection.named_parameters():
        parameter._optimizer_classes = [wanted[name.split(".")[-2]]]
    model = torch.nn.Module()
    model.tables = collection
    if dense:
        model.dense = torch.nn.Parameter(torch.empty(dense // 4, device=meta))
    return model


def sharders_of(wire: tuple[float, ...] | None, dedup: bool = False) -> list[Any]:
    """The sharders of both kinds of collection; 2 bytes on the wire stand for fp16."""
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.fbgemm_qcomm_codec import (
        CommType,
        QCommsConfig,
        get_qcomm_codecs_registry,
    )

    codecs = None
    if wire is not None:
        there, back = (CommType.FP16 if size == 2.0 else CommType.FP32 for size in wire)
        config = QCommsConfig(forward_precision=there, backward_precision=back)
        codecs = get_qcomm_codecs_registry(config)
    return [
        EmbeddingBagCollectionSharder(qcomm_codecs_registry=codecs),
        EmbeddingCollectionSharder(qcomm_codecs_registry=codecs, use_index_dedup=dedup),
    ]


def constraints_of(tables: Sequence[Asked]) -> dict[str, Any]:
    """One type and one kernel for every table."""
    from torchrec.distributed.planner import ParameterConstraints

    return {
        t.name: ParameterConstraints(
            sharding_types=[t.sharding_type],
            compute_kernels=[t.kernel],
            is_weighted=t.weighted,
        )
        for t in tables
    }


def planned(
    tables: Sequence[Asked], job: Job, hbm: int, ddr: int, constraints: Any = None
) -> dict[str, tuple[int, ...]]:
    """The ranks of every table's shards; TorchRec's PlannerError if it finds no plan."""
    asked = constraints_of(tables) if constraints is None else constraints
    return {name: tuple(entry.ranks) for name, entry in _plan(tables, job, hbm, ddr, asked).items()}


def decided(
    tables: Sequence[Asked], job: Job, hbm: int, ddr: int, constraints: Any
) -> dict[str, tuple[str, str, tuple[int, ...]]]:
    """Type, kernel and ranks of every table; TorchRec's PlannerError if it finds no plan."""
    found = _plan(tables, job, hbm, ddr, constraints)
    return {
        name: (entry.sharding_type, entry.compute_kernel, tuple(entry.ranks))
        for name, entry in found.items()
    }


def choice_of(tables: Sequence[Asked], job: Job, hbm: int) -> dict[str, PinSpec]:
    """What TorchRec's planner does by itself, without host memory: types, widths and ranks."""
    found = {}
    for name, entry in _plan(tables, job, hbm, 0, None).items():
        cut = "column" in entry.sharding_type and len(entry.ranks) > 1
        width = entry.sharding_spec.shards[0].shard_sizes[1] if cut else None
        found[name] = PinSpec(
            mode="HBM_ONLY", sharding_type=entry.sharding_type, column_width=width,
            ranks=tuple(entry.ranks),
        )  # fmt: skip
    return found


def enumerated(tables: Sequence[Asked], job: Job) -> list[Any]:
    """TorchRec's options of the pinned tables, with its estimates of every shard."""
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator

    limits = constraints_of(tables)
    enumerator = EmbeddingEnumerator(_board(job), batch_size=job.batch, constraints=limits)
    found: list[Any] = enumerator.enumerate(module_of(tables), sharders_of(job.wire))
    return found


def _board(job: Job, hbm: int | None = None, ddr: int | None = None) -> Any:
    from torchrec.distributed.planner import Topology

    return Topology(
        world_size=job.world, local_world_size=job.local, compute_device="cuda", hbm_cap=hbm,
        ddr_cap=ddr,
    )  # fmt: skip


def _plan(tables: Sequence[Asked], job: Job, hbm: int, ddr: int, constraints: Any) -> Any:
    from torchrec.distributed.planner import EmbeddingShardingPlanner

    planner = EmbeddingShardingPlanner(
        topology=_board(job, hbm, ddr), batch_size=job.batch, constraints=constraints, stats=[]
    )
    return planner.plan(module_of(tables), sharders_of(job.wire)).plan["tables"]
