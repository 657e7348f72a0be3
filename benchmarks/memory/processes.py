"""What each gloo process does: shard with TorchRec, run two steps, count in the second."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import torch
import torch.distributed as dist
from torch import nn
from torchrec import EmbeddingBagCollection, EmbeddingCollection, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fbgemm_qcomm_codec import (
    CommType,
    QCommsConfig,
    get_qcomm_codecs_registry,
)
from torchrec.distributed.sharding_plan import (
    column_wise,
    construct_module_sharding_plan,
    data_parallel,
    row_wise,
    table_wise,
)
from torchrec.distributed.types import ShardingPlan
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, EmbeddingConfig
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from benchmarks.memory.cases import STATES, STEP, Amounts, Case
from benchmarks.memory.live import Live

OPTIMIZERS = {
    "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "rowwise_adagrad": RowWiseAdagrad,
}  # fmt: skip


class AnySharding:
    """Offers on CPU what TorchRec's runtime can do there, though its planner would not."""

    def sharding_types(self, compute_device_type: str) -> list[str]:
        """All that are measured."""
        return ["table_wise", "column_wise", "row_wise", "data_parallel"]


class Bags(AnySharding, EmbeddingBagCollectionSharder):
    """Of pooled tables."""


class Sequences(AnySharding, EmbeddingCollectionSharder):
    """Of sequences."""


class Dense(torch.autograd.Function):
    """A dense part that keeps the embeddings and returns a gradient as large, and nothing else."""

    live: Live

    @staticmethod
    def forward(ctx: Any, *embeddings: torch.Tensor) -> torch.Tensor:
        """Keep the embeddings."""
        ctx.save_for_backward(*embeddings)
        return embeddings[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A gradient for each; what follows is the embeddings' backward pass."""
        found = tuple(torch.ones_like(each) for each in ctx.saved_tensors)
        Dense.live.then("backward_exchange")
        return found


def run(rank: int, store: str, results: str, cases: list[Case]) -> None:
    """Entry point: all cases with as many ranks, one after the other."""
    world = cases[0].ranks
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world)
    )
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    found = [measured(case) for case in cases]
    torch.save(found, f"{results}/{rank}")
    dist.destroy_process_group()


def batch(case: Case) -> KeyedJaggedTensor:
    """The batch of a rank: the same ids for each table."""
    values = torch.tensor(case.ids() * case.ranks)
    lengths = torch.full((case.ranks * case.samples,), case.length)
    keys = [f"f{i}" for i in range(case.ranks)]
    return KeyedJaggedTensor(keys=keys, values=values, lengths=lengths)


def sharded(case: Case) -> DistributedModelParallel:
    """The tables under TorchRec, placed as the case says."""
    kinds = (EmbeddingBagConfig, EmbeddingBagCollection, Bags)
    if case.output == "sequence":
        kinds = (EmbeddingConfig, EmbeddingCollection, Sequences)
    config, collection, sharder_type = kinds
    tables = [
        config(
            name=f"t{i}",
            num_embeddings=case.rows,
            embedding_dim=case.dim,
            feature_names=[f"f{i}"],
            data_type=DataType[case.dtype.upper()],
        )
        for i in range(case.ranks)
    ]
    module = nn.ModuleDict({"tables": collection(tables=tables, device=torch.device("meta"))})
    if case.sharding != "data_parallel":
        rate = {"lr": 0.1}
        apply_optimizer_in_backward(OPTIMIZERS[case.optimizer], module.parameters(), rate)
    coded = QCommsConfig(CommType.FP16, CommType.FP16) if case.wire == "fp16" else None
    sharder = sharder_type(qcomm_codecs_registry=coded and get_qcomm_codecs_registry(coded))
    ranks = list(range(case.ranks))
    ways = {
        "table_wise": lambda i: table_wise(rank=i, compute_kernel="fused"),
        "column_wise": lambda i: column_wise(ranks=ranks, compute_kernel="fused"),
        "row_wise": lambda i: row_wise(compute_kernel="fused"),
        "data_parallel": lambda i: data_parallel(),
    }
    placed = construct_module_sharding_plan(
        module["tables"], {f"t{i}": ways[case.sharding](i) for i in ranks}, sharder,
        local_size=case.ranks, world_size=case.ranks, device_type="cpu",
    )  # fmt: skip
    plan = ShardingPlan({"tables": placed})
    return DistributedModelParallel(
        module, device=torch.device("cpu"), plan=plan, sharders=[sharder]
    )


APPEARED = {
    "ids_exchange": "ids", "inputs": "ids", "forward_exchange": "embeddings",
    "dense_part": "gradients", "backward_exchange": "gradients", "update": "gradients",
}  # fmt: skip
"""What a tensor is, by the moment in which it appeared; otherwise it belongs to the tables."""


def measured(case: Case) -> dict[str, Amounts]:
    """Most live bytes at each moment of the second step, part by part, without its own batch."""
    live = Dense.live = Live()
    ids = batch(case)
    with live:
        model = sharded(case)
        live.adopt()
        live.enter("constructed")
        if case.dtype == "bf16":  # FBGEMM has no lookup of them on CPU
            held = sum(live.most["constructed"].values())
            return {"constructed": {"tables": held - own_bytes(ids)}}
        live.enter("first_step")
        optimizer = None
        if case.sharding == "data_parallel":
            optimizer = OPTIMIZERS[case.optimizer](model.parameters(), lr=0.1)
        for _ in range(2):
            step(model.module["tables"], ids, optimizer, live)
    found: dict[str, Amounts] = {}
    for moment in (*STATES, *STEP):
        parts = found[moment] = {"tables": -own_bytes(ids)}
        for since, amount in live.most[moment].items():
            part = APPEARED.get(since, "tables")
            parts[part] = parts.get(part, 0) + amount
    return found


def own_bytes(ids: KeyedJaggedTensor) -> int:
    """Bytes of a rank's own batch, which is not the embeddings'."""
    return sum(each.untyped_storage().nbytes() for each in (ids.values(), ids.lengths()))


def step(tables: Any, ids: KeyedJaggedTensor, optimizer: Any, live: Live) -> None:
    """One step, as the sharded module runs it; the optimizer is for replicated tables."""
    live.enter("ids_exchange")
    fresh = KeyedJaggedTensor(keys=ids.keys(), values=ids.values(), lengths=ids.lengths())
    context = tables.create_context()
    arrived = tables.input_dist(context, fresh).wait().wait()
    del fresh
    live.enter("inputs")
    live.enter("forward_exchange")
    result = tables.compute_and_output_dist(context, arrived).wait()
    embeddings = (
        [each.values() for each in result.values()]
        if isinstance(result, dict)
        else [result.values()]
    )
    del result
    live.enter("dense_part")
    loss = Dense.apply(*embeddings)
    del embeddings
    loss.backward()
    live.enter("update")
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()
