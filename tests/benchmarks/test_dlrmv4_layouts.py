"""The layouts of DLRMv4's facts are what the trainer's planner makes of the settings."""

import pytest

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
