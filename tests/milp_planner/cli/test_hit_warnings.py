"""What ``plan`` and ``explain`` say about prices that rest on unchecked hit ratios."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import CLUSTER, Cli

TABLE = (
    "  - {{name: {name}, rows: 1M, dim: 16, kind: dynamicemb, access: {{kind: zipf, alpha: 1.0}}, "
    "constraints: {{modes: HYBRID, cache_ratios: [{ratio}]}}}}\n"
)
MODEL = "name: m\nworkload: {batch_per_rank: 64, fusion: free}\ntables:\n"
UNCHECKED = "Hit ratios outside the region that was checked (see `simulate`): thin"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A cluster whose profile prices HYBRID by hit ratios."""
    (tmp_path / "hits.yaml").write_text(CLUSTER.replace("profile: h100", "profile: a10"))
    return tmp_path


def test_an_unchecked_price_is_named(cli: Cli, inputs: Path) -> None:
    """HBM for 1% of the rows is outside the checked region: that table is named, the other is
    not."""
    tables = TABLE.format(name="wide", ratio=0.2) + TABLE.format(name="thin", ratio=0.01)
    (inputs / "thin.yaml").write_text(MODEL + tables)
    told = cli("plan", "thin.yaml", "hits.yaml", "-f", "greedy")
    asked = cli("explain", "plan.json", "--ask", "why", "--time-limit", 5)
    for done in (told, asked):
        assert done.code == 0
        assert [line for line in done.out.splitlines() if "Hit ratios" in line] == [UNCHECKED]


def test_where_all_is_checked_nothing_is_said(cli: Cli, inputs: Path) -> None:
    """Without the thin table, nothing is said."""
    (inputs / "wide.yaml").write_text(MODEL + TABLE.format(name="wide", ratio=0.2))
    told = cli("plan", "wide.yaml", "hits.yaml", "-f", "greedy")
    asked = cli("explain", "plan.json", "--ask", "why", "--time-limit", 5)
    assert (told.code, asked.code) == (0, 0)
    assert "Hit ratios" not in told.out + asked.out


def test_ranks_that_only_look_even_are_told_of(cli: Cli, inputs: Path) -> None:
    """If the ids of hot rows are unknown, ``plan``, ``explain`` and the page warn of it."""
    (inputs / "hot.yaml").write_text(MODEL + TABLE.format(name="hot", ratio=0.2))
    told = cli("plan", "hot.yaml", "hits.yaml", "-f", "greedy")
    asked = cli("explain", "plan.json", "--ask", "why", "--time-limit", 5)
    for done in (told, asked):
        assert "every rank is charged the load of the hottest one: hot (" in " ".join(
            done.out.split()
        )
    assert cli("report", "plan.json", "-o", "page.html").code == 0
    assert "every rank is charged the load" in (inputs / "page.html").read_text()
