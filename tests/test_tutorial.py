"""The tutorial runs unchanged."""

import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial.py"


def test_it_runs_from_an_empty_folder(tmp_path: Path) -> None:
    """Table list, plan, picture, interruption, today's plan, moves, explanation, report, export."""
    done = subprocess.run(
        [sys.executable, str(TUTORIAL)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for word in ("no plan below", "best plan found", "of the gain", "kB of report"):
        assert word in done.stdout
