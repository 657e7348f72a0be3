"""DLRMv4's environment variables, by hand."""

from __future__ import annotations

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import Pin
from milp_planner.integrations.exports import dlrmv4

from . import plans

TABLES = (plans.static("item_id"), plans.static("album_id"), plans.static("uid"))


def test_written_by_hand() -> None:
    """The commonest placement becomes the default, the others are overrides."""
    plan = plans.chosen_plan(
        {
            "item_id": "table_wise/HBM_ONLY",
            "album_id": "column_wise:2/HBM_ONLY",
            "uid": "row_wise/HOST_ONLY",
        },
        *TABLES,
    )
    assert dlrmv4.write(plan) == (
        "export EMB_PLACEMENT=hbm\n"
        "export EMB_PLACEMENT_OVERRIDES=uid=uvm\n"
        "export EMB_SHARDING_OVERRIDES="
        "item_id=table_wise,album_id=column_wise,uid=row_wise\n"
        "export BATCH_SIZE=64\n"
        "export SPARSE_A2A_FWD=fp32\n"
        "export SPARSE_A2A_BWD=fp32\n"
        "export EC_INDEX_DEDUP=0\n"
        "export HBM_CAP_GB=80\n"
    )
    assert any("width" in note for note in dlrmv4.notes(plan))


def test_read_with_aliases_and_defaults() -> None:
    """Aliases, blanks, comments and missing variables are read as the trainer reads them."""
    text = """
    # a recipe
    export EMB_PLACEMENT="uvm_caching"   # most of them
    EMB_PLACEMENT_OVERRIDES='item_id = hbm, uid=auto'
    export EMB_SHARDING_OVERRIDES=item_id=cw,album_id=twrw HBM_CAP_GB=90
    """
    assert dlrmv4.read(text, plans.model(*TABLES)) == {
        "item_id": Pin(mode="HBM_ONLY", sharding_type="column_wise"),
        "album_id": Pin(mode="CACHING", sharding_type="table_row_wise"),
        "uid": Pin(),
    }


def test_auto_leaves_the_sharding_free() -> None:
    """``auto`` is a value of the sharding overrides too; it fixes nothing."""
    found = dlrmv4.read("EMB_SHARDING_OVERRIDES=uid=auto,item_id=rw", plans.model(*TABLES))
    assert found["uid"] == Pin()
    assert found["item_id"] == Pin(sharding_type="row_wise")


def test_nothing_set_fixes_nothing() -> None:
    """Without the variables everything is auto."""
    assert set(dlrmv4.read_environment({}, plans.model(*TABLES)).values()) == {Pin()}


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"EMB_PLACEMENT": "hbn"}, "did you mean hbm"),
        ({"EMB_PLACEMENT_OVERRIDES": "item_id=gpu"}, "EMB_PLACEMENT_OVERRIDES: item_id"),
        ({"EMB_PLACEMENT_OVERRIDES": "item=hbm"}, "unknown table 'item'.*did you mean item_id"),
        ({"EMB_SHARDING_OVERRIDES": "uid=grid_shard"}, "allowed: auto, row_wise"),
        ({"EMB_SHARDING_OVERRIDES": "uid"}, "table=value"),
        ({"EMB_SHARDING_OVERRIDES": "uid=rw,uid=cw"}, "twice"),
    ],
)
def test_illegal_values(variables: dict[str, str], sentence: str) -> None:
    """Unknown tables and values are errors here, although the trainer only warns of tables."""
    with pytest.raises(BadInput, match=sentence):
        dlrmv4.read_environment(variables, plans.model(*TABLES))


@pytest.mark.parametrize("text", ["export EMB_PLACEMNT=hbm", "hbm", "EMB_PLACEMENT='hbm"])
def test_illegal_files(text: str) -> None:
    """Misspelt variables and lines that are no assignments are errors."""
    with pytest.raises(BadInput, match="line 1"):
        dlrmv4.read(text, plans.model(*TABLES))


def test_tables_it_cannot_place() -> None:
    """dynamicemb tables are not DLRMv4's."""
    plan = plans.chosen_plan({}, plans.dynamic("d"))
    with pytest.raises(BadInput, match="'d' is of dynamicemb"):
        dlrmv4.write(plan)
