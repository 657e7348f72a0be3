"""Requests become inputs; fields that name files are refused at any depth.

The process of a job: what it reports, how it ends.
"""

import builtins
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.settings import News as Progress
from milp_planner.errors import BadInput
from milp_planner.inputs import access, files, table
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.files import build
from milp_planner.inputs.model import Model
from milp_planner.inputs.strict_yaml import read_yaml
from milp_planner.request import PlanRequest
from milp_planner.serve.asked import (
    ASKED,
    OWN,
    Asked,
    Catalog,
    inputs_of,
    read_asked,
    read_data,
    read_request,
    schema,
)
from milp_planner.serve.child import APART, News
from milp_planner.serve.limits import Limits
from tests.milp_planner.serve.served import CLUSTER, MODEL


def shipped() -> Catalog:
    """A catalogue of one model and one cluster."""
    return Catalog({"small": MODEL}, {"two": CLUSTER})


def request(**fields: Any) -> bytes:
    """A request for the small model."""
    return json.dumps({"model": "small", "cluster": "two", **fields}).encode()


def asked(**fields: Any) -> Asked:
    """The same, parsed."""
    return read_asked(read_data(request(**fields)))


def test_no_field_is_declared_beside_the_request() -> None:
    """A job has fields of a request, three of them narrower, and sizes that no request has."""
    assert set(Asked.__annotations__) == {"model", "cluster", "start", *OWN}
    assert (
        set(ASKED) <= PlanRequest.model_fields.keys()
        and not set(OWN) & PlanRequest.model_fields.keys()
    )
    described, whole = schema()["properties"], PlanRequest.model_json_schema()["properties"]
    assert set(described) == {"model", "cluster", *ASKED, *OWN}
    for name in set(ASKED) - {"start", "time_limit"}:
        assert described[name] == whole[name], name


def test_former_names_are_read() -> None:
    """moves_from, before and most_moves mean what they did."""
    for name in ("moves_from", "before"):
        how, _ = read_request(request(**{name: "id"}, most_moves=3), shipped(), Limits())
        assert how == {"start": "id", "max_moved": 3, "time_limit": 30.0}
    how, _ = read_request(request(start="id", max_moved="5%", gap="0.5%"), shipped(), Limits())
    assert how == {"start": "id", "max_moved": "5%", "gap": "0.5%", "time_limit": 30.0}


@pytest.mark.parametrize("name", ["cache", "today", "profile", "workers", "options", "trainer"])
def test_fields_that_reach_further_are_refused(name: str) -> None:
    """No job names a file, a folder or the service's own cores."""
    with pytest.raises(BadInput, match=f"request: {name}: (allowed|did you mean)"):
        asked(**{name: "x"})


def test_names_and_texts_are_read_and_resized() -> None:
    """A shipped name or YAML, with the requested sizes and machines."""
    model, cluster = inputs_of(asked(hbm=2**33, machines=3), shipped(), Limits())
    assert [t.name for t in model.tables] == ["users", "items"]
    assert len(cluster.machines) == 3 and {r.hbm_bytes for r in cluster.ranks} == {2**33}
    text, _ = inputs_of(asked(model=MODEL), shipped(), Limits())
    assert text.fingerprint() == model.fingerprint()


