"""The layouts of DLRMv4's facts are what the trainer's planner makes of the settings.

docs/dlrmv4.md and its figure show what the study computes today.
"""

from pathlib import Path

import pytest

from benchmarks.dlrmv4 import page
from benchmarks.dlrmv4.study import MOVED, facts
from milp_planner.inputs.constraints import ShardingType
from milp_planner.integrations.replay.estimate import GIB, Asked, Job
from milp_planner.integrations.replay.greedy import partition, room_of
from tests.milp_planner.integrations.replay.test_published import CUT, ROWS

KINDS = {"row_wise": "row_wise", "table_wise": "table_wise", "column_wise": "column_wise:4"}


def held(job: Job, kinds: dict[str, ShardingType], rest: ShardingType, rank: int) -> dict[str, str]:
    """Sharding of the tables of which a rank holds a part, by the closed form of that planner."""
    tables = [
        Asked(name, rows, 512, 4, "rowwise_adagrad", kinds.get(name, rest), "fused")
        for name, rows in ROWS.items()
    ]
    found = partition(tables, job, room_of(260 * GIB, 0, tables, job.batch))
    return {t.name: KINDS[t.sharding_type] for t in tables if rank in found[t.name]}


def _said(name: str) -> dict[str, str]:
    """A layout of the file, table by table, without those that are nowhere."""
    layout = facts().layouts[name]
    rest = layout.get("others", "nowhere")
    full = {table: layout.get(table, rest) for table in ROWS}
    return {table: kind for table, kind in full.items() if kind != "nowhere"}


@pytest.mark.parametrize(
    ("name", "job", "kinds", "rest", "like"),
    [
        ("row_wise", (32, 8), {}, "row_wise", "item_id"),
        ("two_tables", (32, 8), dict.fromkeys(MOVED, "column_wise"), "row_wise", "album_id"),
        ("all_tables", (32, 8), {}, "column_wise", "artist_id"),
        ("one_node", (8, 8), dict.fromkeys(CUT, "column_wise"), "table_wise", "album_id"),
        (
            "four_ranks", (4, 4),
            dict.fromkeys(("artist_id", "uid", "user_x_is_organic"), "column_wise"), "table_wise",
            "item_id",
        ),
    ],
)  # fmt: skip
def test_a_layout_is_a_rank_of_the_trainers_plan(
    name: str, job: tuple[int, int], kinds: dict[str, ShardingType], rest: ShardingType, like: str
) -> None:
    """Every rank with a part of the table in question holds what the file says; of two tables that
    are alike in rows, either may be meant."""
    world, local = job
    where = Job(world, local, 512, (2.0, 2.0))
    ranks = [r for r in range(world) if like in held(where, kinds, rest, r)]
    assert ranks
    said = sorted((ROWS[table], kind) for table, kind in _said(name).items())
    for rank in ranks:
        found = held(where, kinds, rest, rank)
        assert sorted((ROWS[table], kind) for table, kind in found.items()) == said


def _check(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["page.py", "--check"])
    return page.main()


def test_page_and_figure_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that writes the page's numbers and the figure would change nothing."""
    assert _check(monkeypatch) == 0


def test_what_is_out_of_date_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check notices a number typed into a block, an outdated figure, and a missing one."""
    text = page.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.PAGE.write_text(text.replace("265.8 GiB", "266 GiB"), encoding="utf-8")
    assert _check(monkeypatch) == 1
    page.PAGE.write_text(text, encoding="utf-8")
    assert _check(monkeypatch) == 0
    drawn = page.FIGURE.read_text(encoding="utf-8")
    monkeypatch.setattr(page, "FIGURE", tmp_path / "figure.svg")
    assert _check(monkeypatch) == 1
    page.FIGURE.write_text(drawn.replace("[32, [[", "[8, [[", 1), encoding="utf-8")
    assert _check(monkeypatch) == 1


def test_bars_are_the_needs_of_the_page() -> None:
    """The parts of each bar sum to the need in the table, up to rounding."""
    needs = page.blocks()["needs"]
    for label, parts in page.bars():
        name, codec = label.split("\n")
        [row] = [line for line in needs.splitlines() if line.startswith(f"| {name}")]
        cell = row.split(" | ")[1 if codec.startswith("stock") else 2]
        assert sum(parts) == pytest.approx(float(cell.split(" GiB")[0]), abs=0.4)
