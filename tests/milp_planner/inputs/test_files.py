"""Mistakes that users make in files: each gets one sentence with file, line and remedy."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from milp_planner import errors
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model, Table, files, problems, strict_yaml
from milp_planner.inputs.constraints import Constraints
from milp_planner.inputs.files import load_cluster, load_model, read_document, read_json
from milp_planner.inputs.strict_yaml import read_yaml
from tests.corpus import mistakes
from tests.milp_planner.inputs.builders import CLUSTER_YAML, MODEL_YAML

LOADERS = {"model": (load_model, MODEL_YAML), "cluster": (load_cluster, CLUSTER_YAML)}


def test_good_files(tmp_path: Path) -> None:
    """The files in which the mistakes below are made are valid themselves."""
    (tmp_path / "model.yaml").write_text(MODEL_YAML)
    (tmp_path / "cluster.yaml").write_text(CLUSTER_YAML)
    model = load_model(tmp_path / "model.yaml")
    assert [table.rows for table in model.tables] == [2_000_000, 2_000_000]
    cluster = load_cluster(str(tmp_path / "cluster.yaml"))
    assert cluster.num_ranks == 32
    assert cluster.ranks[31].hbm_bytes == 80 * 2**30


def test_a_missing_model_is_no_cluster(tmp_path: Path) -> None:
    """The nearest name is that of a model, even if a cluster's is nearer."""
    (tmp_path / "model_a.yaml").write_text(CLUSTER_YAML)
    (tmp_path / "model.yaml").write_text(MODEL_YAML)
    with pytest.raises(BadInput, match=r"no such file; did you mean .*model\.yaml\?$"):
        load_model(tmp_path / "model_b.yaml")


def test_json_files(tmp_path: Path) -> None:
    """What to_dict writes as JSON to a .json file is read back as equal."""
    (tmp_path / "model.yaml").write_text(MODEL_YAML)
    model = load_model(tmp_path / "model.yaml")
    (tmp_path / "model.json").write_text(json.dumps(model.to_dict()))
    assert load_model(tmp_path / "model.json") == model


@pytest.mark.parametrize(("content", "sentence"), mistakes(__file__, "files that are no mapping"))
def test_files_that_are_no_mapping(tmp_path: Path, content: str, sentence: str) -> None:
    """An empty file, a list or a bare word is not a model."""
    path = tmp_path / "model.yaml"
    path.write_text(content)
    with pytest.raises(BadInput, match=sentence):
        read_document(path)


def test_lines_in_a_list_of_machines(tmp_path: Path) -> None:
    """In a list of machines, the line is that of the machine's own field."""
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "name: c\nmachines:\n  - {ddr: 1TB, ranks: 1, hbm: 1GB}\n  - ddr: 1TB\n    ranks: 2\n"
        "    hbm: 1Gib\n"
    )
    with pytest.raises(BadInput, match=r":6: machines\[1\]\.hbm: found '1Gib'"):
        load_cluster(path)


def test_csv_default_is_found_in_the_model(tmp_path: Path) -> None:
    """A wrong default is reported where it is written, even if the tables come from a CSV."""
    (tmp_path / "t.csv").write_text("name,rows\na,5\n")
    path = tmp_path / "model.yaml"
    path.write_text(
        "name: m\nworkload: {batch_per_rank: 1}\ndefaults: {dim: x}\ntables: {csv: t.csv}\n"
    )
    with pytest.raises(BadInput, match=rf"^{path}:3: defaults\.dim: found 'x'"):
        load_model(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(LOADERS)),
    st.integers(0, 300),
    st.integers(0, 40),
    st.one_of(
        st.text(max_size=8),
        st.text("[]{}:,&*!|>'\"#%@-? \n\t", max_size=6),
        st.sampled_from(["1e6", "80 GiB", "~", "-1", "1/3", "9" * 400, "1" * 5000, "\ud7ff", "[]"]),
    ),
)
def test_broken_files_are_sentences(
    tmp_path: Path, kind: str, start: int, length: int, inserted: str
) -> None:
    """A damaged file is read as a valid value or refused in one line."""
    load, text = LOADERS[kind]
    path = tmp_path / f"{kind}.yaml"
    damaged = text[:start] + inserted + text[start + length :]
    path.write_bytes(damaged.encode("utf-8", "surrogatepass"))
    try:
        value = load(path)
    except BadInput as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(path))
    else:
        assert type(value).from_dict(value.to_dict()) == value


