"""A model from TorchRec's printed statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_planner.cli.main import run
from milp_planner.errors import BadInput
from milp_planner.inputs.files import load_model
from milp_planner.start.torchrec_stats import model_files, read_stats
from tests.milp_planner.start.test_torchrec_stats import SHARED, printout

COLUMNS = {
    "FQN": 20, "Sharding": 12, "Compute Kernel": 18, "Sum Num Poolings": 20, "Num Indices": 15,
    "Output": 12, "Weighted": 14, "Features": 12, "Emb Dim (CW Dim)": 20, "Hash Size": 13,
    "Ranks": 9, "Batch Sizes": 12,
}  # fmt: skip


def line(*cells: str) -> str:
    """The cells under the columns above."""
    return "".join(f"{c:<{w}}" for c, w in zip(cells, COLUMNS.values(), strict=True)).rstrip()


HEAD = line(*COLUMNS)
POOLED = line("m.a.t0", "TW", "fused", "7.5", "15", "pooled", "unweighted", "3", "64", "100", "1",
              "512*3")  # fmt: skip
IDLE = line("m.b.t1", "TW", "fused", "1.0", "0.0", "pooled", "weighted", "1", "8", "5", "0", "512")
SEQUENCE = line("m.b.t2", "RW", "fused", "4", "6066", "sequence", "unweighted", "4", "128", "900",
                "0-1", "n/a")  # fmt: skip


def test_ids_and_poolings_are_those_printed(tmp_path: Path) -> None:
    """Ids per sample, poolings, dims and batch are read; the common path is cut off."""
    stats = read_stats(printout(POOLED, IDLE, SEQUENCE, head=HEAD), "s.txt")
    for name, text in zip(("m.yaml", "tables.csv"), model_files(stats, "m", "fp16", "adam"),
                          strict=True):  # fmt: skip
        (tmp_path / name).write_text(text)
    model = load_model(tmp_path / "m.yaml")
    assert [t.name for t in model.tables] == ["a.t0", "b.t1", "b.t2"]
    assert [t.lookups_per_sample for t in model.tables] == [15, 0, 6066]
    assert [t.num_features * t.num_poolings for t in model.tables[:2]] == [7.5, 1]
    assert model.workload.batch_per_rank == 512 and model.tables[0].dtype == "fp16"
    assert [t.weighted for t in model.tables] == [False, True, False]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (POOLED.replace(" 15 ", " x5 "), "Num Indices is 'x5'; needs a number"),
        (SEQUENCE, "the printout names no batch size"),
    ],
)
def test_mistakes(row: str, sentence: str) -> None:
    """Each gets one sentence."""
    with pytest.raises(BadInput) as error:
        model_files(read_stats(printout(row, head=HEAD), "s.txt"), "m", "fp32", "adam")
    assert sentence in str(error.value)


def test_the_command_overwrites_nothing(tmp_path: Path) -> None:
    """The first call writes two files; the second gets a sentence and exit code 2."""
    (tmp_path / "s.txt").write_text(printout(POOLED, head=HEAD))
    asked = ["import-stats", str(tmp_path / "s.txt"), "-o", str(tmp_path)]
    assert run(asked) == 0 and load_model(tmp_path / "model.yaml").tables[0].rows == 100
    before = (tmp_path / "model.yaml").read_text()
    assert run(asked) == 2 and (tmp_path / "model.yaml").read_text() == before


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/torchrec-production")
def test_the_published_printout(tmp_path: Path) -> None:
    """All of TorchRec's published tables are read, including idle ones and fractional poolings."""
    asked = ["import-stats", str(SHARED / "sharding_stats_example.txt.gz"), "-o", str(tmp_path)]
    assert run(asked) == 0
    model = load_model(tmp_path / "model.yaml")
    assert len(model.tables) == 1935 and model.workload.batch_per_rank == 2560
    assert model.table("event_ebc.table_1508").num_poolings == pytest.approx(101.95)
    assert model.table("ebc.table_1155").pooling_factor == 0
