"""The tutorial runs unchanged."""

import runpy
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial.py"


@pytest.mark.slow
def test_it_runs_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Table list, plan, picture, interruption, today's plan, moves, explanation, report, export."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(TUTORIAL))
    shown = capsys.readouterr().out
    for word in ("no plan below", "best plan found", "of the gain", "kB of report"):
        assert word in shown