FIELD_NAMES = [
    *Table.model_fields, *Constraints.model_fields, "alpha", "bins", "ids", "share", "kind",
    "machines", "ranks", "hbm", "x",
]  # fmt: skip

PLAIN_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(["t", "80GiB", "unknown", "1/3", "tenths", 10**400]),
)  # fmt: skip


def fields(names: list[str], values: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[Any]:
    """Some of these fields with any values."""
    return st.dictionaries(st.sampled_from(names), values, max_size=most)


JSON_VALUES = st.recursive(
    PLAIN_VALUES,
    lambda inner: st.lists(inner, max_size=3) | fields(FIELD_NAMES, inner, 4),
    max_leaves=10,
)


@given(
    fields(["access", "constraints", "rows", "dim", "features", "dist_types", "name"], JSON_VALUES,
           3),
    fields(["machines", "ranks_per_machine", "hbm", "interconnect", "reservations"], JSON_VALUES,
           3),
)  # fmt: skip
def test_wrong_dictionaries_are_sentences(
    table: dict[str, object], cluster: dict[str, object]
) -> None:
    """Whatever values a dictionary's fields have, the answer is a valid value or a sentence."""
    tables = [{"name": "t", "rows": 10, "dim": 4, **table}]
    model = {"name": "m", "workload": {"batch_per_rank": 1}, "tables": tables}
    whole = {"name": "c", "machines": 1, "ranks_per_machine": 1, "hbm": 0, "ddr": 0, **cluster}
    for cls, data in ((Model, model), (Cluster, whole)):
        try:
            value = cls.from_dict(data)
        except BadInput as error:
            assert "\n" not in str(error)
        else:
            assert cls.from_dict(value.to_dict()) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("m.yaml", "a: [" + "1," * 20 + "1]"), ("m.json", '{"a": [' + "1," * 20 + "1]}")],
)
def test_values_are_counted(name: str, text: str) -> None:
    """A file with more values than are read is refused before its fields are checked; commas within
    texts do not count."""
    read = read_json if name.endswith("json") else read_yaml
    with pytest.raises(BadInput, match=r"more values than are read; allowed: 20 "):
        read(text, name, most=20)
    assert read(text, name, most=23).data["a"] == [1] * 21
    assert read('{"a": "1,2,[3],{4},\\",5"}', name, most=4).data == {"a": '1,2,[3],{4},",5'}


def test_ranks_of_listed_machines_are_counted_first(tmp_path: Path) -> None:
    """A thousand machines of 65,536 ranks each: refused before any rank is made."""
    machine = "{ddr: 1TB, hbm: 80GiB, ranks: 65536}"
    path = tmp_path / "c.yaml"
    path.write_text("name: c\nmachines:\n" + f"- {machine}\n" * 1000)
    with pytest.raises(BadInput, match=r"machines: found 65,536,000 ranks; allowed: up to 65536"):
        load_cluster(path)


def test_problems_are_collected_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a damaged file the first problems are listed, and that there are more."""
    for module in (errors, problems, strict_yaml, files):
        monkeypatch.setattr(module, "MOST_PROBLEMS", 5)
    head = "name: m\nworkload: {batch_per_rank: 8}\n"
    (tmp_path / "tables.csv").write_text("name,rows,dim\n" + "t,1e6,8\n" * 9)
    for text in (
        "tables:\n" + "- {}\n" * 9,
        "tables:\n" + "- {rows: 1e6}\n" * 9,
        "tables: {csv: tables.csv}\n",
    ):
        (tmp_path / "m.yaml").write_text(head + text)
        with pytest.raises(BadInput, match=r"and at least 4 more") as caught:
            load_model(tmp_path / "m.yaml")
        assert len(caught.value.problems) == 5
