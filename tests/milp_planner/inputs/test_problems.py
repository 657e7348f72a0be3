"""From pydantic's findings to sentences."""

from __future__ import annotations

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.problems import LONG_LIST, choice, data_path, nearest, show_path
from tests.milp_planner.inputs.builders import model, table


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("caching", "CACHING"),
        ("HYBRIDE", "HYBRID"),
        ("host", "HOST_ONLY"),
        ("zzz", None),
        ("", None),
    ],
)
def test_nearest(name: str, expected: str | None) -> None:
    """The nearest name ignores case; otherwise it is a name that contains the text."""
    assert nearest(name, ["HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY"]) == expected


@pytest.mark.parametrize(
    ("name", "allowed", "expected"),
    [
        ("pooling", ["num_poolings", "pooling_factor"], "pooling_factor"),
        ("ranks", ["machines", "two_d", "ranks_per_machine"], "ranks_per_machine"),
        ("dtype", ["exchange_dtype_backward", "exchange_dtype"], "exchange_dtype"),
        ("rowz", ["rows", "row_wise"], "rows"),
    ],
)
def test_a_name_that_begins_alike_is_nearest(name: str, allowed: list[str], expected: str) -> None:
    """Before names that only share letters; of those that contain it, the shortest."""
    assert nearest(name, allowed) == expected
    assert nearest(name, allowed[::-1]) == expected


def test_long_lists_are_left_out_when_a_name_is_near() -> None:
    """A long list of allowed names appears only if none of them is near."""
    names = [f"field_{i}" for i in range(LONG_LIST + 1)]
    assert choice("fild_3", names) == "did you mean field_3?"
    assert choice("qqq", names).startswith("allowed: field_0, field_1")


def test_paths_are_written_as_people_do() -> None:
    """List positions in brackets, fields with dots."""
    assert show_path(("tables", 3, "access", "bins", 0, 1)) == "tables[3].access.bins[0][1]"
    assert show_path(()) == ""


def test_tags_of_unions_are_no_fields() -> None:
    """The kind of access that pydantic puts into a location is not part of the path."""
    location = ("tables", 0, "access", "zipf", "alpha")
    assert data_path(Model, location) == ("tables", 0, "access", "alpha")
    inside = ("tables", 0, "access", "top_ids", "ids", 1, "share")
    assert data_path(Model, inside) == ("tables", 0, "access", "ids", 1, "share")


def test_the_cause_comes_first() -> None:
    """A misspelt field is also a missing one; the sentence names the misspelling and counts the
    rest."""
    misspelt = {"name": "t", "row": 5, "dim": 8}
    with pytest.raises(BadInput, match=r"row: unknown field; .* \(and 1 more problem\)$"):
        Model.from_dict(model(misspelt))


def test_the_rest_is_counted() -> None:
    """Three more mistakes are counted; if there are none, nothing is said of them."""
    with pytest.raises(BadInput, match=r"tables\[0\]\.rows: is missing \(and 3 more problems\)$"):
        Model.from_dict(model({"name": "a"}, {"name": "b"}))
    with pytest.raises(BadInput, match=r"tables\[0\]\.rows: is missing$"):
        Model.from_dict(model({"name": "a", "dim": 3}))


def test_an_error_holds_every_problem() -> None:
    """Names and defaults are checked to the end, and each mistake is a problem of its own."""
    with pytest.raises(BadInput) as caught:
        Model.from_dict(model(table(name="a"), table(name="a"), table(name="a")))
    assert [each.field for each in caught.value.problems] == ["tables[1].name", "tables[2].name"]
    with pytest.raises(BadInput) as caught:
        Model.from_dict(model(table()) | {"defaults": {"dimm": 1, "row": 2}})
    assert [each.field for each in caught.value.problems] == ["defaults.dimm", "defaults.row"]


def test_sentences_are_single_lines() -> None:
    """Values with line breaks do not break the sentence."""
    with pytest.raises(BadInput) as caught:
        Model.from_dict(model(table(kind="a\nb\n" * 100)))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
