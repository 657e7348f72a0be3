"""Tables that have to share a rank, whichever it is."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.types import ParameterConstraints

from formulations import Status
from formulations.runtime.timing import CallTime
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import NoPlan

from .models import Case, bags, bare_option, topology
from .test_planner import FixedEnumerator, planner_for
from .torchrec_checks import assert_torchrec_accepts


def test_they_share_a_rank_and_nothing_else_is_lost() -> None:
    """The pair is on one rank, TorchRec accepts the plan, and only the pairing costs more."""
    case = Case(bags([(200_000, 64)] * 4), topology(2, 2, hbm=130 * 2**20), None, 256, 0.0)
    free, tied = planner_for(case), planner_for(case, together=[("t0", "t3")])
    free.plan(case.module, case.sharders)
    plan = tied.plan(case.module, case.sharders)
    assert plan.plan[""]["t0"].ranks == plan.plan[""]["t3"].ranks
    assert plan.plan[""]["t0"].sharding_type in ("table_wise", "column_wise")
    assert_torchrec_accepts(tied.best_plan, case.reserved())
    assert free.rating is not None and tied.rating is not None
    assert free.rating <= tied.rating * (1 + 1e-9)
    assert tied.problem is not None and tied.outcome is not None
    again = tied.problem.placement_of(tied.best_plan)
    assert tied.outcome.placement is not None
    assert (again.options == tied.outcome.placement.options).all()


@pytest.mark.parametrize("sizes", [(5, 4, 3, 2, 1), (6, 6, 1, 1, 1), (3, 3, 3, 3, 3)])
def test_brute_force(sizes: tuple[int, ...]) -> None:
    """All placements of five tables on three ranks, with two pairs tied or none."""
    options = [bare_option(f"t{i}", [size], perf=float(size)) for i, size in enumerate(sizes)]
    capacity = 8
    case = Case(bags([(1, 4)]), topology(3, hbm=capacity), reserve=0.0)
    best: float | None = None
    for ranks in itertools.product(range(3), repeat=5):
        if ranks[0] != ranks[2] or ranks[1] != ranks[3]:
            continue
        loads = [sum(s for s, r in zip(sizes, ranks, strict=True) if r == k) for k in range(3)]
        if max(loads) <= capacity:
            best = min(best or 99.0, float(max(loads)))
    pairs = [["t0", "t2"], ["t1", "t3"]]
    planner = planner_for(case, enumerator=FixedEnumerator(options), together=pairs)
    if best is None:
        with pytest.raises(NoPlan, match="certified infeasible"):
            planner.plan(case.module, [])
        return
    problem = planner.prepare(case.module, [])
    assert problem is not None
    chosen = planner._solved(problem, CallTime(60))
    assert planner.outcome is not None and planner.outcome.status == Status.OPTIMAL
    assert NoopPerfModel(case.topology).rate(chosen) == pytest.approx(best)


@pytest.mark.parametrize(
    ("together", "sentence"),
    [
        ([("t0",)], "two different tables"),
        (["t0t1"], "two different tables"),
        ([("t0", "tt")], "unknown table 'tt'"),
        ([("t0", "t1"), ("t1", "t2")], "named twice"),
    ],
)
def test_mistakes_are_sentences(together: Any, sentence: str) -> None:
    """Groups of one, unknown tables and tables in two groups."""
    case = Case(bags([(1000, 64)] * 3), topology(2))
    with pytest.raises(BadInput, match=sentence):
        planner_for(case, together=together).plan(case.module, case.sharders)


def test_a_table_that_is_never_whole() -> None:
    """A table that may only be row-wise cannot share a rank."""
    limits = {"t0": ParameterConstraints(sharding_types=["row_wise"])}
    case = Case(bags([(1000, 64)] * 2), topology(2), limits)
    with pytest.raises(BadInput, match="'t0' has no option on a single rank"):
        planner_for(case, together=[("t0", "t1")]).plan(case.module, case.sharders)
