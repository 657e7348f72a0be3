"""The strict YAML reader: plain values, lines, and the traps of YAML 1.1."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs import strict_yaml
from milp_planner.inputs.strict_yaml import dump, plain_scalar, read_yaml


def test_values_and_lines() -> None:
    """Values are plain Python values, each with its line."""
    document = read_yaml("a: 1\nb:\n  - x: 2.5\n    y: true\n  - 'no'\nc: ~\n", "f")
    assert document.data == {"a": 1, "b": [{"x": 2.5, "y": True}, "no"], "c": None}
    assert document.where(("b", 0, "y")) == "f:4"
    assert document.where(("b", 1)) == "f:5"


def test_line_of_an_absent_field_is_its_parents() -> None:
    """A missing field is reported at the line of the mapping that lacks it."""
    document = read_yaml("a: 1\nb:\n  - x: 2\n", "f")
    assert document.where(("b", 0, "z")) == "f:3"
    assert document.where(("q",)) == "f:1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", None),
        ("", None),
        ("~", None),
        ("true", True),
        ("2_000_000", 2_000_000),
        ("-3", -3),
        ("1.5", 1.5),
        ("1.0e+6", 1e6),
        ("80GiB", "80GiB"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("0x10", "0x10"),
        ("1_2_3", "1_2_3"),
        ("Null", "Null"),
    ],
)
def test_plain_scalars(text: str, expected: object) -> None:
    """Only null, booleans and decimal numbers are not text."""
    result = plain_scalar(text)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "text", ["1e6", "1E-5", "2.5e3", "010", "00", "yes", "No", "off", "True", ".inf", "-.NaN"]
)
def test_trap_scalars(text: str) -> None:
    """What YAML readers disagree about is refused with its line, and allowed in quotes."""
    with pytest.raises(BadInput, match=r"^f:2: found "):
        read_yaml(f"a: 1\nb: {text}\n", "f")
    assert read_yaml(f"b: '{text}'", "f").data == {"b": text}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("[" * 2_000_000, r"^f:1: nested too deeply; allowed: 50 levels$"),
     ("a: \x07\n", r"^f: not valid YAML")],
)  # fmt: skip
def test_mistakes(text: str, sentence: str) -> None:
    """Each kind of broken file gets one sentence with file and line; mistakes.yaml has more."""
    with pytest.raises(BadInput, match=sentence):
        read_yaml(text, "f")


def test_deep_enough() -> None:
    """Fifty levels are read."""
    assert read_yaml("[" * 50 + "]" * 50, "f").data is not None


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
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**12), 10**12),
        st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), max_size=12),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_written_is_read_back(data: object) -> None:
    """Text that looks like a number or a truth value is quoted, and nothing else changes."""
    assert read_yaml(dump(data), "f").data == data


@pytest.mark.parametrize(
    "text", ["1e6", "010", "1_0", "yes", "NO", "null", "~", "3", ".inf", "1:30"]
)
def test_traps_are_written_as_text(text: str) -> None:
    """A name that YAML readers would take for something else is read back as text."""
    assert read_yaml(dump({"name": text}), "f").data == {"name": text}
