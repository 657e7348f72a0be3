"""``milp-planner fit-memory``: lines to paste, JSON, and sentences for unreadable peaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import Cli


def test_lines_to_paste(cli: Cli, planned: Path) -> None:
    """Of two ranks' peaks, the larger remainder appears in the lines for the model's file."""
    peaks = [f"{planned}:0=1900MiB", f"{planned}:1=1800MiB"]
    found = cli("fit-memory", *peaks, "--json").json
    left = [r["measured"] - r["embeddings"] for r in found["ranks"]]
    assert found["outside"] == -(-max(left) // 2**20) * 2**20
    done = cli("fit-memory", *peaks)
    assert done.code == 0
    assert f"measured_peak: {found['outside'] // 2**20}MiB" in done.out


def test_decimals_are_read(cli: Cli, planned: Path) -> None:
    """Tools print values such as 1.7 GiB, which is not a whole number of bytes."""
    found = cli("fit-memory", f"{planned}:0=1.7GiB", "--json").json
    assert found["ranks"][0]["measured"] == round(1.7 * 2**30)


@pytest.mark.parametrize(
    "text", ["{}", "{}:0", "{}:x=1GiB", "{}=1GiB", "{}:0=1Gb/s", "{}:0=1.2.3GiB", "{}:0=7"]
)
def test_bad_peaks(cli: Cli, planned: Path, text: str) -> None:
    """Exit code 2 and one sentence that quotes the value given."""
    done = cli("fit-memory", text.format(planned))
    assert done.code == 2
    assert "allowed" in done.err and planned.name in done.err.replace("\n", "")
