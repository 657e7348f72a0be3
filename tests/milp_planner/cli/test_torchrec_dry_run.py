"""``milp-planner torchrec-dry-run``: one model on several SKUs."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import Cli

pytest.importorskip("torchrec", reason="the torchrec extra is not installed")
HAS_SERVICE = find_spec("torchrec.distributed.planner.provider") is not None
needs_service = pytest.mark.skipif(not HAS_SERVICE, reason="needs TorchRec 1.9")

MODEL = """
import torch
from torchrec import EmbeddingBagCollection
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_configs import EmbeddingBagConfig

def inputs():
    tables = [
        EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=128, feature_names=[name])
        for name, rows in (("users", 300_000), ("goods", 500_000))
    ]
    return {
        "module": EmbeddingBagCollection(tables=tables, device=torch.device("meta")),
        "topology": Topology(2, "cuda"),
        "batch_size": 64,
        "constraints": {t.name: ParameterConstraints(compute_kernels=["fused"]) for t in tables},
    }
"""
CLUSTER = """\
name: {name}
profile: h100
machines: 1
ranks_per_machine: 2
hbm: {hbm}
ddr: 4GiB
interconnect: {{intra_machine: 450GB/s}}
"""


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """A user's model and two clusters, one with room and one without."""
    (tmp_path / "two.py").write_text(MODEL)
    (tmp_path / "big.yaml").write_text(CLUSTER.format(name="big", hbm="2GiB"))
    (tmp_path / "small.yaml").write_text(CLUSTER.format(name="small", hbm="100MiB"))
    return tmp_path


@pytest.mark.skipif(HAS_SERVICE, reason="this TorchRec has the planning service")
def test_an_older_torchrec_is_a_sentence(cli: Cli, folder: Path) -> None:
    """TorchRec before 1.9 has no planning service: a sentence says what to install, exit code 2."""
    done = cli("torchrec-dry-run", "two.py:inputs", "--skus", "8xh100")
    assert done.code == 2 and "torchrec==1.9.2" in done.err


@needs_service
def test_one_row_a_sku(cli: Cli, folder: Path) -> None:
    """The SKU with room fits; if one is too small, the exit code is 1 and the row says why."""
    done = cli("torchrec-dry-run", "two.py:inputs", "--skus", "big.yaml", "-o", "plans")
    assert done.code == 0, done.err
    assert "big" in done.out and "yes" in done.out and "0.00%" in done.out
    plan = json.loads((folder / "plans" / "big.json").read_text())
    assert set(plan["plan"][""]) == {"users", "goods"}
    assert (plan["world_size"], plan["local_world_size"]) == (2, 2)
    done = cli("torchrec-dry-run", "two.py:inputs", "--skus", "big.yaml,small.yaml")
    assert done.code == 1
    assert "no (proved)" in done.out and "short by" in done.out


@needs_service
def test_json(cli: Cli, folder: Path) -> None:
    """The rows as JSON."""
    asked = ("torchrec-dry-run", "two.py:inputs", "--skus", "big.yaml", "--json",
             "--objective", "critical_path")  # fmt: skip
    [row] = json.loads(cli(*asked).out)
    assert row["fits"] and row["report"]["objective"] == "critical_path"


@needs_service
def test_mistakes_are_sentences(cli: Cli, folder: Path) -> None:
    """Unknown clusters, one given twice, none given, and sizes that do not divide."""
    for skus, word in (("8xh10", "8xh100"), ("big.yaml,big.yaml", "each name once"), (",", "none")):
        done = cli("torchrec-dry-run", "two.py:inputs", "--skus", skus)
        assert done.code == 2 and word in done.err
    done = cli("torchrec-dry-run", "two.py:inputs", "--skus", "big.yaml", "--world-size", "3",
               "--local-world-size", "2")  # fmt: skip
    assert done.code == 2 and "divisible" in done.err


@needs_service
def test_the_page_shows_what_is_printed(cli: Cli, tmp_path: Path) -> None:
    """The my_model.py and the command on docs/torchrec.md print the page's table and sentences.

    Several plans may be optimal, so the rank and its HBM are not compared.
    """
    page = (Path(__file__).resolve().parents[3] / "docs" / "torchrec.md").read_text("utf-8")
    [model] = re.findall(r"`my_model.py`\n\n```python\n(.*?)```", page, re.S)
    (asked, shown), *_ = re.findall(  # the first block; another one shows a reservation
        r"^\$ milp-planner (torchrec-dry-run.*?)\n(.*?)```", page, re.M | re.S
    )
    (tmp_path / "my_model.py").write_text(model)
    done = cli(*asked.split())
    assert done.code == 1
    printed, wanted = (
        [re.split(r"\s{2,}", line.strip()) for line in text.strip().splitlines()]
        for text in (done.out, shown)
    )
    assert [row[:5] + row[7:] for row in printed] == [row[:5] + row[7:] for row in wanted]


@needs_service
def test_rows_of_runs(cli: Cli, folder: Path) -> None:
    """A row about every SKU is in the file, with the kind of failure; a wrong suffix is told before
    anything is planned."""
    done = cli("torchrec-dry-run", "two.py:inputs", "--skus", "big.yaml", "--rows", "runs.csv")
    assert done.code == 2 and ".jsonl, .sqlite, .db" in done.err
    both = ("torchrec-dry-run", "two.py:inputs", "--skus", "big.yaml,small.yaml")
    assert cli(*both, "--rows", "runs.jsonl").code == 1
    rows = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert [(row["sku"], row["planner_error_type"]) for row in rows] == [
        ("big", None), ("small", "insufficient_storage")
    ]  # fmt: skip
    assert rows[0]["certified_gap"] == 0.0 and len(rows[0]["model_arch_hash"]) == 16
