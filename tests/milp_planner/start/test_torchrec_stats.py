"""TorchRec's printed statistics are read back.

A model from TorchRec's printed statistics.
"""

import gzip
from fractions import Fraction
from pathlib import Path

import pytest

from milp_planner.cli.main import run
from milp_planner.errors import BadInput
from milp_planner.inputs.files import load_model
from milp_planner.start.rows import read_start
from milp_planner.start.torchrec_stats import model_files, read_stats

HEAD = (
    "FQN          Sharding   Compute Kernel        Cache Load Factor   Emb Dim (CW Dim)   "
    "Hash Size    Ranks"
)
ROWS = (
    "ebc.t0       CW         fused                 None                256 (128)          1000"
    "         0,3",
    "ebc.t1       RW         fused_uvm_caching     0.2                 64                 5000"
    "         0-3",
    "ebc.t1       TW         fused_uvm             None                32 (32)            70"
    "           2",
)
SHARED = Path(__file__).resolve().parents[4] / "shared/data/torchrec-production"


def printout(*rows: str, head: str = HEAD) -> str:
    """A printout with these rows."""
    inner = ["--- Planner Statistics ---", "", "Parameter Info:", head, "-----  ----  ---", *rows]
    lines = [f"# {line:<140} #" for line in [*inner, "", "fused: 3"]]
    return "\n".join(["#" * 144, *lines, "#" * 144])


def test_every_cell_is_understood() -> None:
    """Sharding type, mode, load factor, widths and ranks; a repeated name gets a number."""
    found = read_stats(printout(*ROWS), "stats.txt")
    assert [t.name for t in found] == ["ebc.t0", "ebc.t1", "ebc.t1_2"]
    assert [(t.sharding_type, t.mode) for t in found] == [
        ("column_wise", "HBM_ONLY"), ("row_wise", "CACHING"), ("table_wise", "HOST_ONLY"),
    ]  # fmt: skip
    assert [(t.rows, t.dim, t.width) for t in found] == [
        (1000, 256, 128), (5000, 64, None), (70, 32, 32),
    ]  # fmt: skip
    assert found[1].ratio == Fraction(1, 5)


def test_it_is_a_plan_of_today(tmp_path: Path) -> None:
    """Plain or gzipped, the file gives rows with their ranks."""
    data = printout(*ROWS).encode()
    for name, content in (("stats.txt", data), ("stats.txt.gz", gzip.compress(data))):
        (tmp_path / name).write_bytes(content)
        assert [r.ranks for r in read_start(tmp_path / name)] == [(0, 3), (0, 1, 2, 3), (2,)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "is not a plan; allowed: a plan.json"),
        (printout(), "lists no table under 'Parameter Info:'"),
        (printout(head="FQN   Sharding"), "the printout has no column 'Compute Kernel'"),
        (printout(ROWS[0].replace("CW ", "XX ")), "Sharding: found 'XX'; allowed: "),
        (printout(ROWS[0].replace("fused", "magic")), "Compute Kernel: found 'magic'; allowed: "),
        (printout(ROWS[1].replace("0.2", "2.0")), "Cache Load Factor is '2.0'"),
        (printout(ROWS[0].replace("1000", "many")), "Hash Size is 'many'"),
        (printout(ROWS[0].replace("0,3", "a,b")), "ranks has 'a'"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, sentence: str) -> None:
    """Each gets one sentence with the file's name."""
    path = tmp_path / "stats.txt"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"stats\.txt") as error:
        read_start(path)
    assert sentence in str(error.value)


COLUMNS = {
    "FQN": 20, "Sharding": 12, "Compute Kernel": 18, "Sum Num Poolings": 20, "Num Indices": 15,
    "Output": 12, "Weighted": 14, "Features": 12, "Emb Dim (CW Dim)": 20, "Hash Size": 13,
    "Ranks": 9, "Batch Sizes": 12,
}  # fmt: skip


def line(*cells: str) -> str:
    """The cells under the columns above."""
    return "".join(f"{c:<{w}}" for c, w in zip(cells, COLUMNS.values(), strict=True)).rstrip()


STATS_HEAD = line(*COLUMNS)
POOLED = line("m.a.t0", "TW", "fused", "7.5", "15", "pooled", "unweighted", "3", "64", "100", "1",
              "512*3")  # fmt: skip
IDLE = line("m.b.t1", "TW", "fused", "1.0", "0.0", "pooled", "weighted", "1", "8", "5", "0", "512")
SEQUENCE = line("m.b.t2", "RW", "fused", "4", "6066", "sequence", "unweighted", "4", "128", "900",
                "0-1", "n/a")  # fmt: skip


def test_ids_and_poolings_are_those_printed(tmp_path: Path) -> None:
    """Ids per sample, poolings, dims and batch are read; the common path is cut off."""
    stats = read_stats(printout(POOLED, IDLE, SEQUENCE, head=STATS_HEAD), "s.txt")
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
def test_mistakes_in_statistics(row: str, sentence: str) -> None:
    """Each gets one sentence."""
    with pytest.raises(BadInput) as error:
        model_files(read_stats(printout(row, head=STATS_HEAD), "s.txt"), "m", "fp32", "adam")
    assert sentence in str(error.value)


def test_the_command_overwrites_nothing(tmp_path: Path) -> None:
    """The first call writes two files; the second gets a sentence and exit code 2."""
    (tmp_path / "s.txt").write_text(printout(POOLED, head=STATS_HEAD))
    asked = ["import-stats", str(tmp_path / "s.txt"), "-o", str(tmp_path)]
    assert run(asked) == 0 and load_model(tmp_path / "model.yaml").tables[0].rows == 100
    before = (tmp_path / "model.yaml").read_text()
    assert run(asked) == 2 and (tmp_path / "model.yaml").read_text() == before


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/torchrec-production")
def test_the_published_printout(tmp_path: Path) -> None:
    """All 1,935 tables of TorchRec's published plan are read, two of which are row-wise on all 96
    ranks; as a model, too, including idle ones and fractional poolings."""
    printed = SHARED / "sharding_stats_example.txt.gz"
    rows = read_start(printed)
    assert len(rows) == len({row.table for row in rows}) == 1935
    assert [row.ranks for row in rows if row.sharding_type == "row_wise"] == 2 * [tuple(range(96))]
    assert run(["import-stats", str(printed), "-o", str(tmp_path)]) == 0
    model = load_model(tmp_path / "model.yaml")
    assert len(model.tables) == 1935 and model.workload.batch_per_rank == 2560
    assert model.table("event_ebc.table_1508").num_poolings == pytest.approx(101.95)
    assert model.table("ebc.table_1155").pooling_factor == 0
