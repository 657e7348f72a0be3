"""Plans to draw: small solved ones and a large invented one."""

from functools import cache

import numpy as np

from formulations import Block, InstanceBuilder, Placement, Settings, Shard, StoppedBy, Where
from formulations.capacity.budget import Budget
from formulations.result.outcome import found
from milp_planner import plan
from milp_planner.features.explain.answers import Answers, answer
from milp_planner.features.report.page import ReportInfo, report_of
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import Asked
from tests.milp_planner.features.small import MODEL, cluster

LIMITS = Settings(time_limit=60, workers=1)


@cache
def small(hbm: str = "1GiB") -> Plan:
    """The small model on two machines."""
    return plan(MODEL, cluster(2, hbm=hbm), formulation="cpsat", settings=LIMITS)


@cache
def answers() -> Answers:
    """An answer about :func:`small` to every question that the page draws."""
    questions = ("why", "frontier", "smallest", "replan", "sensitivity")
    asked = Asked(budgets=3, limits=(0, 1), draws=2, machines=3)
    return answer(small(), questions, asked, Budget(LIMITS, "cpsat"))


@cache
def explained() -> ReportInfo:
    """The page of :func:`small` with all these answers."""
    return report_of(small(), answers())


@cache
def infeasible() -> ReportInfo:
    """A plan that is infeasible for lack of memory."""
    tiny = plan(MODEL, cluster(1, "32MiB", "32MiB"), formulation="cpsat", settings=LIMITS)
    return report_of(tiny)


@cache
def large(tables: int = 1000, machines: int = 16, ranks: int = 8) -> ReportInfo:
    """1,000 tables on 128 ranks, placed in turn; the quality of the plan does not matter here."""
    grid = [list(range(m * ranks, (m + 1) * ranks)) for m in range(machines)]
    phases = ["fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch"]
    resources = [("hbm", "rank", 160 * 2**30), ("ddr", "machine", 2 * 2**40)]
    builder = InstanceBuilder(grid, phases, resources)
    chosen, places = [], []
    for table in range(tables):
        builder.add_table(f"a_long_table_name_for_feature_{table:04d}")
        size, times = (table % 97 + 1) * 2**27, [10**8 + table * 10**5] * 5
        if table % 3:
            shard = Shard({"hbm": size, "ddr": size * 2}, times)
            builder.add_option(
                "column_wise:2/CACHING/0.3", [Block(Where.ANY_RANK, [shard], count=2)]
            )
            places.append(np.asarray([table % 128, (table * 7) % 128]))
        else:
            shard = Shard({"hbm": size // 64}, times)
            builder.add_option("row_wise/HBM_ONLY", [Block(Where.EVERY_RANK, [shard])])
            places.append(np.arange(128))
        chosen.append(table)
    instance = builder.build()
    placement = Placement(np.asarray(chosen), [[p] for p in places])
    outcome = found(instance, "greedy", placement, StoppedBy.EXHAUSTED)
    base = small()
    return report_of(Plan(base.model, base.cluster, base.profile, instance, outcome, base.tables))
