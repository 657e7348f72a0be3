"""Models: defaults of tables, unique names, lookup by name."""

from __future__ import annotations

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from tests.milp_planner.inputs.builders import model, table


def test_defaults_fill_and_yield() -> None:
    """A default fills a field that a table does not set, and yields to one that it sets."""
    data = {**model({"name": "a", "rows": 5}, table(name="b", dim=16)), "defaults": {"dim": 4}}
    assert [each.dim for each in Model.from_dict(data).tables] == [4, 16]


def test_defaults_are_resolved_in_to_dict() -> None:
    """to_dict writes the defaults into every table and nowhere else."""
    data = {**model({"name": "a", "rows": 5}), "defaults": {"dim": 4}}
    written = Model.from_dict(data).to_dict()
    assert "defaults" not in written
    assert written["tables"][0]["dim"] == 4


def test_patterns_fill_before_defaults() -> None:
    """A table's own field comes first, then the first matching pattern, then the default."""
    data = {
        **model(
            {"name": "user_a", "rows": 5}, table(name="user_b", dim=16), {"name": "c", "rows": 1}
        ),
        "patterns": {"user_?": {"dim": 8, "dtype": "fp16"}, "user_*": {"dim": 32, "dtype": "bf16"}},
        "defaults": {"dim": 4},
    }
    read = Model.from_dict(data)
    assert [(each.dim, each.dtype) for each in read.tables] == [
        (8, "fp16"), (16, "fp16"), (4, "fp32")
    ]  # fmt: skip
    assert "patterns" not in read.to_dict()


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        ({"user": {"dim": 4}}, r"patterns\.user: there are no tables to apply them to"),
        ({"t*": {"dime": 4}}, r"patterns\.t\*\.dime: unknown field; did you mean dim"),
        ({"t*": {"rows": 0}}, r"patterns\.t\*\.rows: "),
        ({"t*": 4}, r"patterns\.t\*: allowed: a mapping of table fields"),
        (4, "patterns: allowed: a mapping of name patterns"),
    ],
)
def test_wrong_patterns(patterns: object, words: str) -> None:
    """Each gets one sentence that says where it is."""
    with pytest.raises(BadInput, match=words):
        Model.from_dict({**model(table()), "patterns": patterns})


def test_numbers_of_numpy() -> None:
    """NumPy's scalars and arrays are read as numbers and lists."""
    own = table(rows=np.int64(7), pooling_factor=np.float64(2.5))
    limits = {"ranks": np.arange(2), "column_widths": [np.int32(8)]}
    read = Model.from_dict(model({**own, "constraints": limits})).tables[0]
    assert (read.rows, read.pooling_factor, read.constraints.ranks) == (7, 2.5, (0, 1))


def test_empty_model() -> None:
    """A model without tables is a model."""
    read = Model.from_dict(model())
    assert read.tables == ()
    assert read.weight_bytes == 0


def test_weight_bytes_add_up() -> None:
    """The model's weights are the sum over its tables."""
    read = Model.from_dict(model(table(name="a"), table(name="b", rows=10)))
    assert read.weight_bytes == (1000 + 10) * 8 * 4


def test_table_by_name() -> None:
    """A table is found by its name; a wrong name is a KeyError."""
    read = Model.from_dict(model(table(name="a"), table(name="b", rows=10)))
    assert read.table("b").rows == 10
    with pytest.raises(KeyError):
        read.table("c")


def test_order_is_kept() -> None:
    """Tables stay in the order in which they are written."""
    names = ["z", "a", "m"]
    read = Model.from_dict(model(*(table(name=name) for name in names)))
    assert [each.name for each in read.tables] == names


def test_repeated_name() -> None:
    """If two tables have one name, the second is refused."""
    with pytest.raises(
        BadInput, match=r"^tables\[1\]\.name: found 't' again \(as in tables\[0\]\)"
    ):
        Model.from_dict(model(table(), table()))


@pytest.mark.parametrize(
    ("defaults", "sentence"),
    [
        ({"dmi": 4}, r"^defaults\.dmi: unknown field; did you mean dim\?"),
        ({"name": "x"}, r"^defaults\.name: unknown field"),
        ({"rows": 9}, r"^defaults: there are no tables to apply them to"),
        ([1], r"^defaults: allowed: a mapping of table fields"),
    ],
)
def test_wrong_defaults(defaults: object, sentence: str) -> None:
    """Defaults are checked even if no table uses them."""
    with pytest.raises(BadInput, match=sentence):
        Model.from_dict({**model(), "defaults": defaults})


@pytest.mark.parametrize(
    ("defaults", "sentence"),
    [
        ({"rows": {"dim": 64}}, r"^defaults\.rows: found .*; allowed: "),
        ({"access": {"kind": "zipf", "alpha": -1}}, r"^defaults\.access\.alpha: found -1"),
    ],
)
def test_a_wrong_default_every_table_overrides(defaults: dict[str, object], sentence: str) -> None:
    """A default is checked even if every table sets the field itself."""
    overriding = table(access={"kind": "unknown"})
    with pytest.raises(BadInput, match=sentence):
        Model.from_dict({**model(overriding), "defaults": defaults})
