"""The user's own plan, read from CSV: every cell is checked, and there is never a traceback."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.start.rows import parse_ranks, read_csv, refuse

HEAD = "table,mode,ratio,sharding_type,ranks"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """A path for one CSV."""
    return tmp_path / "p.csv"


def test_reads_every_kind_of_cell(csv: Path) -> None:
    """Blanks, comments, quoting, aliases, percent, dist_type and width."""
    csv.write_text(
        "# today\n\nTable, Mode, cache_ratio, sharding, ranks, dist_type, column_width\n"
        'a, caching, 35%, row_wise, all, continuous,\nb, HBM_ONLY, 1, column_wise, "0,2-3", , 64\n'
        "c, HOST_ONLY, , TABLE_WISE, 1, ,\n"
    )
    a, b, c = read_csv(csv)
    assert (a.table, a.mode, a.ratio, a.sharding_type) == (
        "a",
        "CACHING",
        Fraction(7, 20),
        "row_wise",
    )
    assert a.ranks is None and a.dist_type == "continuous" and a.column_width is None
    assert b.ranks == (0, 2, 3) and b.ratio is None and b.column_width == 64
    assert c.sharding_type == "table_wise" and c.ranks == (1,)
    assert a.where.endswith("p.csv:4: table a")


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("all", None), ("", None), ("ALL", None), ("3", (3,)), ("0-3,6", (0, 1, 2, 3, 6)),
     ("0 1;2", (0, 1, 2)), ("1,1", (1, 1)), ("5-5", (5,))],
)  # fmt: skip
def test_ranks(text: str, ranks: tuple[int, ...] | None) -> None:
    """Runs, lists and repeats; the order is kept."""
    assert parse_ranks(text, "here") == ranks


@pytest.mark.parametrize("text", ["x", "3-1", "-1", "1-", "0-3-5", "1.5", "٣", "9999999"])
def test_wrong_ranks(text: str) -> None:
    """Text that is not a rank is quoted."""
    with pytest.raises(BadInput, match="ranks has"):
        parse_ranks(text, "here")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,CACHING,1.5,row_wise,", "p.csv:2"),
        ("a,CACHING,1,row_wise,", "between 0 and 1"),
        ("a,HYBRID,0,row_wise,", "between 0 and 1"),
        ("a,HYBRID,1/0,row_wise,", "division by zero"),
        ("a,HBM_ONLY,0.5,row_wise,", "blank or 1"),
        ("a,HBM_ONLY,,rowwise,", "did you mean row_wise"),
        ("a,HBM_ONLY,,row_wise,0,1", "quote ranks"),
        ('a,HBM_ONLY,,row_wise,"0', "not valid CSV"),
    ],
)
def test_wrong_rows(csv: Path, row: str, words: str) -> None:
    """Each mistake gets one sentence with its line and the remedy."""
    csv.write_text(f"{HEAD}\n{row}\n")
    with pytest.raises(BadInput, match=words):
        read_csv(csv)


def test_every_wrong_row_is_told_at_once(csv: Path) -> None:
    """Two wrong rows of three each have their line; beyond the first twenty, wrong rows are
    counted."""
    csv.write_text(f"{HEAD}\na,CACHING,1.5,row_wise,\nb,HBM_ONLY,,row_wise,\nc,HBM,,row_wise,\n")
    with pytest.raises(BadInput) as caught:
        read_csv(csv)
    first, second = str(caught.value).splitlines()
    assert "p.csv:2" in first and "p.csv:4" in second and len(caught.value.problems) == 2
    csv.write_text(HEAD + "\nc,HBM,,row_wise," * 23)
    with pytest.raises(BadInput, match="and 3 more wrong rows"):
        read_csv(csv)


def test_a_line_break_in_a_cell_does_not_break_the_sentence() -> None:
    """A quoted cell may hold a line break; its row still takes one line of the error."""
    with pytest.raises(BadInput, match=r"\Atable a␊b: unknown\ntable c: unknown\Z") as refused:
        refuse(["table a\nb: unknown", "table c: unknown"])
    assert [each.message for each in refused.value.problems] == str(refused.value).split("\n")


def test_an_empty_file_says_what_it_needs(csv: Path) -> None:
    """Without a header, the error names the columns."""
    csv.write_text("\n# nothing\n")
    with pytest.raises(BadInput, match="needs table, mode, ratio, sharding_type, ranks"):
        read_csv(csv)


_CELLS = st.text(alphabet='abc,0123456789-%/."\n #;éall', max_size=60)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_CELLS, st.booleans())
@example("a,CACHING,\n", True)
def test_no_text_is_a_traceback(csv: Path, text: str, headed: bool) -> None:
    """Any text gives rows, or BadInput with a sentence per row."""
    csv.write_text((HEAD + "\n" if headed else "") + text)
    try:
        rows = read_csv(csv)
    except BadInput as error:
        assert all(line.startswith(str(csv)) for line in str(error).splitlines())
    else:
        assert all(row.mode for row in rows)
