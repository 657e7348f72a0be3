"""An exported plan of one sharding group trains on TorchRec's DMPCollection: two gloo groups of two
processes, averaged, equal the unsharded module."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from milp_planner import export, plan
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations.exports.torchrec import document
from milp_planner.integrations.torchrec.two_d import collection_arguments

from . import two_processes
from .two_groups import WORLD

LAYOUTS = ("strided", "contiguous")
LINKS = {"intra_machine": "10GB/s", "inter_machine": "1GB/s"}


def planned(layout: str, **fields: Any) -> Any:
    """A plan of the tables of :data:`two_processes.SHAPES` on two machines of two CPU ranks."""
    tables = [
        {
            "name": name, "rows": rows, "dim": dim, "optimizer": "sgd",
            "constraints": {"sharding_types": kinds, "column_widths": [8]},
        }
        for name, (rows, dim, kinds) in two_processes.SHAPES.items()
    ]  # fmt: skip
    two_d = {"sharding_group_size": 2, "layout": layout, "strategy": "default", **fields}
    place = {
        "name": "c", "machines": 2, "ranks_per_machine": 2, "hbm": 0, "ddr": "1GiB",
        "interconnect": LINKS, "two_d": two_d,
    }  # fmt: skip
    model = {"name": "m", "workload": {"batch_per_rank": 3}, "tables": tables}
    return plan(Model.from_dict(model), Cluster.from_dict(place), formulation="cpsat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all four processes, in a folder for each layout."""
    root: Path = tmp_path_factory.mktemp("gloo")
    for layout in LAYOUTS:
        (root / layout).mkdir()
        (root / layout / "sharding.json").write_text(export(planned(layout), "torchrec"))
    module = f"{__package__}.two_groups"
    done = subprocess.run(
        [sys.executable, "-O", "-m", module, *(str(root / layout) for layout in LAYOUTS)],
        capture_output=True, text=True, timeout=500, cwd=Path(__file__).parents[4],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return root


def seen(folder: Path, layout: str) -> list[dict[str, Any]]:
    """The results that each process of a layout wrote."""
    return two_processes.saved(folder / layout, WORLD)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "pairs"), [("strided", {(0, 1), (2, 3)}), ("contiguous", {(0, 2), (1, 3)})]
)
def test_replicas_are_those_of_the_plan(folder: Path, layout: str, pairs: object) -> None:
    """Side by side, or a group apart."""
    assert {tuple(rank["replicas"]) for rank in seen(folder, layout)} == pairs


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_step_equals_the_unsharded_module(folder: Path, layout: str) -> None:
    """Each rank's output agrees; replicas differ before the averaging, and after it all shards are
    those of one step on all four batches."""
    ranks = seen(folder, layout)
    two_processes.assert_trained_alike(ranks, copies=2)
    for pair in {tuple(rank["replicas"]) for rank in ranks}:
        one, other = (ranks[rank]["before"] for rank in pair)
        assert any(not torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("layout", "strategy", "interval"),
    [("strided", "default", 4), ("contiguous", "fully_sharded", "never")],
)
def test_arguments(layout: str, strategy: str, interval: Any) -> None:
    """The arguments of DMPCollection, and the pipeline's interval."""
    found = document(planned(layout, strategy=strategy, sync_interval=interval))
    arguments = collection_arguments(found)
    assert arguments.pop("sharding_strategy").value == strategy
    assert arguments == {
        "world_size": 4,
        "sharding_group_size": 2,
        "use_inter_host_allreduce": layout == "contiguous",
        "node_group_size": 1 if layout == "strided" else 2,
    }
    assert found["dmp_collection_sync_interval_batches"] == (4 if interval == 4 else None)
    assert (found["world_size"], found["local_world_size"]) == (2, arguments["node_group_size"])


def test_a_plan_without_groups() -> None:
    """It is refused in a sentence."""
    whole = planned("strided", sharding_group_size=4)
    with pytest.raises(BadInput, match="a plan without sharding groups"):
        collection_arguments(document(whole))
