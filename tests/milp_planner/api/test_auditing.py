"""``audit``: a plan of ours survives the way through CSV-like rows; others are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulations import Settings
from milp_planner import Model, audit, plan
from milp_planner.api.current import read_current
from milp_planner.errors import BadInput
from milp_planner.placement import Plan
from milp_planner.report.audit import audit_of
from milp_planner.report.terminal.audit import draw_audit
from tests.milp_planner.api.small import MODEL, cluster
from tests.milp_planner.report.test_ranks import drawn

QUICK = Settings(time_limit=10)


def _as_csv(found: Plan, path: Path) -> Path:
    """A plan in the user's own notation."""
    rows = [
        f"{r.table},{r.mode},{r.ratio or ''},{r.sharding_type},"
        f'"{",".join(map(str, r.ranks or ()))}",{r.dist_type or ""},{r.column_width or ""}'
        for r in read_current(found)
    ]
    path.write_text(
        "\n".join(["table,mode,ratio,sharding_type,ranks,dist_type,column_width", *rows])
    )
    return path


@pytest.mark.parametrize("formulation", ["cpsat", "greedy", "mip"])
@pytest.mark.parametrize("hbm", ["4GiB", "1500MiB"])
def test_our_plans_come_back_as_they_are(tmp_path: Path, formulation: str, hbm: str) -> None:
    """Object, and CSV, of any of our plans: the same placement, the same objective, it fits."""
    here = cluster(machines=2, hbm=hbm)
    found = plan(MODEL, here, formulation=formulation, settings=QUICK)
    assert found.outcome.placement is not None
    for source in (found, _as_csv(found, tmp_path / "p.csv")):
        judged = audit(source, MODEL, here, formulation="greedy", settings=QUICK)
        assert judged.verdict.feasible, judged.verdict.violations
        assert judged.objective == found.outcome.objective
        assert judged.as_run is None and judged.distance is not None and judged.distance >= 0


def test_mixed_ratios_in_a_fusion_group_are_named(tmp_path: Path) -> None:
    """A plan the runtime will not honour: said so, with what it becomes."""
    (tmp_path / "p.csv").write_text(
        "table,mode,ratio,sharding_type,ranks\nusers,HBM_ONLY,,table_wise,0\n"
        "items,HBM_ONLY,,table_wise,1\nclicks,CACHING,0.2,row_wise,\nviews,CACHING,0.6,row_wise,\n"
    )
    judged = audit(tmp_path / "p.csv", MODEL, cluster(), formulation="greedy", settings=QUICK)
    assert not judged.verdict.feasible and "fusion group" in judged.verdict.violations[0]
    assert judged.as_run is not None and judged.as_run.feasible
    info = audit_of(judged)
    text = drawn(draw_audit(info, "today"))
    assert "DOES NOT FIT" in text and "gives every table of a fusion group one ratio" in text


def test_hbm_only_joins_the_group_that_can_hold_it(tmp_path: Path) -> None:
    """Beside a CACHING table, an HBM_ONLY table is read as the pair the runtime can run."""
    (tmp_path / "p.csv").write_text(
        "table,mode,ratio,sharding_type,ranks\nusers,HBM_ONLY,,table_wise,0\n"
        "items,HBM_ONLY,,table_wise,1\nclicks,HBM_ONLY,,row_wise,\nviews,HYBRID,0.6,row_wise,\n"
    )
    judged = audit(tmp_path / "p.csv", MODEL, cluster(), formulation="greedy", settings=QUICK)
    assert judged.verdict.feasible, judged.verdict.violations


def test_a_plan_of_other_tables_is_refused() -> None:
    """The first table the model does not know is named."""
    found = plan(MODEL, cluster(), formulation="greedy", settings=QUICK)
    other = Model.from_dict({**MODEL.to_dict(), "tables": MODEL.to_dict()["tables"][:3]})
    with pytest.raises(BadInput, match="table views: the model has no such table"):
        audit(found, other, cluster(), formulation="greedy", settings=QUICK)


def test_an_infeasible_plan_has_nothing_to_audit() -> None:
    """A plan without tables is refused with its status."""
    none = plan(MODEL, cluster(hbm="1MiB", ddr="1MiB"), formulation="greedy", settings=QUICK)
    with pytest.raises(BadInput, match="has no tables"):
        audit(none, MODEL, cluster(), formulation="greedy", settings=QUICK)
