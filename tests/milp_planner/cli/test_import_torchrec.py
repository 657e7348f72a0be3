"""``milp-planner import-torchrec``: a model in, an instance; an outcome in, TorchRec's plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formulations import read_instance
from tests.milp_planner.cli.conftest import Cli

pytest.importorskip("torchrec", reason="the torchrec extra is not installed")

MODEL = """
import torch
from torch import nn
from torchrec import EmbeddingBagCollection
from torchrec.distributed.planner import Topology
from torchrec.modules.embedding_configs import EmbeddingBagConfig

def inputs(hbm=2**30):
    tables = [
        EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=128, feature_names=[name])
        for name, rows in (("users", 100_000), ("goods", 500_000))
    ]
    module = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
    return {"module": module, "topology": Topology(2, "cuda", hbm_cap=hbm), "batch_size": 64}

def nothing():
    return {**inputs(), "module": nn.Linear(2, 2)}

def full():
    return inputs(hbm=1)

def broken():
    return 1 / 0
"""


@pytest.fixture
def model(cli: Cli, tmp_path: Path) -> Path:
    """A user's own file."""
    path = tmp_path / "two_tables.py"
    path.write_text(MODEL)
    return path


def test_model_to_instance_to_plan(cli: Cli, model: Path, tmp_path: Path) -> None:
    """The whole way: TorchRec model → instance → solve → TorchRec's ShardingPlan."""
    done = cli("import-torchrec", f"{model}:inputs", "-o", "i.json.gz")
    assert done.code == 0 and "2 tables" in done.out
    instance = read_instance(tmp_path / "i.json.gz")
    assert instance.name == "inputs" and instance.table_names == ("users", "goods")
    assert cli("solve", "i.json.gz", "-f", "cpsat", "-o", "o.json").code == 0
    done = cli("import-torchrec", f"{model}:inputs", "--outcome", "o.json", "-o", "p.json")
    assert done.code == 0
    plan = json.loads((tmp_path / "p.json").read_text())
    chosen = json.loads((tmp_path / "o.json").read_text())["tables"]
    for name, entry in plan["plan"][""].items():
        kind, kernel = chosen[name]["option"].split("/")[:2]
        assert (entry["sharding_type"], entry["compute_kernel"]) == (kind, kernel)
        assert entry["ranks"] == [r for block in chosen[name]["ranks"] for r in block]


def test_without_a_file_the_instance_is_stdout(cli: Cli, model: Path) -> None:
    """The document alone is printed; limits can be lifted and DDR pooled."""
    plain = cli("import-torchrec", f"{model}:inputs").json
    lifted = cli(
        "import-torchrec", f"{model}:inputs", "--json", "--ddr", "machine",
        "--column-widths", "all", "--load-factors", "0.1,0.4",
    ).json  # fmt: skip
    assert plain["format"] == "milp-planner-instance/1"
    assert [r["scope"] for r in plain["resources"]] == ["rank", "rank"]
    assert [r["scope"] for r in lifted["resources"]] == ["rank", "machine"]
    names = {option["name"] for option in lifted["tables"][0]["options"]}
    assert {"column_wise:4/fused", "row_wise/fused_uvm_caching/0.4"} <= names
    assert len(plain["tables"][0]["options"]) < len(names)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("{model}:input",), "did you mean inputs"),
        (("{model}:nothing",), "no table that its sharders can shard"),
        (("{model}:broken",), "raised ZeroDivisionError: division by zero"),
        (("{model}:full",), "TorchRec refuses the model"),
        (("{model}:inputs", "--load-factors", "1.5"), "strictly between 0 and 1"),
        (("{model}:inputs", "--column-widths", "wide"), "need numbers"),
        (("{model}:inputs", "--outcome", "absent.json"), "absent.json"),
    ],
)
def test_bad_input(
    cli: Cli, model: Path, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    """One sentence, exit 2, nothing written."""
    done = cli("import-torchrec", *(a.format(model=model) for a in arguments), "-o", "x.json")
    assert done.code == 2, done.err
    assert sentence in " ".join(done.err.split()) and done.out == ""
    assert not (tmp_path / "x.json").exists()
