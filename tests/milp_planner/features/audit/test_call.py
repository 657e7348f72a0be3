"""``audit``: our plans come back unchanged through CSV-like rows; other plans are judged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formulations import Settings
from formulations.settings import TracePoint
from milp_planner import Model, audit, plan
from milp_planner.errors import BadInput
from milp_planner.features.audit.call import Audit, audit_of
from milp_planner.features.audit.facts import draw_audit
from milp_planner.inputs.constraints import PinSpec
from milp_planner.plans.placement import Plan
from milp_planner.start.literal import matched
from milp_planner.start.rows import read_start
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster

LIMIT = Settings(time_limit=10)
QUICK: dict[str, Any] = {"formulation": "cpsat", "settings": LIMIT}


def _as_csv(found: Plan, path: Path) -> Path:
    """A plan in the user's own notation."""
    rows = [
        f"{r.table},{r.mode},{r.ratio or ''},{r.sharding_type},"
        f'"{",".join(map(str, r.ranks or ()))}",{r.dist_type or ""},{r.column_width or ""}'
        for r in read_start(found)
    ]
    path.write_text(
        "\n".join(["table,mode,ratio,sharding_type,ranks,dist_type,column_width", *rows])
    )
    return path


def test_the_best_may_be_sought_by_a_heuristic_that_knows_no_rules() -> None:
    """The DP has no axis for what tables of a shared cache may have, and answers all the same."""
    found = audit(plan(MODEL, cluster(), time_limit=5), MODEL, cluster(), formulation="dp")
    assert found.best.objective is not None and found.verdict.feasible


@pytest.mark.parametrize(
    ("formulation", "hbm"), [("cpsat", "1500MiB"), ("greedy", "1500MiB"), ("mip", "4GiB")]
)
def test_our_plans_come_back_as_they_are(tmp_path: Path, formulation: str, hbm: str) -> None:
    """As an object and as CSV, each of our plans has the same placement and objective, and fits."""
    here = cluster(machines=2, hbm=hbm)
    found = plan(MODEL, here, formulation=formulation, settings=LIMIT)
    for source in (found, _as_csv(found, tmp_path / "p.csv")):
        judged = audit(source, MODEL, here, **QUICK)
        assert judged.verdict.feasible, judged.verdict.violations
        assert judged.objective == found.outcome.objective
        assert judged.as_run is None and judged.distance is not None and judged.distance >= 0


def test_mixed_ratios_in_a_fusion_group_are_named(tmp_path: Path) -> None:
    """A plan that the runtime will not honour is named, with what it becomes; an HBM_ONLY table
    joins the fusion group in which the runtime can hold it."""

    def judge(clicks: str, views: str) -> Audit:
        (tmp_path / "p.csv").write_text(
            "table,mode,ratio,sharding_type,ranks\nusers,HBM_ONLY,,table_wise,0\n"
            f"items,HBM_ONLY,,table_wise,1\nclicks,{clicks},row_wise,\nviews,{views},row_wise,\n"
        )
        return audit(tmp_path / "p.csv", MODEL, cluster(), **QUICK)

    joined = judge("HBM_ONLY,", "HYBRID,0.6")
    assert joined.verdict.feasible, joined.verdict.violations
    judged = judge("CACHING,0.2", "CACHING,0.6")
    assert not judged.verdict.feasible and "fusion group" in judged.verdict.violations[0]
    assert judged.as_run is not None and judged.as_run.feasible
    info = audit_of(judged)
    text = drawn(draw_audit(info, "today"))
    assert "DOES NOT FIT" in text and "gives every table of a fusion group one ratio" in text


def test_a_plan_of_other_tables_is_refused() -> None:
    """The first table the model does not know is named."""
    found = plan(MODEL, cluster(), **QUICK)
    other = Model.from_dict({**MODEL.to_dict(), "tables": MODEL.to_dict()["tables"][:3]})
    with pytest.raises(BadInput, match="table views: the model has no such table"):
        audit(found, other, cluster(), **QUICK)


def test_an_infeasible_plan_has_nothing_to_audit() -> None:
    """A plan without tables is refused with its status."""
    none = plan(MODEL, cluster(hbm="1MiB", ddr="1MiB"), **QUICK)
    with pytest.raises(BadInput, match="places nothing"):
        audit(none, MODEL, cluster(), **QUICK)


