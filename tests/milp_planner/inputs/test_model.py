"""Models: defaults of tables, unique names, lookup by name.

Constraints of a model against the ranks of a cluster.

A line that names many tables stands for as many equal ones.

The workload's defaults and its mistakes.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model, Workload
from milp_planner.inputs.constraints import TENTHS, mismatches, ranks_needed
from milp_planner.inputs.files import load_model
from tests.milp_planner.inputs.builders import cluster, model, table


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


@pytest.mark.parametrize(
    ("constraints", "field"), [({"ranks": [0, 4]}, "ranks"), ({"pin": {"ranks": [4]}}, "pin.ranks")]
)
def test_rank_outside_the_cluster(constraints: dict[str, Any], field: str) -> None:
    """A rank that the cluster lacks is refused, with the ranks that it has."""
    read = Model.from_dict(model(table(name="a"), table(constraints=constraints)))
    expected = f"tables[1].constraints.{field} (table t): found rank 4; allowed: 0 to 3"
    found = mismatches(read, Cluster.from_dict(cluster()))
    assert list(found) == ["t"] and expected in str(found["t"])


def test_ranks_inside_the_cluster() -> None:
    """The first and the last rank are allowed."""
    read = Model.from_dict(model(table(constraints={"ranks": [0, 3], "pin": {"ranks": [3]}})))
    assert mismatches(read, Cluster.from_dict(cluster())) == {}
    assert ranks_needed(read) == 4 and ranks_needed(Model.from_dict(model(table()))) == 1


HEAD = "name: m\nworkload: {batch_per_rank: 8}\n"


def model_of(*tables: dict[str, Any], **more: Any) -> Model:
    """A model with these lines as tables."""
    return Model.from_dict(
        {"name": "m", "workload": {"batch_per_rank": 8}, "tables": list(tables), **more}
    )


def test_a_range_is_its_tables_in_order() -> None:
    """It gives the same model as its tables written out."""
    short = model_of({"name": "a", "rows": 3, "dim": 4}, {"names": "t8..t11", "rows": 5, "dim": 8})
    names = ["t8", "t9", "t10", "t11"]
    long = model_of(
        {"name": "a", "rows": 3, "dim": 4}, *({"name": n, "rows": 5, "dim": 8} for n in names)
    )
    assert short == long
    assert Model.from_dict(short.to_dict()) == short


def test_zeros_in_front_are_kept() -> None:
    """All names of a range are as long as its first."""
    tables = model_of({"names": "x_08..x_11", "rows": 5, "dim": 8}).tables
    assert [t.name for t in tables] == ["x_08", "x_09", "x_10", "x_11"]


def test_defaults_and_patterns_reach_every_table() -> None:
    """A pattern that matches all names of a range applies to all its tables."""
    made = model_of(
        {"names": "u_1..u_3", "rows": 5}, {"name": "v", "rows": 5},
        defaults={"dim": 4}, patterns={"u_*": {"dim": 8}},
    )  # fmt: skip
    assert [t.dim for t in made.tables] == [8, 8, 8, 4]


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


def test_defaults() -> None:
    """Only the batch is required; the other defaults are training as the runtime does it."""
    read = Workload.from_dict({"batch_per_rank": "1k"})
    assert read.batch_per_rank == 1000
    assert read.mode == "training"
    assert read.buffers == "additive"
    assert read.storage_model == "runtime"
    assert read.fusion == "honoured"
    assert read.cache_ratios == TENTHS
    assert (read.codec, read.codec_peak_factor, read.pipeline) == ("stock", None, None)
    assert not read.dedup
