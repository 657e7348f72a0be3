"""``milp-planner plan`` as a user runs it, on a small model and cluster.

``plan --from`` starts from yesterday's plan.json and says what moves.

``milp-planner plan --goals``: the search also pursues goals after the objective."""

import json
from pathlib import Path

import pytest

from formulations import checker
from formulations.result.check import check
from formulations.runtime.timing import CallTime
from milp_planner import verify
from milp_planner.cli.plan import rest_told
from milp_planner.plans.plan_file import read_plan
from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli, Done


def test_prints_the_verdict_tables_and_ranks(cli: Cli, tmp_path: Path) -> None:
    """One strip, one line per table and per rank, the fullest rank's ledger against its whole
    memory, within 100 columns, and a file that verifies."""
    done = cli("plan", "model.yaml", "cluster.yaml", "-f", "cpsat")
    assert done.code == 0, done.err
    for word in ("CERTIFIED OPTIMAL", "step_time", "certified: no plan is better",
                 "tightest hbm: rank", "tightest ddr: machine", "users", "items", "ads",
                 "per rank", " of 2 GiB in use", "largest buffers", "\nweights ", "\noutput ",
                 "\nheadroom ", "\nfree "):  # fmt: skip
        assert word in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 100
    plan = read_plan(tmp_path / "plan.json")
    assert plan.outcome.placement is not None
    assert check(plan.instance, plan.outcome.placement).feasible


def test_what_took_the_rest_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where reading, writing and showing take long, one line says so; else nothing does."""
    stages = {"reading": 0.25, "writing": 3.0, "showing": 4.5}
    assert rest_told(stages) == "beside planning 7.75 s: reading 0.25 s, writing 3 s, showing 4.5 s"
    assert rest_told({"reading": 0.5, "writing": 0.5}) is None
    monkeypatch.setattr("milp_planner.cli.plan.TOLD_ABOVE", -1.0)
    monkeypatch.setattr(CallTime, "told", lambda self: dict(self.stages))  # however short
    (line,) = cli("plan", "model.yaml", "cluster.yaml", "--json").err.splitlines()
    assert line.startswith("milp-planner: beside planning ") and "writing" not in line
    assert "reading " in line and "showing " in line


def test_a_plan_is_not_overwritten_unasked(cli: Cli, planned: Path) -> None:
    """An existing plan.json is reported before any work and stays as it is, unless -o names it."""
    before = planned.read_bytes()
    done = cli("plan", "model.yaml", "cluster.yaml")
    assert done.code == 2 and "plan.json already exists; -o plan.json overwrites it" in done.err
    quick = ("plan", "model.yaml", "cluster.yaml", "-f", "greedy")
    assert cli(*quick).code == 2 and planned.read_bytes() == before
    assert cli(*quick, "--json").code == 0 and planned.read_bytes() == before
    assert cli(*quick, "-o", "plan.json").code == 0 and planned.read_bytes() != before


def test_the_second_answer_comes_from_the_cache(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It equals the first to the last byte and names its source; --no-cache ignores the cache."""
    monkeypatch.setenv("MILP_PLANNER_CACHE", str(tmp_path / "kept"))
    asked = ("plan", "model.yaml", "cluster.yaml", "-o")
    first, second = cli(*asked, "a.json"), cli(*asked, "b.json")
    assert (first.code, second.code) == (0, 0), second.err
    assert "from the cache" not in first.err
    assert "answered from the cache in" in second.err
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert "cache" not in cli(*asked, "c.json", "--no-cache").err
    both = cli(*asked, "d.json", "--no-cache", "--cache", "kept")
    assert both.code == 2 and "contradicts" in both.err and not (tmp_path / "d.json").exists()


