"""plan.json holds all of a plan, and changes to it are noticed.

Rows about planner runs, in both kinds of files.
"""

import base64
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import milp_planner.plans.plan_file as plan_file
from formulations import InstanceError
from formulations.instance import strict_json
from formulations.result.outcome import StoppedBy, nothing
from milp_planner.errors import BadInput
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan, decode
from milp_planner.plans.plan_file import plan_from_dict, plan_to_dict
from milp_planner.plans.run_rows import COLUMNS, RunRow, append_rows, check_rows_file
from milp_planner.pricing import price
from milp_planner.version import __version__
from tests.milp_planner.plans.test_placement import plan_of
from tests.milp_planner.pricing.build import cluster, model


@pytest.fixture
def plan() -> Plan:
    """A TorchRec and a dynamicemb table on eight ranks."""
    return plan_of(
        cluster(),
        [{"dim": 128}, {"kind": "dynamicemb", "constraints": {"cache_ratios": ["1/3"]}}],
        [
            ("column_wise:2/CACHING/0.5", [[1, 2]]),
            ("row_wise/HYBRID/1/3/roundrobin", [list(range(8))]),
        ],
    )


def through_text(document: dict[str, Any]) -> Any:
    """The document as it would be read from a file."""
    return json.loads(json.dumps(document))


def test_round_trip(plan: Plan) -> None:
    """Inputs, profile, Instance, Outcome, tables and shards are read back unchanged."""
    document = plan_to_dict(plan)
    assert document["version"] == __version__
    back = plan_from_dict(through_text(document))
    assert (back.model, back.cluster, back.profile) == (plan.model, plan.cluster, plan.profile)
    assert back.tables == plan.tables
    assert back.instance.fingerprint == plan.instance.fingerprint
    assert back.shards("t0") == plan.shards("t0")
    assert plan_to_dict(back) == document


def test_large_parts_are_embedded_compressed(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit, a part is gzip in base64 beside its fingerprint, read back unchanged."""
    monkeypatch.setattr(plan_file, "LARGE_CHARACTERS", 1000)
    document = plan_to_dict(plan)
    assert set(document["instance"]) == {"encoding", "data"}
    assert document["fingerprints"]["instance"] == plan.instance.fingerprint
    assert plan_to_dict(plan_from_dict(through_text(document))) == document


def packed(text: bytes) -> dict[str, str]:
    """A part in the form in which large plans embed it."""
    return {
        "encoding": "json+gzip+base64",
        "data": base64.b64encode(gzip.compress(text, mtime=0)).decode(),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a": 1, "a": 2}', "outcome: key 'a' appears twice"),
        (b'{"gap": NaN}', "outcome: NaN is not a number"),
        (b'{"gap": 1e999}', "outcome: 1e999 is too large"),
        (b"[" * 100_000, "outcome: nested too deeply"),
        (b" " * 2**22, "outcome: unpacks to more than 1 MiB"),
    ],
)
def test_compressed_parts_are_read_strictly(
    plan: Plan, text: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is refused in a plain part is refused in a compressed one."""
    monkeypatch.setattr(strict_json, "MAX_BYTES", 2**20)
    document = plan_to_dict(plan) | {"outcome": packed(text)}
    with pytest.raises(InstanceError, match=words):
        plan_from_dict(document, "plan.json")


def test_a_damaged_stream_is_a_sentence(plan: Plan) -> None:
    """A stream that zlib cannot read gets a sentence."""
    part = packed(b"{}" * 1000)
    raw = bytearray(base64.b64decode(part["data"]))
    raw[12:16] = b"\xff" * 4
    part["data"] = base64.b64encode(raw).decode()
    with pytest.raises(InstanceError, match="outcome: damaged gzip"):
        plan_from_dict(plan_to_dict(plan) | {"outcome": part}, "plan.json")


_OTHER = {
    "kind": "torchrec", "sharding_type": "grid_shard", "mode": "HOST_ONLY", "kernel": "fused",
    "cache_ratio": "0.25", "dist_type": "continuous", "column_shards": 3, "column_width": 5,
    "fusion_group": "other", "fusion_caching": True, "capacity_per_rank": 1, "hbm_for_values": 1,
}  # fmt: skip


@pytest.mark.parametrize("field", _OTHER)
def test_every_field_of_tables_is_derived(plan: Plan, field: str) -> None:
    """Exports read ``tables``, so each of its fields must follow from the outcome."""
    document = through_text(plan_to_dict(plan))
    document["tables"][1][field] = _OTHER[field]
    with pytest.raises(BadInput, match=f"contradict its outcome: {field} of 't1'"):
        plan_from_dict(document)


def test_a_plan_without_placement_round_trips() -> None:
    """A plan without a placement is also an answer."""
    options = price(model({}), cluster())
    instance = compile_instance(options)
    empty = decode(options, instance, nothing("test", StoppedBy.TIME_LIMIT))
    assert plan_from_dict(through_text(plan_to_dict(empty))).tables == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="other"), "format is 'other'"),
        (lambda d: d.pop("model"), "the field 'model' is missing"),
        (lambda d: d["model"]["tables"][0].update(rows=7), "model does not match its fingerprint"),
        (
            lambda d: (d.update(version="9.9"), d["model"]["tables"][0].update(rows=7)),
            rf"milp-planner \(9.9; this is {__version__}\)",
        ),
        (lambda d: d["profile"].update(host_only=0.5), "profile does not match its fingerprint"),
        (lambda d: d["tables"][0].update(ranks=[[1, 3]]), "contradict its outcome"),
        (lambda d: d["tables"].pop(), "contradict its outcome"),
        (lambda d: d.update(tables="all"), "tables must be a list"),
        (lambda d: d["instance"].update(time_unit="ms"), "time_unit is not ps"),
        (lambda d: d.update(model={"encoding": "zip"}), "encoding must be"),
        (
            lambda d: d.update(model={"encoding": "json+gzip+base64", "data": "!"}),
            "the compressed part is damaged",
        ),
    ],
)
def test_changed_files_are_refused(plan: Plan, change: Any, words: str) -> None:
    """One sentence says what was found."""
    document = through_text(plan_to_dict(plan))
    change(document)
    with pytest.raises(BadInput, match=words):
        plan_from_dict(document, "plan.json")


