"""Tables from CSV and JSON files beside the model.

One table: derived figures and contradictions.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Model, Table
from milp_planner.inputs.files import load_model
from milp_planner.inputs.table import ELEMENT_BYTES
from tests.corpus import mistakes
from tests.milp_planner.inputs.builders import model, table

YAML = "name: m\nworkload: {batch_per_rank: 4}\ndefaults: {dim: 8}\ntables: {%s: %s}\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A model that refers to a file of tables with this content."""
    raw = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(raw)
    path = folder / "model.yaml"
    path.write_text(YAML % (name.rpartition(".")[2], name))
    return path


def test_csv_equals_yaml(tmp_path: Path) -> None:
    """Nested columns, lists, empty cells and defaults give the same model as YAML would."""
    text = (
        "name,rows,dim,kind,access.kind,access.alpha,constraints.modes,constraints.cache_ratios\n"
        "7,2M,,,,,,\n"
        "\n"
        "b,1_000,16,dynamicemb,zipf,1.05,HYBRID|CACHING,1/3|35%\n"
    )
    limits = {"modes": ["HYBRID", "CACHING"], "cache_ratios": [Fraction(1, 3), 0.35]}
    zipf = {"kind": "zipf", "alpha": 1.05}
    second = table(name="b", dim=16, kind="dynamicemb", access=zipf, constraints=limits)
    expected = Model.from_dict(model(table(name="7", rows=2_000_000), second))
    assert load_model(write(tmp_path, "t.csv", text)) == expected
    with_mark = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert load_model(write(tmp_path, "t.csv", with_mark)) == expected


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"source": "x", "tables": rows}])
def test_json_list_or_object(tmp_path: Path, wrap: object) -> None:
    """A JSON list of tables and an object that holds such a list are read alike."""
    rows = [{"name": "a", "rows": 10}, table(name="b")]
    read = load_model(write(tmp_path, "t.json", json.dumps(wrap(rows))))  # type: ignore[operator]
    assert [each.dim for each in read.tables] == [8, 8]


def test_reads_the_published_lists(tmp_path: Path, shared_data: Path) -> None:
    """A published list of tables can be referred to unchanged."""
    path = tmp_path / "model.yaml"
    path.write_text(YAML % ("json", shared_data / "tables" / "mlperf_dlrm_dcnv2_26.json"))
    read = load_model(path)
    assert len(read.tables) == 26
    assert read.tables[20].pooling_factor == 100


def test_other_mistakes_in_the_file(tmp_path: Path) -> None:
    """Text that is not UTF-8, and JSON nested without end, are reported in their own file."""
    with pytest.raises(BadInput, match=r"t\.csv:2: not UTF-8 text"):
        load_model(write(tmp_path, "t.csv", b"name,rows\n\xff,5\n"))
    with pytest.raises(BadInput, match=r"t\.json: nested too deeply"):
        load_model(write(tmp_path, "t.json", "[" * 100_000))


def test_all_mistakes_of_a_csv_at_once(tmp_path: Path) -> None:
    """A short line, a cell that cannot be read, a wrong value, an unknown column (once) and a
    mistake of the model's own file; a cell that cannot be read is not missing as well."""
    text = "name,rows,dmi\na,1e6,1\nb,5\nc,x,\nd,5,8\n"
    path = write(tmp_path, "t.csv", text)
    path.write_text(path.read_text() + "sorce: x\n")
    with pytest.raises(BadInput) as caught:
        load_model(path)
    found = [(Path(p.file).name, p.line, p.field) for p in caught.value.problems]
    assert sorted(found) == [
        ("model.yaml", 5, "sorce"),
        ("t.csv", 1, "dmi"),
        ("t.csv", 2, "rows"),
        ("t.csv", 3, ""),
        ("t.csv", 4, "tables[2].rows"),
    ]


def test_missing_tables_are_not_missing_defaults(tmp_path: Path) -> None:
    """A model with defaults and without tables lacks tables."""
    path = tmp_path / "model.yaml"
    path.write_text("name: m\nworkload: {batch_per_rank: 4}\ndefaults: {dim: 8}\n")
    with pytest.raises(BadInput, match=r"model\.yaml:1: tables: is missing$"):
        load_model(path)


def test_a_csv_that_is_absent_hides_no_other_mistake(tmp_path: Path) -> None:
    """The model's own fields are checked as well."""
    path = tmp_path / "model.yaml"
    path.write_text("name: m\nworkload: {batch: 4}\ntables: {csv: absent.csv}\n")
    with pytest.raises(BadInput) as caught:
        load_model(path)
    assert ["no such file" in str(p) or p.field for p in caught.value.problems] == [
        True, "workload.batch", "workload.batch_per_rank",
    ]  # fmt: skip


@pytest.mark.parametrize(("reference", "sentence"), mistakes(__file__, "mistakes in the reference"))
def test_mistakes_in_the_reference(tmp_path: Path, reference: str, sentence: str) -> None:
    """A wrong reference is reported in the model's file."""
    (tmp_path / "tables.csv").write_text("name,rows,dim\n")
    path = tmp_path / "model.yaml"
    path.write_text(f"name: m\nworkload: {{batch_per_rank: 4}}\ntables: {reference}\n")
    with pytest.raises(BadInput, match=sentence):
        load_model(path)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 1.0),
        ({"pooling_factor": 20, "num_features": 3}, 60.0),
        ({"output": "sequence", "sequence_length": 200.5}, 200.5),
        ({"output": "sequence", "num_features": 2}, 2.0),
        ({"output": "sequence", "sequence_length": 0.5}, 0.5),
        ({"pooling_factor": 0.25}, 0.25),
        ({"pooling_factor": 0}, 0.0),
        ({"pooling_factor": 2, "num_poolings": 7.5, "num_features": 2}, 30.0),
    ],
)
def test_lookups_per_sample(fields: dict[str, Any], expected: float) -> None:
    """Ids per sample: features times pooling factor or sequence length, one by default."""
    assert Table.from_dict(table(**fields)).lookups_per_sample == expected


def test_weight_bytes() -> None:
    """Rows times columns times element size, for every element type."""
    sizes = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
    assert sizes.keys() == ELEMENT_BYTES.keys()
    for dtype, size in sizes.items():
        read = Table.from_dict(table(rows="2k", dim=16, dtype=dtype))
        assert read.weight_bytes == 2000 * 16 * size


def test_feature_names() -> None:
    """Exports use the written features, else the table's name, numbered if several share it."""
    assert Table.from_dict(table()).feature_names == ("t",)
    assert Table.from_dict(table(num_features=2)).feature_names == ("t_0", "t_1")
    named = table(features=["x", "y"], num_features=2)
    assert Table.from_dict(named).feature_names == ("x", "y")


def test_one_dist_type_needs_no_brackets() -> None:
    """A single routing rule means the same as a list of one."""
    one = Table.from_dict(table(kind="dynamicemb", dist_types="continuous"))
    assert one.dist_types == ("continuous",)
    assert Table.from_dict(table()).dist_types == ("roundrobin",)


def test_column_width_may_be_the_whole_table() -> None:
    """A column shard as wide as the table is the whole table."""
    limits = {"column_widths": [4, 8], "pin": {"column_width": 8}}
    pin = Table.from_dict(table(dim=8, constraints=limits)).constraints.pin
    assert pin is not None and pin.column_width == 8
