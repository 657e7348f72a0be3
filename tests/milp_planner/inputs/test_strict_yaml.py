"""The strict YAML reader: plain values, lines, and the traps of YAML 1.1.

Reading files: every failure is a sentence. Dictionaries both ways, fingerprints, and the
strictness every class shares. From pydantic's findings to sentences.
"""

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model, strict_yaml
from milp_planner.inputs.problems import LONG_LIST, choice, data_path, nearest, show_path
from milp_planner.inputs.strict_yaml import dump, plain_scalar, read_text, read_yaml
from tests.milp_planner.inputs.builders import cluster, model, table


def test_values_and_lines() -> None:
    """Values are plain Python values, each with its line; an absent one has that of its parent."""
    document = read_yaml("a: 1\nb:\n  - x: 2.5\n    y: true\n  - 'no'\nc: ~\n", "f")
    assert document.data == {"a": 1, "b": [{"x": 2.5, "y": True}, "no"], "c": None}
    assert document.where(("b", 0, "y")) == "f:4"
    assert document.where(("b", 1)) == "f:5"
    assert (document.where(("b", 0, "z")), document.where(("q",))) == ("f:3", "f:1")


def test_plain_scalars() -> None:
    """Only null, booleans and decimal numbers are not text."""
    values = {"null": None, "": None, "~": None, "true": True, "2_000_000": 2_000_000, "-3": -3,
              "1.5": 1.5, "1.0e+6": 1e6}  # fmt: skip
    texts = ("80GiB", "1:30", "2020-01-01", "0x10", "1_2_3", "Null")
    for text, expected in (values | dict(zip(texts, texts, strict=True))).items():
        result = plain_scalar(text)
        assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    "text", ["1e6", "1E-5", "2.5e3", "010", "00", "yes", "No", "off", "True", ".inf", "-.NaN"]
)
def test_trap_scalars(text: str) -> None:
    """What YAML readers disagree about is refused with its line, allowed in quotes, and written in
    quotes."""
    with pytest.raises(BadInput, match=r"^f:2: found "):
        read_yaml(f"a: 1\nb: {text}\n", "f")
    assert read_yaml(f"b: '{text}'", "f").data == {"b": text}
    assert read_yaml(dump({"name": text}), "f").data == {"name": text}


