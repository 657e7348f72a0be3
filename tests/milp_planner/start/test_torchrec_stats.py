"""TorchRec's printed statistics are read back."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.start.rows import read_start
from milp_planner.start.torchrec_stats import read_stats

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


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_a_plan_of_today(tmp_path: Path, packed: bool) -> None:
    """Plain or gzipped, the file gives rows with their ranks."""
    data = printout(*ROWS).encode()
    path = tmp_path / ("stats.txt.gz" if packed else "stats.txt")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert [row.ranks for row in read_start(path)] == [(0, 3), (0, 1, 2, 3), (2,)]


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


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/torchrec-production")
def test_the_published_printout() -> None:
    """All 1,935 tables of TorchRec's published plan, two of which are row-wise on all 96 ranks."""
    rows = read_start(SHARED / "sharding_stats_example.txt.gz")
    assert len(rows) == len({row.table for row in rows}) == 1935
    assert [row.ranks for row in rows if row.sharding_type == "row_wise"] == 2 * [tuple(range(96))]
