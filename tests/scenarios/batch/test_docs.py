"""The suite shown in the docs can be read."""

from __future__ import annotations

import re
from pathlib import Path

from milp_planner.inputs.cluster import Reservations
from milp_planner.inputs.two_d import TwoD
from scenarios.batch.suite import AXES, load_suite

PAGE = Path(__file__).resolve().parents[3] / "docs" / "suites" / "README.md"


def test_the_example_reads(tmp_path: Path) -> None:
    """It shows every axis and a path, except that one field may stand for a group of them."""
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    path = tmp_path / "suite.yaml"
    path.write_text(found[1])
    shown = {name for name, values in load_suite(path).sweep.to_dict().items() if values}
    for fields in (Reservations.model_fields, TwoD.model_fields):
        assert shown & set(fields)
        shown |= set(fields) & set(AXES)
    assert {name for name in shown if "." not in name} == set(AXES)
    assert any("." in name for name in shown)
