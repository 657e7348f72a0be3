"""The script that replays lookups through a plan.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulator.simulate import main
from milp_planner import plan
from tests.milp_planner.cli.conftest import CLUSTER, MODEL


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan.json, files of keys, and the inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "keys.csv").write_text("1\nx\n")
    (tmp_path / "far.csv").write_text("1\n1000000000000\n")
    plan("model.yaml", "cluster.yaml", formulation="greedy").save("plan.json")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a run prints, as JSON where that is asked for."""
    assert main([*arguments, "--batches", "2"]) == 0
    shown = capsys.readouterr().out
    return json.loads(shown) if "--json" in arguments else " ".join(shown.split())


def test_predicted_beside_simulated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is a row for every placed table; JSON has the same figures; a limit ends it."""
    shown = told(capsys, "plan.json")
    assert "predicted → simulated" in shown and "users" in shown
    found = told(capsys, "plan.json", "--json")
    assert [t["name"] for t in found["tables"]] == ["users", "items", "ads"]
    assert found["batches"] == 2 and len(found["rank_ids"]) == 2
    assert "2 tables" in told(capsys, "plan.json", "--time-limit", "0.001")


def test_published_skew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the skew of production-like tables, a batch has fewer distinct rows."""
    plain, skewed = (
        told(capsys, "plan.json", "--json", *more)["tables"][2]["unique_fraction"]
        for more in ((), ("--skew", "dlrm-2022"))
    )
    assert skewed < plain


def test_lost_rows_have_a_table_and_a_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hash table that loses rows is named, the array is not; larger buckets lose fewer rows."""
    text = (
        "name: m\nworkload: {batch_per_rank: 4096}\ntables:\n"
        "  - {name: hashed, rows: 40k, dim: 16, kind: dynamicemb, bucket_capacity: BUCKET}\n"
        "  - {name: array, rows: 40k, dim: 16}\n"
    )
    lost = []
    for bucket in ("128", "2048"):
        (folder / "lost.yaml").write_text(text.replace("BUCKET", bucket))
        plan("lost.yaml", "cluster.yaml", formulation="greedy").save("l.json")
        shown, words = told(capsys, "l.json"), "evicted from full buckets and lost: hashed "
        assert words in shown and "larger bucket_capacity" in shown
        assert "array" not in shown[shown.index(words) :]
        tables = told(capsys, "l.json", "--json")["tables"]
        lost.append(next(t["lost"] for t in tables if t["name"] == "hashed"))
    assert lost[1] < lost[0] / 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--trace", "users"), "TABLE=FILE"),
        (("--trace", "users=absent.npy"), "not a file of keys"),
        (("--trace", "users=keys.csv"), "keys.csv"),
        (("--trace", "ads=far.csv"), "far.csv: key number 2 is 1000000000000; allowed: 0 to"),
        (("--skew", "flat"), "dlrm-2021, dlrm-2022"),
        (("--batches", "0"), "a whole number, 1 to 10000"),
    ],
)
def test_bad_input_is_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], says: str
) -> None:
    """One sentence, exit code 2, nothing on stdout."""
    assert main(["plan.json", *arguments]) == 2
    shown = capsys.readouterr()
    assert says in shown.err and not shown.out
