"""``auto`` beside ``cpsat``: what counts as worse, the instances, and resuming a run."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from formulations.instance import Where
from formulations.instance.file import write_instance
from tests.formulations.examples import two_modes


@pytest.fixture(name="script", scope="module")
def _script() -> dict[str, Any]:
    return run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "small" / "run.py"))


def answers(*given: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Answers made from status, objective, bound and, if given, seconds to the proof."""
    keys = ("status", "objective", "bound", "proved")
    return [dict(zip(keys, (*one, None)[:4], strict=True)) for one in given]


@pytest.mark.parametrize(
    ("auto", "cpsat", "what"),
    [
        (("optimal", 7, 7, 1.0), ("feasible", 7, 6), []),
        (("feasible", 8, 6), ("feasible", 7, 6), ["plan"]),
        (("feasible", 7, 5), ("feasible", 7, 6), ["bound"]),
        (("unknown", None, None), ("feasible", 7, 6), ["plan", "bound"]),
        (("feasible", 7, 6), ("unknown", None, None), []),
        (("unknown", None, 6), ("infeasible", None, None), ["bound"]),
        (("infeasible", None, None), ("infeasible", None, None), []),
        (("optimal", 7, 7, 1.5), ("optimal", 7, 7, 1.0), []),
        (("optimal", 7, 7, 1.6), ("optimal", 7, 7, 1.0), ["time"]),
        (("feasible", 7, 6), ("optimal", 7, 7, 1.0), ["bound", "time"]),
    ],
)
def test_worse_by_one_counts(
    script: dict[str, Any], auto: tuple[Any, ...], cpsat: tuple[Any, ...], what: list[str]
) -> None:
    """Worse is a higher plan, a lower bound, or none where the other has one; equal is not worse.
    Proofs may take half as long again."""
    assert script["worse"](answers(auto), answers(cpsat)) == what


def test_medians_count(script: dict[str, Any]) -> None:
    """One bad run of three is ignored; times count if ``cpsat`` proves the optimum with every
    seed."""
    good, bad = ("optimal", 7, 7, 1.0), ("feasible", 8, 6)
    assert script["worse"](answers(good, bad, good), answers(good, good, good)) == []
    assert script["worse"](answers(bad, bad, good), answers(good, good, good)) == [
        "plan", "bound", "time",
    ]  # fmt: skip
    assert script["worse"](answers(bad, bad, bad), answers(good, bad, bad)) == []


def test_thirty_that_differ(script: dict[str, Any]) -> None:
    """Thirty priced instances: 8 to 20 tables, 4 to 8 ranks, every objective and kind of place."""
    made = dict(script["instances"](None))
    assert len(made) == 30
    assert all(8 <= i.num_tables <= 20 and 4 <= i.num_ranks <= 8 for i in made.values())
    assert {i.objective.value for i in made.values()} == {"total", "busiest_rank", "step_time"}
    kinds = {int(where) for i in made.values() for where in i.block_where}
    assert kinds == {int(where) for where in Where if where not in (Where.CLUSTER, Where.LIST)}


def test_a_run_goes_on(
    script: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Stored answers are not computed again, other settings are refused, and the summary counts."""
    folder, output = tmp_path / "in", tmp_path / "out.json"
    folder.mkdir()
    write_instance(two_modes(), folder / "two.json")
    call = ["run.py", "--folder", str(folder), "-o", str(output), "--seconds", "6", "--seeds", "1"]
    monkeypatch.setattr("sys.argv", call)
    script["main"]()
    assert "instances, medians: 1; auto worse: plan 0, bound 0" in capsys.readouterr().out
    document = json.loads(output.read_text())
    row = document["rows"]["two.json#0"]
    assert row["auto"]["status"] == row["cpsat"]["status"] == "optimal"
    row["auto"]["objective"] += 1
    del row["cpsat"]
    output.write_text(json.dumps(document))
    script["main"]()
    assert "two.json: worse plan" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*call, "--workers", "1"])
    with pytest.raises(SystemExit, match="other settings"):
        script["main"]()
