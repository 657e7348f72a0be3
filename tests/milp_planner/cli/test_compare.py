"""``milp-planner compare``: one Instance, every formulation, every objective."""

from formulations import registry
from tests.milp_planner.cli.conftest import Cli


def test_every_row_is_judged_against_the_best_bound(cli: Cli) -> None:
    """The exact row has gap 0, no row is below the bound, and the check's result is shown."""
    done = cli("compare", "model.yaml", "cluster.yaml", "-f", "cpsat,greedy", "--json")
    assert done.code == 0, done.err
    rows = done.json["rows"]
    assert {(r["label"], r["asked"]) for r in rows} == {
        (label, asked)
        for label in ("cpsat", "greedy")
        for asked in ("total", "busiest_rank", "step_time")
    }
    for row in rows:
        bound = done.json["bounds"][row["asked"]]["bound"]
        assert row["feasible"] and row["objectives"][row["asked"]] >= bound
        if row["label"] == "cpsat":
            assert row["gap"] == 0 and row["status"] == "optimal"


def test_every_formulation_is_compared_by_default(cli: Cli) -> None:
    """README promises every formulation, which includes auto."""
    done = cli("compare", "model.yaml", "cluster.yaml", "--objective", "total",
               "--time-limit", 2, "--json")  # fmt: skip
    assert done.code == 0, done.err
    labels = {row["label"].partition(",")[0] for row in done.json["rows"]}
    assert labels == set(registry.FORMULATIONS)


def test_every_plan_is_shown_as_a_pipelined_step(cli: Cli) -> None:
    """Each row has its plan's value under all four objectives, and minimising one gives the least
    of its column; total and busiest rank are those of the same phases in every section. A section
    an objective is printed, within 100 columns."""
    sections = ("--objective", "step_time", "--objective", "pipelined_step")
    command = ("compare", "model.yaml", "cluster.yaml", "-f", "cpsat,greedy", *sections)
    done = cli(*command, "--json")
    assert done.code == 0, done.err
    rows = done.json["rows"]
    assert {row["asked"] for row in rows} == {"step_time", "pipelined_step"}
    for row in rows:
        values = row["objectives"]
        assert set(values) == {"total", "busiest_rank", "step_time", "pipelined_step"}
        assert values["busiest_rank"] <= values["step_time"]
    for kind in ("step_time", "pipelined_step"):
        best = next(r for r in rows if r["asked"] == kind and r["label"] == "cpsat")
        assert best["objectives"][kind] == min(row["objectives"][kind] for row in rows)
    shown = cli(*command).out
    assert "minimising pipelined_step" in shown and "minimising step_time" in shown
    assert "minimising total" not in shown and "Certified: no plan is below" in shown
    assert max(map(len, shown.splitlines())) <= 100