def test_a_plan_starts_from_today() -> None:
    """Given today's plan, the search never ends above it, and reports improvements."""
    today = plan(MODEL, cluster(), formulation="greedy", settings=LIMIT)
    told: list[TracePoint] = []
    again = plan(
        MODEL, cluster(), today=today, settings=LIMIT, time_limit=5, on_improvement=told.append
    )
    assert again.outcome.objective <= today.outcome.objective
    assert told


def test_every_rank_above_the_best_plan_is_named() -> None:
    """Under busiest_rank, other ranks than the busiest have to change, too."""
    here = cluster(machines=2, hbm="8GiB")
    pins = {
        t.name: PinSpec(mode="HBM_ONLY", sharding_type="row_wise")
        if t.kind == "dynamicemb"
        else PinSpec(mode="HBM_ONLY", sharding_type="table_wise", ranks=(i,))
        for i, t in enumerate(MODEL.tables)
    }
    judged = audit(pins, MODEL, here, objective="busiest_rank", time_limit=5)
    loads = judged.verdict.loads
    cost = loads.cost.sum(axis=1)
    above = {int(r) for r in np.flatnonzero((cost > judged.best.objective) & (cost > cost.mean()))}
    assert above and above <= {slow.rank for slow in audit_of(judged).slow}


def test_one_column_shard_is_a_whole_table(tmp_path: Path) -> None:
    """TorchRec prints a table that it did not cut as column-wise with one rank."""
    rows = ["table,mode,sharding_type,ranks", *(f"{t.name},HBM_ONLY,table_wise,0" for t in
            MODEL.tables if t.kind == "torchrec")]  # fmt: skip
    (tmp_path / "p.csv").write_text("\n".join(rows).replace("table_wise", "column_wise"))
    whole, wrong = matched(read_start(tmp_path / "p.csv"), MODEL.model_copy(
        update={"tables": tuple(t for t in MODEL.tables if t.kind == "torchrec")}))  # fmt: skip
    assert not wrong and {row and row.sharding_type for row in whole} == {"table_wise"}


def test_every_row_that_does_not_belong_is_named_at_once(tmp_path: Path) -> None:
    """An unknown table, an illegal option, ranks that are missing or do not exist: each gets a line
    and a problem."""
    (tmp_path / "p.csv").write_text(
        "table,mode,ratio,sharding_type,ranks\nuser,HBM_ONLY,,table_wise,0\n"
        "items,HBM_ONLY,,table_wise,9\nclicks,HBM_ONLY,,table_wise,0\nusers,HBM_ONLY,,table_wise,\n"
    )
    with pytest.raises(BadInput) as refused:
        audit(tmp_path / "p.csv", MODEL, cluster(), **QUICK)
    lines = str(refused.value).splitlines()
    assert [each.message for each in refused.value.problems] == lines
    for line, told in zip(
        lines,
        ("p.csv:2: table user: the model has no such table;",
         "table clicks: table_wise/HBM_ONLY on 1 ranks is not a legal",
         "p.csv:5: table users: ", "p.csv:3: table items: rank 9 does not exist"),
        strict=True,
    ):  # fmt: skip
        assert told in line


def test_what_is_certified_comes_first() -> None:
    """The distance to the certified bound comes first, then that to a solver's higher bound."""
    today = plan(MODEL, cluster(), formulation="greedy", settings=LIMIT)
    judged = audit(today, MODEL, cluster(), time_limit=5)
    info = audit_of(judged)
    same = replace(info, bound=info.certified_bound)
    text = drawn(draw_audit(same, "today"))
    assert "certified: no plan is below" in text and "proved: " not in text
    beyond = replace(info, bound=info.objective, distance=0.0, bound_method="cpsat")
    beyond = replace(beyond, certified_bound=info.objective // 2, certified_distance=0.5)
    text = drawn(draw_audit(beyond, "today"))
    assert text.index("; distance 50%") < text.index("(cpsat); distance 0")
    none = replace(info, bound=None, certified_bound=None, distance=None, certified_distance=None)
    assert "; no bound is known" in drawn(draw_audit(none, "today"))
