"""Raw sweeps from files: JSON and CSV, repeats, and sentences for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.features.calibrate.sweep import read_sweep
from tests.milp_planner.features.calibrate.published import published


def test_csv_repeats_are_merged(tmp_path: Path) -> None:
    """Three times of one point become their median, with half their range as spread."""
    file = tmp_path / "mine.csv"
    file.write_text("mode,x,ms\nHBM_ONLY,1,1\nHYBRID,0.1,4\n\nHYBRID,0.1,5\nHYBRID,0.1,6.0\n")
    sweep = read_sweep(file)
    assert sweep.name == "mine"
    assert [(p.mode, p.x, p.ms) for p in sweep.points] == [("HBM_ONLY", 1, 1), ("HYBRID", 0.1, 5)]
    assert sweep.points[1].spread == pytest.approx(0.2)


def test_json_is_read_back(tmp_path: Path) -> None:
    """A published sweep that is written and read back is equal."""
    file = tmp_path / "h100.json"
    file.write_text(json.dumps(published("h100").to_dict()))
    assert read_sweep(file) == published("h100")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mode,x,time\n", r"bad\.csv:1: unknown column 'time'"),
        ("mode,x\n", r"bad\.csv:1: the column ms is missing"),
        ("", r"bad\.csv:1: the column mode is missing"),
        ("mode,x,ms\nHBM_ONLY,1\n", r"bad\.csv:2: found 2 cells; allowed: 3"),
        ("mode,x,ms\nHBM,1,2\n", r"bad\.csv:2.*mode.*HBM_ONLY"),
        ("mode,x,ms\nHBM_ONLY,1,-2\n", r"bad\.csv:2.*ms"),
        ("mode,x,ms\nHBM_ONLY,1,09\n", r"bad\.csv:2: found 09; drop the leading zero"),
        ("mode,x,ms\nHBM_ONLY,1,191e999\n", r"bad\.csv:2: found 191e999"),
        ("mode,x,ms\nHBM_ONLY,1,2\n", r"bad\.csv.*points"),
    ],
)
def test_bad_csv_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """File, line, what was found and what is allowed."""
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        read_sweep(file)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    """Only JSON and CSV files are sweeps."""
    with pytest.raises(BadInput, match=r"sweep\.txt: a raw sweep is a \.json or \.csv file"):
        read_sweep(tmp_path / "sweep.txt")
