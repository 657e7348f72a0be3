"""``milp-planner route``: tables, JSON, plot and refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

from milp_planner.cli.main import run


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
