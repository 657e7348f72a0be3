"""The starter files of `milp-planner init`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from milp_planner.cli.start import STARTERS, write_starters
from milp_planner.errors import BadInput
from milp_planner.inputs.files import load_cluster, load_model


def test_starters_are_valid(tmp_path: Path) -> None:
    """The planner reads the files as written: a model and a cluster."""
    model, cluster = write_starters(tmp_path)
    assert [model.name, cluster.name] == list(STARTERS)
    assert len(load_model(model).tables) == 4
    assert load_cluster(cluster).num_ranks == 8


def test_commented_fields_are_valid(tmp_path: Path) -> None:
    """Fields in indented comments are valid once the comment sign is removed."""
    for path in write_starters(tmp_path):
        text = path.read_text("utf-8")
        switched_on = re.sub(r"^( +)# ", r"\1", text, flags=re.MULTILINE)
        assert switched_on != text
        path.write_text(switched_on)
    assert load_model(tmp_path / "model.yaml").tables[1].constraints.pin is not None
    assert load_cluster(tmp_path / "cluster.yaml").reservations.hbm_bytes == 4 * 2**30


@pytest.mark.parametrize("existing", STARTERS)
def test_nothing_is_overwritten(tmp_path: Path, existing: str) -> None:
    """If one of the files exists, neither is written and the old one stays."""
    (tmp_path / existing).write_text("mine")
    with pytest.raises(BadInput, match="already exists"):
        write_starters(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


def test_missing_folder(tmp_path: Path) -> None:
    """A missing folder gets a sentence."""
    with pytest.raises(BadInput, match="does not exist"):
        write_starters(tmp_path / "nowhere")
