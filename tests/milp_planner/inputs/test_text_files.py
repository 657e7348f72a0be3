"""Reading files: every failure is a sentence.

Dictionaries both ways, fingerprints, and the strictness every class shares.

From pydantic's findings to sentences.
"""

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model, strict_yaml
from milp_planner.inputs.problems import LONG_LIST, choice, data_path, nearest, show_path
from milp_planner.inputs.strict_yaml import read_text
from tests.milp_planner.inputs import builders
from tests.milp_planner.inputs.builders import model, table


def test_text_is_read(tmp_path: Path) -> None:
    """UTF-8 text is returned as written."""
    path = tmp_path / "a.yaml"
    path.write_bytes("größe: 1\n".encode())
    assert read_text(path) == "größe: 1\n"


def test_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    """The error for a missing file gives the nearest name in the folder."""
    (tmp_path / "cluster.yaml").touch()
    with pytest.raises(
        BadInput, match=r"clutser\.yaml: no such file; did you mean .*cluster\.yaml"
    ):
        read_text(tmp_path / "clutser.yaml")
    with pytest.raises(BadInput, match=r"no such file$"):
        read_text(tmp_path / "nowhere" / "clutser.yaml")


def test_folder(tmp_path: Path) -> None:
    """A folder is not a file."""
    with pytest.raises(BadInput, match="is a folder; allowed: a file"):
        read_text(tmp_path)


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_only_regular_files_are_read(tmp_path: Path, name: str) -> None:
    """A pipe nobody writes would block, and a device never ends."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="cannot be read: is not a regular file"):
        read_text(tmp_path / name)


def test_not_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are reported with their line."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(BadInput, match=r"a\.yaml:2: not UTF-8 text \(byte 8\)"):
        read_text(path)


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the limit is refused before it is parsed."""
    monkeypatch.setattr(strict_yaml, "MAX_BYTES", 2**20)
    path = tmp_path / "a.yaml"
    path.write_bytes(b" " * 2**20)
    assert len(read_text(path)) == 2**20
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(BadInput, match="larger than 1 MiB"):
        read_text(path)


def test_impossible_name() -> None:
    """A name that the system cannot take gets a sentence, too."""
    with pytest.raises(BadInput, match="cannot be read"):
        read_text(Path("a\0b"))


def test_frozen() -> None:
    """A model that was read cannot be changed."""
    model = Model.from_dict(builders.model(builders.table()))
    with pytest.raises(ValidationError):
        model.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("cls", [Model, Cluster])
def test_round_trip_through_json(cls: type[Model] | type[Cluster]) -> None:
    """to_dict, JSON and from_dict give an equal value, with exact ratios."""
    data = (
        builders.model(
            builders.table(
                kind="dynamicemb",
                access={"kind": "top_ids", "ids": [{"share": 0.5, "id": 3}]},
                constraints={"cache_ratios": ["1/3", "35%"], "ranks": [0, 1]},
            ),
            cache_ratios="twentieths",
        )
        if cls is Model
        else builders.cluster(reservations={"hbm_percent": 12.5, "hbm_bytes": "1kB"})
    )
    value = cls.from_dict(data)
    again = cls.from_dict(json.loads(json.dumps(value.to_dict())))
    assert again == value
    assert again.fingerprint() == value.fingerprint()


def test_fingerprint_follows_content() -> None:
    """Equal content in another notation has the same fingerprint; other content has another."""
    written = Model.from_dict(builders.model(builders.table(rows="2k")))
    same = Model.from_dict(builders.model(builders.table(rows=2000, dtype="fp32")))
    other = Model.from_dict(builders.model(builders.table(rows=2001)))
    assert written.fingerprint() == same.fingerprint()
    assert written.fingerprint() != other.fingerprint()
    assert len(written.fingerprint()) == 64


def test_from_dict_names_its_source() -> None:
    """The sentence starts with the caller's name for the source."""
    with pytest.raises(BadInput, match=r"^plan\.json: tables\[0\]\.rows: is missing$"):
        Model.from_dict(builders.model({"name": "t", "dim": 8}), "plan.json")


def test_alias_and_name_together_are_refused() -> None:
    """hbm and hbm_bytes are the same field; with both, one is an unknown field."""
    data = builders.cluster(
        machines=[{"ddr": "1MB", "ranks": [{"hbm": "1MB", "hbm_bytes": "2MB"}]}]
    )
    for name in ("ranks_per_machine", "hbm", "ddr"):
        del data[name]
    with pytest.raises(BadInput, match=r"machines\[0\]\.ranks\[0\]\.hbm_bytes: unknown field"):
        Cluster.from_dict(data)


@pytest.mark.parametrize("value", [True, "8", 8.0, None, [8]])
def test_numbers_are_not_coerced(value: object) -> None:
    """Strict: text, booleans and floats are not whole numbers."""
    with pytest.raises(BadInput, match=r"tables\[0\]\.dim: found .*; allowed: a whole number"):
        Model.from_dict(builders.model(builders.table(dim=value)))


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
