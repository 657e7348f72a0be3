"""The trade between tiers as a user sees it, end to end: prices, Instance, exact answer.

Results at the prompt and in a notebook: short, escaped, with pictures.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formulations import Settings, solve
from formulations.result.outcome import Outcome, Status
from milp_planner import Cluster, Model, audit, explain, plan
from milp_planner.errors import BadInput
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing import price
from scenarios.compare.call import compare
from tests.milp_planner.features.moves.test_way import CLUSTER, MODEL, today
from tests.milp_planner.pricing.build import cluster, model

DYN = {"kind": "dynamicemb", "rows": 1_000_000, "dim": 128, "optimizer": "adam"}
VALUES = 1_000_064 * 1536
"""Value bytes of the table on one rank, with slots rounded up to 128."""


def planned(*tables: dict[str, Any], hbm: int, ddr: int, **workload: Any) -> Plan:
    """The plan proved best on a single rank with exactly these bytes."""
    site = cluster(1, 1, hbm=hbm, ddr=ddr, profile="a10")
    options = price(model(*tables, **workload), site)
    instance = compile_instance(options)
    return decode(options, instance, answer(instance))


def answer(instance: Any) -> Outcome:
    """The exact model's answer."""
    return solve(instance, "cpsat", Settings(time_limit=30, workers=1))


def test_enough_hbm_takes_hbm_only() -> None:
    """No mode beats HBM_ONLY if HBM is large enough."""
    plan = planned(DYN, hbm=8 * VALUES, ddr=8 * VALUES)
    assert plan.table("t0").mode == "HBM_ONLY"
    assert plan.outcome.status == Status.OPTIMAL


def test_generous_ddr_takes_caching_and_tight_ddr_hybrid() -> None:
    """A cache is faster but keeps every row in DDR; HYBRID keeps there only what HBM does not."""
    hbm = VALUES * 6 // 10
    assert planned(DYN, hbm=hbm, ddr=2 * VALUES).table("t0").mode == "CACHING"
    assert planned(DYN, hbm=hbm, ddr=VALUES * 7 // 10).table("t0").mode == "HYBRID"


def test_no_ddr_leaves_hbm_only_or_nothing() -> None:
    """With DDR 0, HBM_ONLY if it fits, otherwise a proof that nothing does."""
    assert planned(DYN, hbm=4 * VALUES, ddr=0).table("t0").mode == "HBM_ONLY"
    assert planned(DYN, hbm=VALUES // 2, ddr=0).outcome.status == Status.INFEASIBLE


def test_no_hbm_leaves_host_only() -> None:
    """A CPU-only cluster keeps tables of either library in DDR."""
    plan = planned(DYN, {"rows": 1000}, hbm=0, ddr=4 * VALUES)
    assert {t.mode for t in plan.tables} == {"HOST_ONLY"}
    assert plan.outcome.status == Status.OPTIMAL


def test_a_budget_met_to_the_byte_is_taken() -> None:
    """With one byte less the plan changes, so memory is exact."""
    needs = planned(DYN, hbm=8 * VALUES, ddr=0).verdict
    assert needs is not None
    assert needs.loads is not None
    # on one rank every embedding is an activation: 512 samples, and as much again backward
    exact = int(needs.loads.use[0][0]) + 2 * 512 * 128 * 4
    assert planned(DYN, hbm=exact, ddr=0).table("t0").mode == "HBM_ONLY"
    assert planned(DYN, hbm=exact - 1, ddr=0).outcome.status == Status.INFEASIBLE


def test_fused_tables_share_their_ratio_unless_set_free() -> None:
    """If fusion is honoured, two equal tables leave HBM unused that free ones fill."""
    small = {**DYN, "rows": 500_000}
    tables, budget = (DYN, small), {"hbm": VALUES * 9 // 10, "ddr": VALUES * 8 // 10}
    tied, free = planned(*tables, **budget), planned(*tables, **budget, fusion="free")
    groups: dict[str, set[object]] = {}
    for table in tied.tables:
        assert table.fusion_group is not None
        groups.setdefault(table.fusion_group, set()).add(table.cache_ratio)
    assert all(len(ratios) == 1 for ratios in groups.values())
    assert tied.outcome.objective is not None
    assert free.outcome.objective is not None
    assert free.outcome.objective <= tied.outcome.objective


@pytest.mark.usefixtures("even_batches")
@pytest.mark.parametrize("buffers", ["additive", "largest_collective"])
def test_both_buffer_rules_are_solved(buffers: str) -> None:
    """Of two collectives' buffers, additive needs both at once, largest_collective the larger.

    A sequence is permuted before it is sent, and keeps its ids; 512 samples on each of 8 ranks have
    a length and an offset for each table, in two batches.
    """
    seq = {"rows": 8000, "output": "sequence", "sequence_length": 200}
    bags = {"rows": 8000, "constraints": {"sharding_types": ["row_wise"]}}
    limits = {"sharding_types": ["row_wise"], "modes": ["HBM_ONLY"]}
    tables = ({**seq, "constraints": limits}, {**bags, "constraints": limits})
    data = 2 * 1000 * (256 + 4) + 2 * 8 * 512 * (2 * 200 + 1) + 2 * 16 * 8 * 512 * (2 + 1)
    data += 201 * 512 * 256  # bytes that the rank receives
    larger, both = 2 * 200 * 512 * 256, 2 * 200 * 512 * 256 + 8 * 512 * 256
    for hbm, fits in ((data + both, True), (data + both - 1, buffers == "largest_collective"),
                      (data + larger - 1, False)):  # fmt: skip
        options = price(model(*tables, buffers=buffers), cluster(1, 8, hbm=hbm))
        status = answer(compile_instance(options)).status
        assert (status == Status.OPTIMAL) == fits


MANY = {**MODEL, "tables": [{"name": f"<b>{i}", "rows": 1000, "dim": 16} for i in range(300)]}


@pytest.fixture(scope="module")
def best() -> Plan:
    """A plan of 300 tables, whose names look like HTML but are none."""
    return plan(Model.from_dict(MANY), Cluster.from_dict(CLUSTER), formulation="greedy")


def test_results_are_short_and_escaped(best: Plan, tmp_path: Path) -> None:
    """Explanations, comparisons and audits print what the command line prints."""
    small, two = Model.from_dict(MODEL), Cluster.from_dict(CLUSTER)
    quick = Settings(time_limit=2)
    for result, word in (
        (explain(best, "why", time_limit=2), "why: every table's option"),
        (audit(today(tmp_path), small, two, settings=quick), "best plan found"),
        (compare(small, two, formulations=["greedy"], settings=quick), "minimising step_time"),
    ):
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