@pytest.mark.parametrize("junk", [None, [], 3, "plan", {}])
def test_junk_is_no_plan(junk: Any) -> None:
    """Any other file is refused without a traceback."""
    with pytest.raises(BadInput, match="milp-planner-plan/1"):
        plan_from_dict(junk)


def test_the_checker_reads_every_field_that_a_plan_may_have() -> None:
    """What the product writes and reads, the stand-alone checker reads, too: no field of plan.json
    is unknown to it."""
    from formulations import checker

    optional = {
        "version": "1", "ledger": None, "origins": {}, "moves": {}, "moving": {},
        "divisions": {"asked": {}, "others": []}, "executable": "torchrec",
    }  # fmt: skip
    needed: dict[str, object] = {"format": "milp-planner-plan/1", "tables": [], "fingerprints": {}}
    parts: dict[str, object] = {name: {} for name in checker.PARTS}
    needed = needed | {"fingerprints": dict.fromkeys(checker.PARTS[:4], "0" * 64), **parts}
    assert {*needed, *optional} == plan_file._FIELDS
    assert checker.PLAN({**needed, **optional})
    assert not checker.PLAN({**needed, "another": 1})


GOOD = RunRow("8xh100", success=True, max_rank_perf=2.0, mean_rank_perf=1.0, gap=0.5, seed=3)
BAD = RunRow("tiny", success=False, planner_error_type="insufficient_storage")


@pytest.mark.parametrize("name", ["runs.sqlite", "runs.db"])
def test_a_database_grows(tmp_path: Path, name: str) -> None:
    """Rows are added to those of earlier runs, successes and failures alike, under their names."""
    path = tmp_path / name
    append_rows(path, [GOOD, BAD])
    append_rows(path, [GOOD])
    with closing(sqlite3.connect(path)) as database:
        asked = "select sku, success, gap, planner_error_type from runs order by rowid"
        found = database.execute(asked).fetchall()
    good = ("8xh100", 1, 0.5, None)
    assert found == [good, ("tiny", 0, None, "insufficient_storage"), good]


def test_lines_grow(tmp_path: Path) -> None:
    """Each run is one line of JSON with every column."""
    path = tmp_path / "runs.jsonl"
    append_rows(path, [GOOD])
    append_rows(path, [BAD])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["sku"] for row in rows] == ["8xh100", "tiny"]
    assert all(tuple(row) == COLUMNS for row in rows)


def test_a_wrong_file_is_refused_early(tmp_path: Path) -> None:
    """Another suffix, a folder that is not there, a text that is no database, other columns."""
    with pytest.raises(BadInput, match=r"found suffix '.csv'.*\.jsonl"):
        check_rows_file(tmp_path / "runs.csv")
    with pytest.raises(BadInput, match="does not exist"):
        check_rows_file(tmp_path / "nowhere" / "runs.jsonl")
    text = tmp_path / "text.sqlite"
    text.write_text("not a database, but long enough to look at " * 40)
    with pytest.raises(BadInput, match="not a database"):
        check_rows_file(text)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("create table runs (sku, success)")
    with pytest.raises(BadInput, match="lacks planner_error_type"):
        append_rows(other, [GOOD])
