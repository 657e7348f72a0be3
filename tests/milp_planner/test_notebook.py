"""Results at the prompt and in a notebook: short, escaped, with pictures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from formulations import Settings
from milp_planner import Cluster, Model, Plan, audit, explain, plan
from milp_planner.errors import BadInput
from scenarios.compare.call import compare
from tests.milp_planner.features.moves.test_way import CLUSTER, MODEL, today

MANY = {**MODEL, "tables": [{"name": f"<b>{i}", "rows": 1000, "dim": 16} for i in range(300)]}


@pytest.fixture(scope="module")
def best() -> Plan:
    """A plan of 300 tables, whose names look like HTML but are none."""
    return plan(Model.from_dict(MANY), Cluster.from_dict(CLUSTER), formulation="greedy")


def test_results_are_short_and_escaped(best: Plan, tmp_path: Path) -> None:
    """Explanations, comparisons and audits print what the command line prints."""
    small, two = Model.from_dict(MODEL), Cluster.from_dict(CLUSTER)
    for result, word in [
        (explain(best, "why", time_limit=2), "why: every table's option"),
        (audit(today(tmp_path), small, two, time_limit=3), "best plan found"),
        (
            compare(small, two, formulations=["greedy"], settings=Settings(time_limit=2)),
            "minimising step_time",
        ),
    ]:
        assert word in repr(result)
        assert len(repr(result)) < 20_000
        assert "<b>" not in result._repr_html_()
        assert "<pre" in result._repr_html_()


def test_a_plan_draws_itself(best: Plan) -> None:
    """It has two panels with a bar per phase and rank; a notebook gets a PNG."""
    pytest.importorskip("matplotlib")
    figure = best.plot()
    times, memory = figure.axes
    assert len(times.patches) == len(best.instance.phases) * 2
    tops = [sum(p.get_height() for p in times.patches[rank::2]) for rank in (0, 1)]
    assert max(tops) == pytest.approx(best.outcome.objectives["busiest_rank"] / 1e9)
    assert [line.get_label() for line in memory.lines] == ["HBM of the rank", "DDR of the machine"]
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_plot_says_what_it_lacks(best: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a plan, or without matplotlib, one sentence says so."""
    pytest.importorskip("matplotlib")
    with pytest.raises(BadInput, match="places nothing"):
        replace(best, outcome=best.outcome.with_(placement=None), tables=()).plot()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'milp-planner\[plot\]'"):
        best.plot()
