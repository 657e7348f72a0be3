"""Bad input at the command line: one clear sentence, exit code 2, nothing written."""

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli

INPUTS = {"model.yaml": MODEL, "cluster.yaml": CLUSTER}
WORDING = yaml.safe_load(Path(__file__).with_name("wording.yaml").read_text(encoding="utf-8"))


def text_of(name: str, given: str | dict[int, str]) -> str:
    """A file's text, given whole or as other lines of an input."""
    if isinstance(given, str):
        return given
    lines = INPUTS[name].splitlines(keepends=True)
    for number, line in given.items():
        lines[number - 1] = f"{line}\n"
    return "".join(lines)


@pytest.mark.parametrize("row", WORDING, ids=lambda row: row["case"])
def test_one_sentence_exit_two_nothing_written(
    cli: Cli, one_plan: bytes, tmp_path: Path, row: dict[str, Any]
) -> None:
    """It says what is wrong and what is allowed; stdout stays empty, the folder unchanged."""
    for name, given in row.get("files", {}).items():
        (tmp_path / name).write_text(text_of(name, given))
    if "plan.json" in row["run"]:
        (tmp_path / "plan.json").write_bytes(one_plan)
    (tmp_path / "empty").mkdir()
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    done = cli(*shlex.split(row["run"]))
    assert done.code == 2, (done.out, done.err)
    assert done.out == ""
    assert done.err.startswith("milp-planner: ") and done.err.count("\n") == 1, done.err
    says = [row["says"]] if isinstance(row["says"], str) else row["says"]
    assert all(words in done.err for words in says), done.err
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_damaged_plan_is_one_sentence(cli: Cli, planned: Path) -> None:
    """A plan whose embedded model was edited is refused because of its fingerprint."""
    document = json.loads(planned.read_text())
    document["model"]["tables"][0]["rows"] += 1
    planned.write_text(json.dumps(document))
    done = cli("verify", planned)
    assert done.code == 2 and "fingerprint" in done.err and done.err.count("\n") == 1


def test_a_torn_gzip_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    """A truncated instance file is bad input, not a traceback."""
    whole = gzip.compress(b'{"format": "milp-planner-instance/1"}' * 50, mtime=0)
    (tmp_path / "i.json.gz").write_bytes(whole[: len(whole) // 2])
    done = cli("solve", "i.json.gz")
    assert done.code == 2 and "i.json.gz" in done.err and done.err.count("\n") == 1
