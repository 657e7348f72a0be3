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


def test_patterns_fill_before_defaults() -> None:
    """A table's own field comes first, then the first matching pattern, then the default."""
    tables = {"name": "user_a", "rows": 5}, table(name="user_b", dim=16), {"name": "c", "rows": 1}
    data = {
        **model(*tables),
        "patterns": {"user_?": {"dim": 8, "dtype": "fp16"}, "user_*": {"dim": 32, "dtype": "bf16"}},
        "defaults": {"dim": 4},
    }
    read = Model.from_dict(data)
    assert [(each.dim, each.dtype) for each in read.tables] == [
        (8, "fp16"), (16, "fp16"), (4, "fp32")
    ]  # fmt: skip
    written = read.to_dict()
    assert not {"patterns", "defaults"} & {*written} and written["tables"][2]["dim"] == 4


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


def test_tables_of_a_model() -> None:
    """They stay in the order in which they are written, and their weights add up; a table is found
    by its name, and a wrong name is a KeyError."""
    read = Model.from_dict(model(table(name="z"), table(name="a", rows=10)))
    assert [each.name for each in read.tables] == ["z", "a"]
    assert read.weight_bytes == (1000 + 10) * 8 * 4
    assert read.table("a").rows == 10
    with pytest.raises(KeyError):
        read.table("c")


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


@pytest.mark.parametrize(
    ("names", "each"),
    [("t8..t11", ["t8", "t9", "t10", "t11"]), ("x_08..x_11", ["x_08", "x_09", "x_10", "x_11"])],
)
def test_a_range_is_its_tables_in_order(names: str, each: list[str]) -> None:
    """It gives the same model as its tables written out; zeros in front are kept."""
    short = Model.from_dict(model(table(name="a"), {"names": names, "rows": 5, "dim": 8}))
    long = (table(name=name, rows=5) for name in each)
    assert short == Model.from_dict(model(table(name="a"), *long))
    assert Model.from_dict(short.to_dict()) == short


def test_defaults_and_patterns_reach_every_table() -> None:
    """A pattern that matches all names of a range applies to all its tables."""
    lines = model({"names": "u_1..u_3", "rows": 5}, {"name": "v", "rows": 5})
    made = Model.from_dict(lines | {"defaults": {"dim": 4}, "patterns": {"u_*": {"dim": 8}}})
    assert [t.dim for t in made.tables] == [8, 8, 8, 4]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("tables:\n- {names: a1..a90, rows: 5, dim: 8}\n- {names: b1..b9, rows: 0, dim: 8}\n",
         r"m\.yaml:5: tables\[1\]\.rows: found 0"),
        ("patterns:\n  'a*': {dim: 0}\ntables:\n- {names: a1..a9, rows: 5}\n",
         r"m\.yaml:4: patterns\.a\*\.dim: found 0"),
    ],
)  # fmt: skip
def test_mistakes_are_found_on_their_line(tmp_path: Path, lines: str, sentence: str) -> None:
    """A wrong field in a later line, or in a pattern that a range uses, is reported there, and only
    once."""
    file = tmp_path / "m.yaml"
    file.write_text(HEAD + lines)
    with pytest.raises(BadInput, match=sentence) as caught:
        load_model(file)
    assert len(caught.value.problems) == 1


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