def test_levels() -> None:
    """Fifty are read, two million refused. What is no text of YAML gets a sentence without a line;
    mistakes.yaml has more."""
    assert read_yaml("[" * 50 + "]" * 50, "f").data is not None
    with pytest.raises(BadInput, match=r"^f:1: nested too deeply; allowed: 50 levels$"):
        read_yaml("[" * 2_000_000, "f")
    with pytest.raises(BadInput, match=r"^f: not valid YAML"):
        read_yaml("a: \x07\n", "f")


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", None)])
def test_both_parsers_agree(loader: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parsers in C and in Python give the same values and lines."""
    if loader is None:
        pytest.skip("PyYAML was built without its parser in C")
    monkeypatch.setattr(strict_yaml, "_LOADER", loader)
    document = read_yaml("a: 'no'\nb: >-\n  x\n  y\nc: [~, 2.5, no more]\n", "f")
    assert document.data == {"a": "no", "b": "x y", "c": [None, 2.5, "no more"]}
    assert document.where(("c", 2)) == "f:5"
    with pytest.raises(BadInput, match=r"^f:2: found no, which"):
        read_yaml("a: 1\nb: no\n", "f")


def test_empty_file() -> None:
    """An empty file has no data; the caller that needs data says so."""
    assert read_yaml("# nothing\n", "f").data is None


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_written_is_read_back(data: object) -> None:
    """Text that looks like a number or a truth value is quoted, and nothing else changes."""
    assert read_yaml(dump(data), "f").data == data


@pytest.mark.parametrize("text", ["1_0", "null", "~", "3", "1:30"])
def test_text_that_looks_like_a_value(text: str) -> None:
    """A name that YAML readers would take for something else is read back as text."""
    assert read_yaml(dump({"name": text}), "f").data == {"name": text}


def test_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    """The error for a missing file gives the nearest name in the folder."""
    (tmp_path / "cluster.yaml").touch()
    with pytest.raises(
        BadInput, match=r"clutser\.yaml: no such file; did you mean .*cluster\.yaml"
    ):
        read_text(tmp_path / "clutser.yaml")
    with pytest.raises(BadInput, match=r"no such file$"):
        read_text(tmp_path / "nowhere" / "clutser.yaml")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".", "is a folder; allowed: a file"),
        ("pipe", "cannot be read: is not a regular file"),
        ("/dev/zero", "cannot be read: is not a regular file"),
        ("bytes", r"bytes:2: not UTF-8 text \(byte 8\)"),
        ("a\0b", "cannot be read"),  # a name that the system cannot take
    ],
)
def test_only_regular_files_of_text_are_read(tmp_path: Path, name: str, sentence: str) -> None:
    """A pipe nobody writes would block, and a device never ends; UTF-8 is returned as written."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"a: 1\nb: \xff\n")
    (tmp_path / "text").write_bytes("größe: 1\n".encode())
    assert read_text(tmp_path / "text") == "größe: 1\n"
    with pytest.raises(BadInput, match=sentence):
        read_text(tmp_path / name)


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the limit is refused before it is parsed."""
    monkeypatch.setattr(strict_yaml, "MAX_BYTES", 2**20)
    path = tmp_path / "a.yaml"
    path.write_bytes(b" " * 2**20)
    assert len(read_text(path)) == 2**20
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(BadInput, match="larger than 1 MiB"):
        read_text(path)


def test_frozen() -> None:
    """A model that was read cannot be changed."""
    read = Model.from_dict(model(table()))
    with pytest.raises(ValidationError):
        read.name = "other"  # type: ignore[misc]


def test_round_trip_through_json() -> None:
    """to_dict, JSON and from_dict give an equal value, with exact ratios."""
    hot = {"kind": "top_ids", "ids": [{"share": 0.5, "id": 3}]}
    limits = {"cache_ratios": ["1/3", "35%"], "ranks": [0, 1]}
    dynamic = table(kind="dynamicemb", access=hot, constraints=limits)
    for value in (
        Model.from_dict(model(dynamic, cache_ratios="twentieths")),
        Cluster.from_dict(cluster(reservations={"hbm_percent": 12.5, "hbm_bytes": "1kB"})),
    ):
        again = type(value).from_dict(json.loads(json.dumps(value.to_dict())))
        assert again == value
        assert again.fingerprint() == value.fingerprint()


def test_fingerprint_follows_content() -> None:
    """Equal content in another notation has the same fingerprint; other content has another."""
    written = Model.from_dict(model(table(rows="2k")))
    same = Model.from_dict(model(table(rows=2000, dtype="fp32")))
    other = Model.from_dict(model(table(rows=2001)))
    assert written.fingerprint() == same.fingerprint()
    assert written.fingerprint() != other.fingerprint()
    assert len(written.fingerprint()) == 64


def test_from_dict_names_its_source() -> None:
    """The sentence starts with the caller's name for the source."""
    with pytest.raises(BadInput, match=r"^plan\.json: tables\[0\]\.rows: is missing$"):
        Model.from_dict(model({"name": "t", "dim": 8}), "plan.json")


MODES = ["HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY"]


@pytest.mark.parametrize(
    ("name", "allowed", "expected"),
    [
        *(("caching", MODES, "CACHING"), ("HYBRIDE", MODES, "HYBRID")),
        *(("host", MODES, "HOST_ONLY"), ("zzz", MODES, None), ("", MODES, None)),
        ("pooling", ["num_poolings", "pooling_factor"], "pooling_factor"),
        ("ranks", ["machines", "two_d", "ranks_per_machine"], "ranks_per_machine"),
        ("dtype", ["exchange_dtype_backward", "exchange_dtype"], "exchange_dtype"),
        ("rowz", ["rows", "row_wise"], "rows"),
    ],
)
def test_nearest(name: str, allowed: list[str], expected: str | None) -> None:
    """Case does not matter. A name that begins alike is nearer than one that only shares letters,
    that nearer than one that contains the text; of these, the shortest."""
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
