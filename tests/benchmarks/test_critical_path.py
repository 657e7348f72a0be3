"""The table of both objectives in docs/torchrec.md shows the stored result; its claim holds."""

from pathlib import Path
from runpy import run_path
from typing import Any

from benchmarks.pages import stored

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "critical-path"


def test_the_page_is_current() -> None:
    """The page's block shows the newest result."""
    script: dict[str, Any] = run_path(str(FOLDER / "run.py"))
    assert script["main"](["page", "--check"]) == 0


def test_what_the_page_claims() -> None:
    """100 models: our figure equals TorchRec's to 1e-6 and never exceeds that of TorchRec's own
    plan."""
    models = stored(FOLDER / "results")["models"]
    assert len(models) == 100
    for model in models:
        best, theirs = model["critical_path"], model["torchrec"]
        if not isinstance(best, dict):
            assert best == "infeasible" and not isinstance(theirs, dict)
            continue
        assert best["relative_difference"] < 1e-6
        if isinstance(theirs, dict):
            assert best["critical_path"] <= theirs["critical_path"] * (1 + 1e-6)
