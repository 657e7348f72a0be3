"""``milp-planner route``: tables, JSON, plot and refusals.

``milp-planner simulate``.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from milp_planner.cli.main import run
from tests.milp_planner.cli.conftest import Cli


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    code = run(["route", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_file_with_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints key counts, every rule and advice, and writes the plot."""
    np.save(tmp_path / "k.npy", np.arange(0, 8000, 8))
    plot = tmp_path / "loads.svg"
    code, out, _ = call(capsys, str(tmp_path / "k.npy"), "--ranks", "8", "--plot", str(plot))
    assert code == 0
    assert "1,000 lookups" in out
    assert "hash_independent" in out
    assert "8.000" in out
    assert plot.read_bytes().lstrip().startswith(b"<?xml")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Stdout is plain JSON, limited to the rules asked for."""
    code, out, _ = call(
        capsys, "uniform:1000", "--ranks", "4", "--dist-type", "roundrobin,continuous", "--json"
    )
    data = json.loads(out)
    assert code == 0
    assert set(data["rules"]) == {"roundrobin", "continuous"}
    assert data["rules"]["roundrobin"]["max_over_mean"] == pytest.approx(1.0)


def test_a_plot_without_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without matplotlib, a sentence says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = call(capsys, "uniform:100", "--plot", str(tmp_path / "x.svg"))
    assert code == 2 and "milp-planner[plot]" in err and out == ""


def test_predicted_beside_simulated(cli: Cli, planned: Path) -> None:
    """A table has a row for every placed table; JSON has the same figures."""
    shown = cli("simulate", planned, "--batches", 2)
    assert shown.code == 0
    assert "predicted → simulated" in shown.out
    assert "users" in shown.out
    found = cli("simulate", planned, "--batches", 2, "--json").json
    assert [t["name"] for t in found["tables"]] == ["users", "items", "ads"]
    assert found["batches"] == 2
    assert len(found["rank_ids"]) == 2


def test_published_skew_reaches_tables_without_statistics(cli: Cli, planned: Path) -> None:
    """Under the skew of production-like tables, a batch has fewer distinct rows."""
    plain = cli("simulate", planned, "--batches", 2, "--json").json
    skewed = cli("simulate", planned, "--batches", 2, "--skew", "dlrm-2022", "--json").json
    assert skewed["tables"][2]["unique_fraction"] < plain["tables"][2]["unique_fraction"]


def test_lost_rows_have_a_table_and_a_remedy(cli: Cli, tmp_path: Path) -> None:
    """The hash table that loses rows is named, the array is not; larger buckets lose fewer rows."""
    text = (
        "name: m\nworkload: {batch_per_rank: 4096}\ntables:\n"
        "  - {name: hashed, rows: 40k, dim: 16, kind: dynamicemb, bucket_capacity: BUCKET}\n"
        "  - {name: array, rows: 40k, dim: 16}\n"
    )
    lost = []
    for bucket in ("128", "2048"):
        (tmp_path / "lost.yaml").write_text(text.replace("BUCKET", bucket))
        assert cli("plan", "lost.yaml", "cluster.yaml", "-f", "greedy", "-o", "l.json").code == 0
        shown = " ".join(cli("simulate", "l.json", "--batches", 4).out.split())
        told = "evicted from full buckets and lost: hashed "
        assert told in shown and "larger bucket_capacity" in shown
        assert "array" not in shown[shown.index(told) :]
        tables = cli("simulate", "l.json", "--batches", 4, "--json").json["tables"]
        lost.append(next(t["lost"] for t in tables if t["name"] == "hashed"))
    assert lost[1] < lost[0] / 2
