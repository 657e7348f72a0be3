"""Rows over several machines: written as num_nodes, refused by name by whatever lacks it."""

import pytest

from milp_planner.errors import BadInput, FallsShort
from milp_planner.integrations import exports
from milp_planner.integrations.exports import torchrec, with_pins
from milp_planner.integrations.exports.nodes import check_version
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price

from . import plans

TABLE = plans.static("a", constraints={"sharding_types": ["table_row_wise"], "num_nodes": [1, 2]})


def two() -> Plan:
    """A table's rows on both machines."""
    return plans.chosen_plan({"a": "table_row_wise/HBM_ONLY/group_0_1"}, TABLE)


def test_it_is_written_and_read_back() -> None:
    """The entry has num_nodes and all ranks; a table on one machine has none; read back, it pins
    the same option, also where the model does not offer it."""
    entry = torchrec.document(two())["plan"][""]["a"]
    assert entry["num_nodes"] == 2 and entry["ranks"] == [0, 1, 2, 3]
    one = plans.chosen_plan({"a": "table_row_wise/HBM_ONLY"}, TABLE)
    assert "num_nodes" not in torchrec.document(one)["plan"][""]["a"]
    bare = plans.model(plans.static("a"))
    pins = torchrec.read(exports.write(two(), "torchrec"), bare)
    assert price(with_pins(bare, pins), plans.cluster()).names == [
        "table_row_wise/HBM_ONLY/group_0_1"
    ]


def test_who_has_it_is_said() -> None:
    """A note with the file; a stated version without it, and every other format, refuse by name."""
    assert any("a: rows over several machines need num_nodes" in n for n in torchrec.notes(two()))
    for version in ("1.9.2", "v1.8.0", "1.4"):
        with pytest.raises(FallsShort, match=rf"num_nodes.*TorchRec {version} has none"):
            check_version(two(), version)
    check_version(two(), "1.10.0")
    check_version(plans.chosen_plan({"a": "table_row_wise/HBM_ONLY"}, TABLE), "1.8.0")
    with pytest.raises(BadInput, match="found 'new'; allowed: a version"):
        check_version(two(), "new")
    for to in sorted(set(exports.FORMATS) - {"torchrec"}):
        with pytest.raises(FallsShort, match=f"the trainer behind {to} has none"):
            exports.write(two(), to)
