"""Shell texts: what sourcing them would set, and what is refused."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.integrations.exports.shell import assignments

NAMES = st.text(st.characters(min_codepoint=33, exclude_categories=("Cs", "Cc", "Z")), min_size=1)


def found(text: str) -> dict[str, str]:
    """The last value of every variable."""
    return {name: value for _, name, value in assignments(text)}


@given(NAMES)
def test_any_quoted_value_is_read_back(value: str) -> None:
    """What shlex quotes, ``$(date)``, ``${Z}`` and ``1e6`` among it, is the same text again."""
    assert found(f"export Z=other\nA={shlex.quote(value)}")["A"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Z=b A='${Z}'", "${Z}"),
        ("Z=b A='$Z'", "$Z"),
        ("A='$(date)'", "$(date)"),
        ('Z=b A="${Z}$Z"', "bb"),
        ("Z=b A=${Z}${Y:-c}", "bc"),
        (r'Z=b A="\${Z}\\"', "${Z}\\"),
        (r"Z=b A=\$Z\ d", "$Z d"),
        ("A=b#c # comment", "b#c"),
        ("A=b\\\nc", "bc"),
        ('A="b\\\nc"', "bc"),
        ("A=1; A=2", "2"),
        ("A='b'\"c\"d", "bcd"),
        ("A=", ""),
    ],
)
def test_quotes_decide_what_is_replaced(text: str, value: str) -> None:
    """Nothing is replaced between single quotes or after a backslash, as in a shell."""
    assert found(text)["A"] == value


@pytest.mark.parametrize(
    "line",
    ["A=$(date)", 'A="$(date)"', "A=`date`", 'A="`date`"', "A='b", 'A="b', "source x", "A=1 && B=2",
     "A=1 | B=2", "1A=2", "A=${B:=c}", "A=$"],
)  # fmt: skip
def test_other_syntax_is_refused_with_its_line(line: str) -> None:
    """Commands, pipes, open quotes and further expansions: the sentence names the line."""
    with pytest.raises(BadInput, match="line 3: "):
        found(f"B=1\n# comment\n{line}")


def test_lines_are_counted_through_continuations() -> None:
    """An assignment has the line on which its word begins."""
    lines = [line for line, _, _ in assignments("A=1\\\n2\nB='x\ny' C=3\nD=4")]
    assert lines == [1, 3, 4, 5]
