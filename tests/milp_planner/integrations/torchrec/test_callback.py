"""``export --to torchrec-callback``: a stock planner places a model on our ranks."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.types import ShardingPlan

from milp_planner.integrations import exports
from milp_planner.plans.placement import Plan
from tests.milp_planner.integrations.exports import plans

from . import two_processes
from .two_processes import WORLD, in_processes, train_one_step

CHOSEN = {
    "whole": "table_wise/HBM_ONLY",
    "columns": "column_wise:2/HBM_ONLY",
    "rows": "row_wise/HBM_ONLY",
    "host_rows": "row_wise/HBM_ONLY",
}
WIDTHS = {"column_widths": [8]}
RANKS = {"whole": [1], "columns": [1, 0], "rows": [0, 1], "host_rows": [0, 1]}


def planned(**changes: Any) -> Plan:
    """A plan of the processes' tables on ranks that TorchRec's planner would not choose."""
    tables = [
        plans.static(name, rows, dim, optimizer="sgd", constraints=WIDTHS, **changes)
        for name, (rows, dim, _) in two_processes.SHAPES.items()
    ]
    plan = plans.plan_of(plans.model(*tables), CHOSEN, plans.cluster(1, 2))
    return plans.on_ranks(plan, RANKS)


def written(folder: Path, plan: Plan) -> str:
    """The path of the plan's module."""
    path = folder / "placed.py"
    path.write_text(exports.write(plan, "torchrec-callback"))
    return str(path)


def stock(path: str) -> EmbeddingShardingPlanner:
    """TorchRec's own planner, with nothing but the callback of an exported module added."""
    spec = importlib.util.spec_from_file_location("placed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    topology = Topology(world_size=WORLD, local_world_size=WORLD, compute_device="cpu")
    return EmbeddingShardingPlanner(topology=topology, callbacks=[module.place])


def _one_step(rank: int, path: str) -> dict[str, Any]:
    """A training step planned by the stock planner."""

    def planned(module: nn.Module, sharders: list[Any]) -> ShardingPlan:
        return stock(path).collective_plan(module, sharders, dist.group.WORLD)

    return train_one_step(rank, planned)


def test_a_stock_planner_runs_our_plan(tmp_path: Path) -> None:
    """Types and ranks are ours in both processes, and a training step equals the unsharded one."""
    seen = in_processes(_one_step, tmp_path, written(tmp_path, planned()))
    for rank in seen:
        assert {name: [*ranks] for name, (_, ranks) in rank["plan"].items()} == RANKS
        for name, (kind, _) in rank["plan"].items():
            assert kind == CHOSEN[name].split("/")[0].split(":")[0]
    two_processes.assert_trained_alike(seen)


def _plan(path: str) -> Any:
    return stock(path).plan(two_processes.collection("meta"), [two_processes.AnySharder()])


def test_other_tables_are_refused(tmp_path: Path) -> None:
    """A plan of other shapes, or of a table that the model lacks, places nothing."""
    plan = planned()
    text = exports.write(plan, "torchrec-callback")
    for old, new, sentence in (
        ('"host_rows"', '"other_rows"', "the plan has no table 'host_rows'"),
        ('"shape": [\n     20', '"shape": [\n     21', "table 'whole' has shape"),
    ):
        assert old in text
        path = tmp_path / "placed.py"
        path.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=sentence):
            _plan(str(path))


def test_more_rows_than_planned_are_refused(tmp_path: Path) -> None:
    """Tables of fp32 under a plan for fp16 are twice as large: the first rank is named."""
    path = written(tmp_path, planned(dtype="fp16"))
    with pytest.raises(ValueError, match=r"rank 0 would hold \d+ bytes of rows, not \d+"):
        _plan(path)
