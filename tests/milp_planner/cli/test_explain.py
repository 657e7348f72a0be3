"""``milp-planner explain`` from end to end on the small inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from milp_planner import Asked
from milp_planner.cli.console import Work
from milp_planner.errors import BadInput
from tests.milp_planner.cli.conftest import CLUSTER, Cli

FAST = ("--time-limit", 20, "--workers", 1)


def test_the_default_answers_why_and_what_memory_buys(cli: Cli, planned: Path) -> None:
    """Every table appears with its alternatives, and HBM has a frontier."""
    done = cli("explain", planned, "--json", *FAST)
    assert done.code == 0
    assert sorted(done.json) == ["frontier", "held", "plan", "restrictions", "slowest", "why"]
    assert [t["table"] for t in done.json["why"]["tables"]] == ["users", "items", "ads"]
    assert all(len(t["alternatives"]) == 3 for t in done.json["why"]["tables"])
    (curve,) = done.json["frontier"]
    values = [p["objective"] for p in curve["points"] if p["objective"] is not None]
    assert curve["over"] == "hbm" and values == sorted(values, reverse=True)
    assert curve["here"] in [p["budget"] for p in curve["points"]]


def test_it_reads_well_on_a_terminal(cli: Cli, planned: Path) -> None:
    """All drawings fit 100 columns. The frontier certifies its points; amounts are for tables and
    for the device."""
    questions = "why,frontier,smallest,replan"
    done = cli("explain", planned, "--ask", questions, "--budgets", "3", "--limits", "0,1", *FAST)
    assert done.code == 0
    for words in ("why: every table", "frontier: step_time over HBM", "least hbm", "re-plan:",
                  "bar: certified", "HBM with reservations", "after reservations",
                  "reservations included"):  # fmt: skip
        assert words in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 100


def test_a_field_has_a_frontier(cli: Cli, planned: Path) -> None:
    """By its path, at the values given; the line says what a step processes."""
    field = ("--over", "workload.batch_per_rank", "--budgets", "×2,512")
    done = cli("explain", planned, "--ask", "frontier", *field, *FAST)
    assert done.code == 0
    assert "frontier: step_time over workload.batch_per_rank" in done.out
    assert "samples/s" in done.out and "samples on all ranks together" in done.out


def test_a_search_that_nobody_limited_is_announced(cli: Cli, planned: Path) -> None:
    """For how long and for which questions, before it begins; a limit that was given is known."""
    done = cli("explain", planned, "--ask", "sensitivity", "--draws", "1", "--workers", 1)
    assert "searching for up to 60 s (sensitivity); --time-limit sets another limit" in done.err
    assert cli("explain", planned, "--table", "users", *FAST).err == ""


def test_one_table_only(cli: Cli, planned: Path) -> None:
    """--table narrows why; a wrong name is exit code 2 with the nearest name."""
    done = cli("explain", planned, "--ask", "why", "--table", "ads", "--json", *FAST)
    assert [t["table"] for t in done.json["why"]["tables"]] == ["ads"]
    wrong = cli("explain", planned, "--ask", "why", "--table", "add", *FAST)
    assert wrong.code == 2
    assert "did you mean" in wrong.err


def test_replan_writes_the_plan_and_moves_reads_it(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """On a smaller cluster, the two allowed moves are named; moves then agrees with the curve."""
    (tmp_path / "less.yaml").write_text(CLUSTER.replace("hbm: 2GiB", "hbm: 260MiB"))
    done = cli(
        "explain", planned, "--ask", "replan", "--cluster", "less.yaml", "--limits", "0,2",
        "-o", "new.json", "--json", *FAST,
    )  # fmt: skip
    assert done.code == 0
    last = done.json["replan"]["steps"][-1]
    assert len(last["moved"]) == last["moved_tables"] == 2
    assert set(last["moved"]) < {"users", "items", "ads"}
    assert cli("verify", "new.json").code == 0
    seen = cli("explain", "new.json", "--ask", "moves", "--today", planned, "--json", *FAST)
    assert seen.json["moves"]["after"] == last["objective"]


def test_an_infeasible_plan_is_explained_as_such(cli: Cli, tmp_path: Path) -> None:
    """Exit code 1 with the conflict; questions that need a plan say so."""
    tiny = CLUSTER.replace("hbm: 2GiB", "hbm: 16MiB").replace("ddr: 4GiB", "ddr: 16MiB")
    (tmp_path / "tiny.yaml").write_text(tiny)
    cli("plan", "model.yaml", "tiny.yaml", "-f", "cpsat", "-o", "none.json", *FAST)
    done = cli("explain", "none.json", *FAST)
    assert done.code == 1
    assert "each tier" in done.out
    refused = cli("explain", "none.json", "--ask", "why", *FAST)
    assert refused.code == 2
    assert "why-not" in refused.err


def test_sensitivity_on_a_terminal_and_as_json(cli: Cli, planned: Path) -> None:
    """The table and the JSON say the same."""
    ask = ("--sensitivity", "--draws", 2, "--spread", "30%", *FAST)
    done = cli("explain", planned, *ask, "--json")
    assert done.code == 0
    found = done.json["sensitivity"]
    assert {one["parameter"]["spread"] for one in found["singles"]} == {0.3}
    assert found["summary"]["draws"] == len(found["draws"]) == 2
    drawn = cli("explain", planned, *ask)
    assert drawn.code == 0
    assert f"all at once, 2 draws: the plan changes in {found['summary']['changes']}" in drawn.out
    assert max(len(line) for line in drawn.out.splitlines()) <= 100


def test_the_frontier_is_shown_and_written(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A row per budget within 100 columns; the CSV file has as many lines."""
    file = tmp_path / "frontier.csv"
    budgets = ("--budgets", "2", "--over", "hbm,ddr", "--csv", file)
    done = cli("explain", planned, "--ask", "frontier", *budgets, *FAST)
    assert done.code == 0
    assert "frontier: step_time over HBM of each rank" in done.out
    assert "frontier: step_time over DDR of each machine" in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 100
    assert len(file.read_text().splitlines()) == 1 + 2 + 2


def test_sizes_and_times() -> None:
    """Units, and values that are neither a size nor a time."""
    assert Asked.of({"limits": "1GiB,2kB, 5"}).limits == (2**30, 2000, 5)
    assert Asked.of({"limits": "1GiB"}).by == "bytes" and Asked.of({"limits": "1,2"}).by == "tables"
    assert Asked(target="2.5ms").target == 2_500_000_000  # type: ignore[arg-type]
    assert Asked.of({"target": "3s"}).target == 3 * 10**12
    for wrong in ("0ms", "2.5", 0, 2.5):
        with pytest.raises(BadInput, match=r"target: found .*; allowed: a time such as 2\.5ms"):
            Asked(target=wrong)  # type: ignore[arg-type]


def test_a_second_interrupt_keeps_what_is_answered(
    cli: Cli, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the job is abandoned after the first question, that answer is still printed."""
    run = Work.run

    def abandoned(self: Work, job: Callable[[], Any]) -> Any:
        run(self, job)
        self.interrupted = True
        raise KeyboardInterrupt

    monkeypatch.setattr(Work, "run", abandoned)
    done = cli("explain", planned, "--ask", "why", "--json", *FAST)
    assert done.code == 130 and "why" in done.json
