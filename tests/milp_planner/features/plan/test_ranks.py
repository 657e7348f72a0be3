"""Ranks and machines against loads counted by hand."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from formulations import Block, InstanceBuilder, Placement, Shard, Where
from formulations.result.check import check
from milp_planner.features.plan.ranks import draw_ranks, ranks_of
from milp_planner.features.plan.use import Use
from tests.milp_planner.features.example import example, placement


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


def _wide(ranks: int) -> tuple[str, str]:
    builder = InstanceBuilder(
        [range(i, i + 8) for i in range(0, ranks, 8)],
        ["fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch"],
        [("hbm", "rank", 80 * 2**30), ("ddr", "machine", 2**41)],
    )
    builder.add_table("t")
    shard = Shard({"hbm": 123_456_789_012, "ddr": 10**11}, [123_456_789_012] * 5)
    builder.add_option("o", [Block(Where.EVERY_RANK, [shard])])
    instance = builder.build()
    import numpy as np

    info = ranks_of(instance, Placement(np.array([0]), [[np.arange(ranks)]]))
    return drawn(draw_ranks(info)), drawn(draw_ranks(info, everything=True))


def test_sixty_four_ranks_fit_unfolded() -> None:
    """Up to 64 ranks have a row each, within 100 columns, large figures included."""
    text, _ = _wide(64)
    assert "folded" not in text and max(len(line) for line in text.splitlines()) <= 100
    assert len([line for line in text.splitlines() if line.strip().startswith("63 ")]) == 1


def test_more_ranks_fold_to_machines() -> None:
    """Above 64 ranks there is a row per machine; above 40 machines the rest is counted."""
    text, everything = _wide(512)
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
