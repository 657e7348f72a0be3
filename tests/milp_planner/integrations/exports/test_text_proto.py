"""The text format of protobuf, as far as it is needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.integrations.exports.text_proto import Message, parse, show

_NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
_SCALARS = (
    st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
)
_MESSAGES = st.recursive(
    st.lists(st.tuples(_NAMES, _SCALARS), max_size=4).map(Message),
    lambda inner: st.lists(st.tuples(_NAMES, _SCALARS | inner), max_size=4).map(Message),
    max_leaves=8,
)


@given(_MESSAGES)
def test_round_trip(message: Message) -> None:
    """What is shown is read back as it was."""
    assert parse("\n".join(show("top", message))) == [("top", message)]


def test_words_numbers_and_colons() -> None:
    """Bare words, floats, and the optional colon before a brace."""
    found = parse("a: FP32 b: -1.5e3 c: { d: true } # end")
    assert found == [("a", "FP32"), ("b", -1500.0), ("c", [("d", True)])]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a {", "brace of a is never closed"),
        ("a: 1\n}", "line 2: a closing brace"),
        ("a:", "allowed: a field name and its value|no value"),
        ("a 3", "no value"),
        ("\n\na: @", "line 3"),
        ('a: "\\q"', "unknown escape"),
        ("3: 3", "found 3"),
    ],
)
def test_broken_text(text: str, sentence: str) -> None:
    """What is not understood is an error with its line."""
    with pytest.raises(BadInput, match=sentence):
        parse(text)


def test_field_twice() -> None:
    """A field that may occur once is an error when it occurs twice."""
    with pytest.raises(BadInput, match="occurs 2 times"):
        parse("a: 1 a: 2").one("a", "here")