def test_json_is_the_plan_and_nothing_else(cli: Cli, tmp_path: Path) -> None:
    """With --json, stdout is one document, and no file is written unasked; one that is asked for
    holds what stdout shows. 0.5% is 0.005."""
    asked = ("plan", "model.yaml", "cluster.yaml", "-f", "cpsat", "--json")
    done = cli(*asked)
    assert done.code == 0 and done.json["format"] == "milp-planner-plan/1" and done.json["ledger"]
    assert done.json["outcome"]["status"] == "optimal"
    assert not (tmp_path / "plan.json").exists()
    done = cli(*asked, "--gap", "0.5%", "-o", "p.json")
    assert json.loads((tmp_path / "p.json").read_text()) == done.json
    assert done.json["outcome"]["settings"]["gap"] == 0.005


@pytest.mark.parametrize("objective", ["total", "busiest_rank", "step_time"])
def test_each_objective_is_reached(cli: Cli, objective: str) -> None:
    """The plan is proved for the objective that was asked for."""
    outcome = cli("plan", "model.yaml", "cluster.yaml", "-f", "cpsat", "--objective", objective,
                  "--json").json["outcome"]  # fmt: skip
    assert outcome["objective_kind"] == objective and outcome["bound"] == outcome["objective"]
    assert outcome["objectives"][objective] == outcome["objective"]


def test_column_widths_are_not_ignored_in_silence(cli: Cli, tmp_path: Path) -> None:
    """Widths that no shard can have are refused; legal ones that no two ranks take are named."""
    for width, code in ((7, 2), (8, 0), (32, 0)):
        limited = f"dim: 64, constraints: {{column_widths: [{width}]}}, pooling_factor: 20"
        (tmp_path / "cut.yaml").write_text(MODEL.replace("dim: 64, pooling_factor: 20", limited))
        done = cli("plan", "cut.yaml", "cluster.yaml", "-f", "greedy", "-o", "cut.json")
        assert done.code == code
        assert ("column_widths is possible on this cluster: items" in done.out) == (width == 8)
        assert ("found 7; allowed: multiples of 4 up to dim 64" in done.err) == (width == 7)


def test_infeasible_is_an_answer(cli: Cli, tmp_path: Path) -> None:
    """Exit code 1; each tier's need and shortfall are shown; the advice gives a plan."""
    cluster = CLUSTER.replace("2GiB", "64MiB").replace("4GiB", "128MiB")
    (tmp_path / "tiny.yaml").write_text(cluster)
    done = cli("plan", "model.yaml", "tiny.yaml", "-f", "cpsat")
    assert done.code == 1
    for word in ("INFEASIBLE", "no plan exists", "short by", "ddr of each machine", "or drop"):
        assert word in done.out
    detail = read_plan(tmp_path / "plan.json").outcome.detail["diagnosis"]
    ddr = next(c for c in detail["capacities"] if c["resource"] == "ddr")  # type: ignore[index]
    assert ddr["proved"]
    advice = detail["advice"]["ddr"]  # type: ignore[index]
    for lack, code in ((0, 0), (1, 1)):
        (tmp_path / "more.yaml").write_text(cluster.replace("128MiB", str(advice - lack)))
        assert cli("plan", "model.yaml", "more.yaml", "-f", "cpsat", "--json").code == code


def test_no_plan_in_the_limit_is_three(cli: Cli, tmp_path: Path) -> None:
    """A heuristic that finds nothing proves nothing: exit code 3, not 1."""
    (tmp_path / "tiny.yaml").write_text(CLUSTER.replace("2GiB", "64MiB").replace("4GiB", "64MiB"))
    done = cli("plan", "model.yaml", "tiny.yaml", "-f", "greedy")
    assert done.code == 3 and "UNKNOWN" in done.out


def test_mistakes_in_inputs_come_before_an_existing_plan(cli: Cli, planned: Path) -> None:
    """Whoever edits and tries again sees them all; a name is suggested among models alone."""
    planned.with_name("cluster2.yaml").write_text(MODEL.replace("dim: 32", "dmi: 32"))
    done = cli("plan", "cluster2.yaml", "cluster.yaml")
    assert done.code == 2 and "did you mean dim?" in done.err
    planned.with_name("cluster2.yaml").unlink()
    assert "did you mean" not in cli("plan", "clusters.yaml", "cluster.yaml").err
    assert "did you mean model.yaml?" in cli("plan", "models.yaml", "cluster.yaml").err
    assert "did you mean cluster.yaml?" in cli("plan", "model.yaml", "clusters.yaml").err


