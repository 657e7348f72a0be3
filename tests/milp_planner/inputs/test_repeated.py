"""A line that names many tables stands for as many equal ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.files import load_model

HEAD = "name: m\nworkload: {batch_per_rank: 8}\n"


def model(*tables: dict[str, Any], **more: Any) -> Model:
    """A model with these lines as tables."""
    return Model.from_dict(
        {"name": "m", "workload": {"batch_per_rank": 8}, "tables": list(tables), **more}
    )


def test_a_range_is_its_tables_in_order() -> None:
    """It gives the same model as its tables written out."""
    short = model({"name": "a", "rows": 3, "dim": 4}, {"names": "t8..t11", "rows": 5, "dim": 8})
    names = ["t8", "t9", "t10", "t11"]
    long = model(
        {"name": "a", "rows": 3, "dim": 4}, *({"name": n, "rows": 5, "dim": 8} for n in names)
    )
    assert short == long
    assert Model.from_dict(short.to_dict()) == short


def test_zeros_in_front_are_kept() -> None:
    """All names of a range are as long as its first."""
    tables = model({"names": "x_08..x_11", "rows": 5, "dim": 8}).tables
    assert [t.name for t in tables] == ["x_08", "x_09", "x_10", "x_11"]


def test_defaults_and_patterns_reach_every_table() -> None:
    """A pattern that matches all names of a range applies to all its tables."""
    made = model(
        {"names": "u_1..u_3", "rows": 5}, {"name": "v", "rows": 5},
        defaults={"dim": 4}, patterns={"u_*": {"dim": 8}},
    )  # fmt: skip
    assert [t.dim for t in made.tables] == [8, 8, 8, 4]


@pytest.mark.parametrize(
    "text", ["t5..t3", "t1..u3", "t1", "t1..t", "t1..t100001", "t1...t3", "t9..t010"]
)
def test_what_is_no_range(text: str) -> None:
    """Falling, unlike, too long, or with different numbers of zeros: one sentence with an
    example."""
    with pytest.raises(BadInput, match=r"tables\[0\]\.names: found .*; allowed: two names of ris"):
        model({"names": text, "rows": 5, "dim": 8})


@pytest.mark.parametrize(("other", "value"), [("name", "t"), ("features", ["f"])])
def test_what_goes_not_beside(other: str, value: object) -> None:
    """A range cannot have a single name or the names of features."""
    with pytest.raises(BadInput, match=f"excludes {other}"):
        model({"names": "t1..t2", other: value, "rows": 5, "dim": 8})


def test_a_name_in_two_ranges_is_refused() -> None:
    """Names are unique over all lines; the sentence names both lines."""
    with pytest.raises(
        BadInput, match=r"tables\[2\]\.name: found 't3' again \(as in tables\[1\]\)"
    ):
        model(*({"names": n, "rows": 5, "dim": 8} for n in ("a1..a9", "t1..t3", "t3..t4")))


def test_a_pattern_that_matches_some_is_refused() -> None:
    """A pattern must match all tables of a line or none."""
    with pytest.raises(BadInput, match=r"patterns\.t1: matches only some of t1\.\.t3"):
        model({"names": "t1..t3", "rows": 5, "dim": 8}, patterns={"t1": {"weighted": True}})


def test_mistakes_are_found_on_their_line(tmp_path: Path) -> None:
    """A wrong field in a later line is reported there, and only once."""
    file = tmp_path / "m.yaml"
    lines = "tables:\n- {names: a1..a90, rows: 5, dim: 8}\n- {names: b1..b9, rows: 0, dim: 8}\n"
    file.write_text(HEAD + lines)
    with pytest.raises(BadInput, match=r"m\.yaml:5: tables\[1\]\.rows: found 0") as caught:
        load_model(file)
    assert len(caught.value.problems) == 1


def test_a_wrong_pattern_is_found_where_it_is_written(tmp_path: Path) -> None:
    """A wrong field of a pattern is reported in the pattern, even if a range uses it."""
    file = tmp_path / "m.yaml"
    file.write_text(HEAD + "patterns:\n  'a*': {dim: 0}\ntables:\n- {names: a1..a9, rows: 5}\n")
    with pytest.raises(BadInput, match=r"m\.yaml:4: patterns\.a\*\.dim: found 0"):
        load_model(file)


def test_csv(tmp_path: Path) -> None:
    """A column of names works, too."""
    (tmp_path / "t.csv").write_text("names,name,rows,dim\nt1..t3,,5,8\n,u,7,8\n")
    (tmp_path / "m.yaml").write_text(HEAD + "tables: {csv: t.csv}\n")
    read = load_model(tmp_path / "m.yaml").tables
    assert [(t.name, t.rows) for t in read] == [("t1", 5), ("t2", 5), ("t3", 5), ("u", 7)]


def test_the_tables_of_all_lines_are_counted() -> None:
    """Two lines of 60,000 are too many together; no table is made."""
    with pytest.raises(BadInput, match=r"tables: found 120,000 tables; allowed: 100,000 in all"):
        model(*({"names": f"{c}_1..{c}_60000", "rows": 5, "dim": 8} for c in "ab"))
