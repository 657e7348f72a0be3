"""Ranks and machines against loads counted by hand.

How many machines would be enough if nothing fits, against enumeration.
"""

import io
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console

from formulations import Block, InstanceBuilder, Placement, Settings, Shard, Where, solve
from formulations.result.check import check
from milp_planner import plan, verify
from milp_planner.features.plan.ranks import draw_ranks, ranks_of
from milp_planner.features.plan.remedies import MOST_TIMES, with_more_machines
from milp_planner.features.plan.shortage import (
    advice,
    draw_shortage,
    shortage_of,
    with_diagnosis,
)
from milp_planner.features.plan.use import Use
from milp_planner.inputs import Cluster
from milp_planner.inputs.changes import changed_at_scale, changed_cluster
from milp_planner.plans.compile import compile_for
from tests.milp_planner.features.example import example, placement
from tests.milp_planner.features.explain.quick import truth
from tests.milp_planner.pricing.build import cluster, model


def drawn(renderable: object, width: int = 100) -> str:
    """The text on a terminal with so many columns."""
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_rank_by_hand() -> None:
    """Rank 2 carries b beside its share of a and is critical only in the first phase."""
    info = ranks_of(example(), placement())
    assert [row.cost for row in info.rows] == [7, 7, 28, 7]
    two = info.rows[2]
    assert two.usage == (Use("hbm", 80, 100, "rank", 2),)
    assert two.phases == (23, 5) and two.critical == (True, True)
    assert info.rows[0].critical == (False, False)
    assert [row.machine for row in info.rows] == [0, 0, 1, 1]


def test_machines_have_their_own_resources_and_their_fullest_rank() -> None:
    """DDR is summed over a machine's ranks; HBM is that of the fullest rank."""
    first, second = ranks_of(example(), placement()).machines
    assert first.usage == (Use("ddr", 10, 50, "machine", 0),)
    assert second.usage == (Use("ddr", 10, 60, "machine", 1),)
    assert first.fullest == (Use("hbm", 10, 100, "rank", 0),)
    assert second.fullest == (Use("hbm", 80, 100, "rank", 2),)
    assert second.cost == 28 and second.phases == (23, 5)


def test_barriers_add_up_to_step_time() -> None:
    """The times of each phase's slowest rank sum to the objective."""
    info = ranks_of(example(), placement())
    assert sum(info.barriers) == check(example(), placement()).objectives["step_time"]


def test_drawing_fits_and_shows_every_rank() -> None:
    """Four ranks, two machines and the row of barriers within 100 columns."""
    text = drawn(draw_ranks(ranks_of(example(), placement())))
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "80 B" in text and "per machine" in text and "max" in text


def _wide(ranks: int, everything: bool = False) -> str:
    builder = InstanceBuilder(
        [range(i, i + 8) for i in range(0, ranks, 8)],
        ["fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch"],
        [("hbm", "rank", 80 * 2**30), ("ddr", "machine", 2**41)],
    )
    builder.add_table("t")
    shard = Shard({"hbm": 123_456_789_012, "ddr": 10**11}, [123_456_789_012] * 5)
    builder.add_option("o", [Block(Where.EVERY_RANK, [shard])])
    info = ranks_of(builder.build(), Placement(np.array([0]), [[np.arange(ranks)]]))
    return drawn(draw_ranks(info, everything))


def test_sixty_four_ranks_fit_unfolded() -> None:
    """Up to 64 ranks have a row each, within 100 columns, large figures included."""
    text = _wide(64)
    assert "folded" not in text and max(len(line) for line in text.splitlines()) <= 100
    assert len([line for line in text.splitlines() if line.strip().startswith("63 ")]) == 1


def test_more_ranks_fold_to_machines() -> None:
    """Above 64 ranks there is a row per machine; above 40 machines the rest is counted."""
    text, everything = _wide(512), _wide(512, everything=True)
    assert "512 ranks folded" in text and "… and 24 less busy machines" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert len(text.splitlines()) < 60
    assert "folded" not in everything and "511" in everything


def test_eighty_columns_show_every_figure_whole() -> None:
    """Four phases and a memory with large figures: nothing is cut."""
    info = ranks_of(example(), placement())
    usage = tuple(replace(u, used=150 * 2**30, capacity=150 * 2**30) for u in info.rows[0].usage)
    phases = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch")
    times = (1_234_000_000,) * 5
    row = replace(
        info.rows[0], usage=usage[:1], phases=times, cost=sum(times), critical=(True,) * 5
    )
    wide = replace(info, phases=phases, rows=(row,), barriers=times, time_unit="ps")
    text = drawn(draw_ranks(wide), 80)
    assert "…" not in text and text.count("150.0 GiB") == 2 and text.count("1.234") == 10


