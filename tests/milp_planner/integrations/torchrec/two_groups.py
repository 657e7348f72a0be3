"""Four gloo processes train a step on DMPCollection with an exported plan of a group of two.

``python -O -m …two_groups FOLDER…``: DMPCollection asserts CUDA, which -O leaves out.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.remote_device import _remote_device
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from milp_planner.integrations.torchrec.sharding_plan import from_document
from milp_planner.integrations.torchrec.two_d import collection_arguments

from . import two_processes as one

WORLD = 4


class OnCpu(DMPCollection):
    """DMPCollection without device numbers, since processors have none."""

    def _remap_sharding_plan(self, plan: Any, *more: Any, **named: Any) -> None:
        super()._remap_sharding_plan(plan, *more, **named)
        for module in plan.plan.values():
            for table in module.values():
                for shard, rank in zip(table.sharding_spec.shards, table.ranks, strict=True):
                    shard.placement = _remote_device(f"rank:{rank}/cpu")


def run(rank: int, folder: str) -> None:
    """Entry point of each process; writes its results to ``folder``/rank."""
    with one.joined(rank, f"{folder}/store", WORLD, local=2):
        torch.save(_train(rank, Path(folder)), f"{folder}/{rank}")


def _train(rank: int, folder: Path) -> dict[str, Any]:
    """One step, and the averaging after it, beside the same step without sharding."""
    document = json.loads((folder / "sharding.json").read_text())
    torch.manual_seed(7)
    reference = one.collection("cpu")
    weights = {name: p.detach().clone() for name, p in reference.state_dict().items()}
    module = one.collection("meta")
    apply_optimizer_in_backward(torch.optim.SGD, module.parameters(), {"lr": one.RATE})
    model = OnCpu(
        module=module,
        device=torch.device("cpu"),
        plan=from_document(document),
        global_pg=dist.group.WORLD,
        sharders=[one.AnySharder()],
        **collection_arguments(document),
    )
    replicas = model._default_ctx.replica_pg
    # TorchRec 1.9 gives the group before the tensors
    model.set_all_reduce_hook(lambda *given: _average(given[-1], replicas))
    with torch.no_grad():
        for name, (row, column), (rows, columns), tensor in _shards(model):
            tensor.copy_(weights[name][row : row + rows, column : column + columns])
    output = model(one.batch(rank)).values()
    output.square().sum().backward()
    alone = [tensor.clone() for *_, tensor in _shards(model)]
    model.sync()
    expected, updated = one.unsharded(reference, rank, WORLD)
    return {
        "replicas": dist.get_process_group_ranks(replicas),
        "output": output.detach(),
        "expected": expected,
        "before": alone,
        "shards": [(*where, tensor.clone()) for *where, tensor in _shards(model)],
        "updated": updated,
    }


def _shards(model: nn.Module) -> Iterator[tuple[str, list[int], list[int], torch.Tensor]]:
    """Name, offsets, sizes and weights of the shards on this rank. They are local parts of
    DTensors; a tensor without shards still has an entry, of size zero."""
    for name, value in model.state_dict().items():
        local = value.to_local()
        places = zip(local.local_offsets(), local.local_sizes(), strict=True)
        for part, (where, size) in zip(local.local_shards(), places, strict=False):
            yield name.removeprefix("module."), [*where], [*size], part.detach()


def _average(tensors: list[torch.Tensor], group: dist.ProcessGroup) -> None:
    """Average by hand, since gloo has no average."""
    for tensor in tensors:
        dist.all_reduce(tensor, group=group)
        tensor /= dist.get_world_size(group)


if __name__ == "__main__":
    for path in sys.argv[1:]:  # forked, so that TorchRec is imported once
        mp.start_processes(run, args=(path,), nprocs=WORLD, start_method="fork")