def test_limits_are_told() -> None:
    """Limits on tables, ranks and seconds."""
    for limits, words in (
        (Limits(tables=1), "2 tables; at most 1"), (Limits(ranks=1), "2 ranks; at most 1"),
        (Limits(seconds=1.0), "at most 1 s"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=words):
            read_request(request(time_limit=30.0), shipped(), limits)


def test_the_default_time_limit_is_allowed() -> None:
    """Where less than the default is allowed, it is the most allowed."""
    for most, seconds in ((20.0, 20.0), (300.0, 30.0)):
        assert read_request(request(), shipped(), Limits(seconds=most))[0]["time_limit"] == seconds


def test_tables_are_counted_before_they_are_made() -> None:
    """Thirty lines of 100,000 names are refused at once; so are too many values."""
    lines = "".join(f"- {{names: {c}_0..{c}_99999, rows: 1, dim: 64}}\n" for c in "abc")
    head = "name: m\nworkload: {batch_per_rank: 8}\ntables:\n"
    with pytest.raises(BadInput, match="model: 300,000 tables; at most 20,000 here"):
        inputs_of(asked(model=head + lines), shipped(), Limits())
    with pytest.raises(BadInput, match="model:3: more values than are read; allowed: 9 "):
        inputs_of(asked(model=head[:-1] + f" [{'1,' * 20}]\n"), shipped(), Limits(values=9))


def test_a_shipped_curve_may_be_named() -> None:
    """It is not a file of the server's user; a name that ends in .csv is refused."""
    name = access.curve_names()[0]
    curve = "{kind: frequency, curve: %s}"
    model, _ = inputs_of(
        asked(model=MODEL.replace("dim: 64}", f"dim: 64, access: {curve % name}}}", 1)),
        shipped(), Limits(),
    )  # fmt: skip
    assert model.tables[0].access.kind == "histogram"


PLACES = ("tables", "defaults", "patterns", "features", "x")
VALUES = st.recursive(
    st.sampled_from(["/etc/passwd", "../x.csv", "a.json", 1, None]),
    lambda inner: st.dictionaries(
        st.sampled_from(["keys", "curve", "csv", "json", "access", "kind", *PLACES]), inner
    ) | st.lists(inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(document=st.dictionaries(st.sampled_from(PLACES), VALUES))
def test_no_document_opens_a_file(document: dict[str, Any]) -> None:
    """Whatever a model contains, no function that reads files is called."""

    def never(*arguments: Any, **_: Any) -> Any:
        raise AssertionError(f"a file is read: {arguments}")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "read_text", never)
        patched.setattr(files, "csv_lines", never)
        patched.setattr(access, "csv_lines", never)
        patched.setattr(table, "histogram_of", never)
        patched.setattr(Path, "read_text", never)
        patched.setattr(builtins, "open", never)
        text = json.dumps({"name": "m", **document})  # JSON is YAML
        with pytest.raises(BadInput):
            inputs_of(asked(model=text), shipped(), Limits())


def test_a_table_grows() -> None:
    """By a percentage, by name or pattern; an unknown table is refused."""
    model, _ = inputs_of(asked(growth={"items": 50, "*": 10}), shipped(), Limits())
    assert [table.rows for table in model.tables] == [1_100_000, 600_000]
    with pytest.raises(BadInput, match=r"no table is called 'itens'; .*did you mean items"):
        inputs_of(asked(growth={"itens": 50}), shipped(), Limits())
    for wrong in ({"items": -1}, {"items": "50%"}, {"items": 1e9}, ["items"]):
        with pytest.raises(BadInput, match="request: growth"):
            asked(growth=wrong)


def test_news_come_apart_and_only_improve() -> None:
    """A worse plan or bound is not reported; news that follow too soon wait for the next line."""
    lines: list[str] = []
    now = [0.0]
    news = News(lines.append, lambda: now[0])
    points = ((0.0, 9, None, None), (0.1, 7, 3, 3), (APART, 8, 5, None), (9.0, None, 2, 2))
    for at, objective, bound, certified in points:
        now[0] = at
        news.note(Progress(at, objective, bound, "auto", certified))
    told = [json.loads(line) for line in lines]
    assert [(each["objective"], each["bound"]) for each in told] == [(9, None), (7, 5), (7, 5)]
    assert [each["certified_bound"] for each in told] == [None, 3, 3]
    assert [each["certified_gap"] for each in told] == [None, 4 / 7, 4 / 7]
    assert all(each["chart"].startswith("<svg") for each in told)


def test_it_ends_when_the_service_does(tmp_path: Path) -> None:
    """When stdin closes, the process ends, even in the middle of a long solve."""
    inputs = {
        "model": build(Model, read_yaml(MODEL, "model")).to_dict(),
        "cluster": build(Cluster, read_yaml(CLUSTER, "cluster")).to_dict(),
    }
    job = {
        "objective": "step_time", "time_limit": 600.0, "seed": 0, "workers": 1,
        "folder": str(tmp_path), "gap": 0.0,
        "cache": str(tmp_path / "cache"),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "milp_planner.serve.child"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("".join(f"{json.dumps(line)}\n" for line in (job, inputs)).encode())
    process.stdin.close()
    assert process.wait(60) == 130
    assert not [path for path in tmp_path.iterdir() if path.is_file()]