#: A batch so small that the exchange's buffers fit beside the tables.
SMALL: dict[str, Any] = {"mode": "inference", "batch_per_rank": 1}
LIMITS = Settings(time_limit=20, workers=1)
WHOLE = {"modes": ["HBM_ONLY", "HOST_ONLY"], "sharding_types": "table_wise"}


@settings(max_examples=8, deadline=None)
@given(
    hbm=st.integers(60, 300), ddr=st.integers(60, 300),
    rows=st.lists(st.integers(1, 5), min_size=2, max_size=3),
)  # fmt: skip
def test_the_number_is_the_least_with_a_plan(hbm: int, ddr: int, rows: list[int]) -> None:
    """Machines of one rank; tables of 64 kB to 320 kB, whole, in HBM or in DDR. If three machines
    are not enough, no number is."""
    read = model(*({"rows": 250 * n, "constraints": WHOLE} for n in rows), **SMALL)
    site = cluster(1, 1, hbm=f"{hbm}kB", ddr=f"{ddr}kB", interconnect=None)
    linked = cluster(1, 1, hbm=f"{hbm}kB", ddr=f"{ddr}kB")
    does = [
        truth(
            compile_for(read, changed_cluster(linked, {"machines": n}), "total").instance
        ).objective
        is not None
        for n in (1, 2, 3)
    ]
    assume(not does[0])
    instance = compile_for(read, site, "total").instance
    outcome = with_diagnosis(instance, solve(instance, "cpsat", LIMITS), LIMITS)
    info = shortage_of(with_more_machines(outcome, read, site, LIMITS, 20).detail)
    enough = does.index(True) + 1 if any(does) else None
    assert info is not None and info.machines == enough
    assert info.machines_too_few == (MOST_TIMES if enough is None else enough - 1)


def test_plan_says_how_many_machines_would_do() -> None:
    """Five tables fill a rank each: five machines of one rank have a plan, four have none, and the
    sentence says so."""
    read = model(*[{"rows": 1000, "constraints": WHOLE}] * 5, **SMALL)
    site = cluster(1, 1, hbm="300kB", ddr="0B")
    none = plan(read, site, formulation="cpsat", settings=LIMITS)
    info = shortage_of(none.outcome.detail)
    assert info is not None and (info.machines, info.machines_too_few) == (5, 4)
    said = "or 5 machines like this one would do, for the same global batch (proved: one less is "
    said += "too few)"
    assert said in list(advice(info, "ps"))
    assert "each tier after reservations, with the others" in drawn(draw_shortage(info))
    assert plan(
        read, changed_cluster(site, {"machines": 5}), formulation="cpsat", settings=LIMITS
    ).tables
    assert not plan(
        read, changed_cluster(site, {"machines": 4}), formulation="cpsat", settings=LIMITS
    ).tables
    assert verify(none).ok


def test_machines_of_several_kinds_have_no_kind() -> None:
    """If machines differ, no number of them is tried."""
    data = cluster(2, 1, hbm="300kB", ddr="0B").to_dict()
    data["machines"][1]["ddr"] = 2048
    read = model(*[{"rows": 1000, "constraints": WHOLE}] * 5, **SMALL)
    none = plan(read, Cluster.from_dict(data), formulation="cpsat", settings=LIMITS)
    info = shortage_of(none.outcome.detail)
    assert info is not None and info.machines_now is None
    assert not any("machines like" in line for line in advice(info, "ps"))


def test_more_machines_share_the_global_batch() -> None:
    """Each takes its part, rounded up, unless another batch is asked for as well."""
    read = model({"rows": 1000, "constraints": {"sharding_types": "row_wise"}}, batch_per_rank=4096)
    whole = cluster(1, 2, hbm="8MiB", ddr="0B")
    larger, place = changed_at_scale(read, whole, {"machines": 2})
    assert (larger.workload.batch_per_rank, place.num_ranks) == (2048, 4)
    same, _ = changed_at_scale(read, whole, {"batch": 100, "machines": 3})
    assert same.workload.batch_per_rank == 100
    odd, _ = changed_at_scale(read, whole, {"machines": 3})
    assert odd.workload.batch_per_rank == 1366