DENSE = """\
name: small
workload:
  batch_per_rank: 512
  dense_part: {forward_ms: 0.1, backward_ms: 0.2, beside_forward_exchange_ms: 0.0001}
tables:
  - {name: users, rows: 1M, dim: 64, pooling_factor: 2}
  - {name: items, rows: 2M, dim: 64, pooling_factor: 20}
  - {name: ads, rows: 10k, dim: 32}
"""


def test_a_pipelined_step(cli: Cli, tmp_path: Path) -> None:
    """Planned, certified, verified (by the stand-alone checker as well), explained and drawn: what
    hides is a row below the ranks, and a plan without it costs no less."""
    (tmp_path / "dense.yaml").write_text(DENSE)
    asked = ("-f", "cpsat", "--objective", "pipelined_step")
    done = cli("plan", "dense.yaml", "cluster.yaml", *asked, "-o", "overlap.json")
    assert done.code == 0, done.err
    assert "pipelined_step" in done.out and "hides" in done.out and "optimal" in done.out.lower()
    assert max(map(len, done.out.splitlines())) <= 100
    assert cli("verify", "overlap.json").code == 0
    assert checker.main(["overlap.json"]) == 0
    document = json.loads((tmp_path / "overlap.json").read_text())
    value = document["outcome"]["objective"]
    assert document["outcome"]["objectives"]["pipelined_step"] == value
    assert cli("plan", "model.yaml", "cluster.yaml", *asked, "-o", "bare.json").code == 0
    plain = json.loads((tmp_path / "bare.json").read_text())["outcome"]["objective"]
    assert plain > value > 0
    assert "pipelined_step" in cli("explain", "overlap.json", "--ask", "why").out
    assert cli("report", "overlap.json", "-o", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "time that nothing hides" in page and "The dense part hides up to" in page


def test_a_change_is_made_once(cli: Cli) -> None:
    """By path, of the model and of the cluster, and the plan has the changed inputs; what is
    reserved is what embeddings lose, to the byte."""
    asked = ("plan", "model.yaml", "cluster.yaml", "-f", "greedy", "--json")
    changes = ("--change", "tables.users.rows=×2", "--change", "cluster.hbm=+1GiB")
    before, after = cli(*asked).json, cli(*asked, *changes).json
    rows = [doc["model"]["tables"][0]["rows"] for doc in (before, after)]
    hbm = [doc["cluster"]["machines"][0]["ranks"][0]["hbm"] for doc in (before, after)]
    assert rows[1] == 2 * rows[0] and hbm[1] == hbm[0] + 2**30
    held = cli(*asked, "--reserve", "hbm_bytes=100MiB").json
    room = [doc["instance"]["resources"][0]["capacity"][0] for doc in (before, held)]
    assert room[0] - room[1] == held["cluster"]["reservations"]["hbm_bytes"] == 100 * 2**20


GROWN = MODEL.replace("rows: 1M", "rows: 1200k") + "  - {name: new, rows: 20k, dim: 32}\n"


def again(cli: Cli, *more: object) -> Done:
    """Plan the model as it is now, from the existing plan."""
    return cli("plan", "model.yaml", "cluster.yaml", "--from", "plan.json", "-o", "b.json", *more)


def test_nothing_changed_nothing_moves(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """The same tables, the same objective, no move, certified."""
    done = again(cli)
    assert done.code == 0, done.err
    before, after = read_plan(planned), read_plan(tmp_path / "b.json")
    assert after.tables == before.tables and after.outcome.objective == before.outcome.objective
    assert after.status == "optimal" and after.outcome.certified_bound == after.outcome.objective
    document = json.loads((tmp_path / "b.json").read_text())
    assert document["moves"]["tables"] == [] and document["moves"]["bytes"] == 0
    assert "moves: 0 tables, 0 B of" in done.out


def test_what_grew_came_and_went(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A re-solve is a plan like any other: it verifies, and exports need nothing more."""
    (tmp_path / "model.yaml").write_text(GROWN.replace("- {name: ads", "- {name: other"))
    done = again(cli, "--max-moved", "0")
    assert done.code == 0, done.err
    plan = read_plan(tmp_path / "b.json")
    assert verify(plan).ok and [t.name for t in plan.tables] == ["users", "items", "other", "new"]
    assert json.loads((tmp_path / "b.json").read_text())["moves"]["new"] == ["other", "new"]
    assert "new: other, new" in done.out
    assert cli("verify", "b.json").code == 0


def test_a_machine_that_is_gone(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """From two ranks to one: tables that were on the lost rank are named."""
    text = (tmp_path / "cluster.yaml").read_text()
    text = text.replace("ranks_per_machine: 2", "ranks_per_machine: 1").replace("2GiB", "6GiB")
    (tmp_path / "cluster.yaml").write_text(text)
    done = again(cli, "--lost", "0")
    assert done.code == 0, done.err
    moves = json.loads((tmp_path / "b.json").read_text())["moves"]
    assert set(moves["displaced"]) <= set(moves["tables"]) and moves["displaced"]


def test_a_plan_of_another_version(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A plan priced by another version is accepted, since everything is priced anew."""
    document = json.loads(planned.read_text())
    document["version"] = "0.0.1"
    planned.write_text(json.dumps(document))
    assert again(cli, "-f", "greedy").code == 0


def test_a_price_on_moves(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """Nothing moves at any price: the sum is the objective; it is certified and verified."""
    done = again(cli, "--move-cost", "1ms/GB")
    assert done.code == 0, done.err
    assert "with moves at" in done.out and "of which 0 ps for moves" in done.out
    done = cli("verify", "b.json")
    assert done.code == 0 and "moves: certified bound" in done.out


#: The large table fills a rank, half of two, or a quarter of four at 0.3% more of the step time.
CUT_MODEL = """\
name: m
workload: {mode: inference, batch_per_rank: 512}
tables:
  - {name: large, rows: 7_000_000, dim: 128, pooling_factor: 1,
     constraints: {modes: HBM_ONLY, sharding_types: [table_wise, column_wise]}}
  - {name: hot, rows: 100_000, dim: 128, pooling_factor: 400,
     constraints: {modes: HBM_ONLY, sharding_types: table_wise}}
"""


def test_a_table_is_cut_where_that_evens_memory(cli: Cli, tmp_path: Path) -> None:
    """It is cut in two because that costs nothing, and in four if 1% of the objective may be given
    up, which the plan says. Whole, it would fill 84% of a rank."""
    (tmp_path / "model.yaml").write_text(CUT_MODEL)
    site = CLUSTER.replace("ranks_per_machine: 2", "ranks_per_machine: 4")
    site = (
        site.replace("profile: h100", "profile: torchrec-default")
        .replace("hbm: 2GiB", "hbm: 4GiB")
        .replace("hbm_percent: 10", "hbm_percent: 0")
    )
    (tmp_path / "cluster.yaml").write_text(site)
    ask = ("plan", "model.yaml", "cluster.yaml", "--time-limit", 5, "--workers", 1, "--json")
    free, given = (
        cli(*ask, "--goals", goals).json for goals in ("even_memory", "step_time:1%,even_memory")
    )
    assert [plan["tables"][0]["column_shards"] for plan in (free, given)] == [2, 4]
    best, less = free["outcome"]["objective"], given["outcome"]["objective"]
    assert free["outcome"]["status"] == "optimal" and best < less <= 1.01 * best
    assert (free["outcome"]["before_goals"], given["outcome"]["before_goals"]) == (None, best)
