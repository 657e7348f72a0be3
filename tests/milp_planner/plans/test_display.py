"""A plan in a notebook."""

import sys

import pytest

from formulations import Settings
from formulations.result.outcome import standing
from milp_planner import plan
from milp_planner.plans.placement import Plan
from tests.milp_planner.features.small import MODEL, cluster


@pytest.fixture(scope="module")
def found() -> Plan:
    """A plan of the small model."""
    return plan(MODEL, cluster(), formulation="greedy", settings=Settings(time_limit=5))


def test_repr_is_a_few_lines(found: Plan) -> None:
    """The headline, then the tables, however large the Instance is."""
    lines = repr(found).splitlines()
    assert lines[0].startswith(f"Plan of {MODEL.name} on ") and "step_time" in lines[0]
    assert len(lines) <= 10 and f"  {MODEL.tables[0].name}: " in lines[1]


def test_the_headline_says_what_is_certified(found: Plan) -> None:
    """It comes before objective, bound and gap, in the same words, as text and in a notebook."""
    words = standing(found.outcome)
    assert ", certified to " in words or words == "certified optimal"
    for shown in (repr(found), found._repr_html_()):
        assert f": {words}, step_time " in shown


def test_html_is_escaped(found: Plan) -> None:
    """One row per table; names cannot inject markup."""
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + len(found.tables)
    named = found.tables[0].model_copy(update={"name": "<b>x"})
    hostile = Plan(found.model, found.cluster, found.profile, found.instance, found.outcome,
                   (named, *found.tables[1:]))  # fmt: skip
    assert "&lt;b&gt;x" in hostile._repr_html_() and "<td><b>x" not in hostile._repr_html_()


def test_times_have_their_unit(found: Plan) -> None:
    """Milliseconds are picoseconds divided by 10^9."""
    assert found.objective_ms is not None and found.outcome.objective is not None
    assert round(found.objective_ms * 1e9) == found.outcome.objective
    assert found.bound_ms is not None and found.bound_ms <= found.objective_ms
    assert found.gap == found.outcome.gap and found.status == found.outcome.status.value


def test_frame(found: Plan) -> None:
    """One row per table with its bytes and its time on the slowest rank."""
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert list(frame.index) == [t.name for t in found.tables]
    assert (frame["slowest_rank_ms"] > 0).all() and (frame["hbm_bytes"] >= 0).all()


def test_without_pandas(found: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """If pandas is missing, a sentence says what to install."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_frame()
