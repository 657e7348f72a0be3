"""What TorchRec's planner made of pinned tables, against layouts published by DLRMv4's users.

Eleven tables of 512 columns (mlcommons/training PR 889). The layouts are from the logs and reports
named in docs/from-plan-to-run.md; bytes are without dense part and inputs, as the planner counts.
"""

from __future__ import annotations

from milp_planner.integrations.replay.estimate import GIB, Asked, Job, dense_bytes, shards_of
from milp_planner.integrations.replay.greedy import partition, room_of
from scenarios import catalog

ROWS = {
    "item_id": 9_390_624, "artist_id": 1_293_395, "album_id": 3_367_692, "uid": 1_000_001,
    "user_x_artist": 100_000_000, "user_x_album": 40_000_000, "user_x_hour": 24_000_000,
    "item_x_hour": 40_000_000, "artist_x_hour": 32_000_000, "user_x_is_organic": 2_000_000,
    "user_x_artist_x_hour": 40_000_000,
}  # fmt: skip
CUT = ("user_x_artist", "user_x_album", "item_x_hour")
"""The tables that the planner cuts on 8 ranks when nothing is pinned."""


def layout(
    job: Job,
    cap: int,
    cut: tuple[str, ...],
    hosted: tuple[str, ...] = (),
    ddr: int = 0,
    dense: int = 0,
) -> tuple[dict[str, tuple[int, ...]], list[int]]:
    """Ranks of every table, and bytes on every rank, with some tables column-wise or hosted."""
    tables = [
        Asked(
            name, rows, 512, 4, "rowwise_adagrad",
            "column_wise" if name in cut else "table_wise",
            "fused_uvm_caching" if name in hosted else "fused",
        )
        for name, rows in ROWS.items()
    ]  # fmt: skip
    found = partition(tables, job, room_of(cap * GIB, ddr, tables, job.batch, dense))
    held = [0] * job.world
    for table in tables:
        for rank, shard in zip(found[table.name], shards_of(table, job), strict=True):
            held[rank] += shard.storage.hbm
    return found, held


def gib(held: list[int]) -> list[float]:
    """As the logs print bytes."""
    return [round(each / GIB, 1) for each in held]


def test_the_dense_parameters_that_ship_explain_every_printed_rank() -> None:
    """6 times their bytes, and 20 times the ids of the features, make both logs' 16 figures."""
    model = catalog.find_model("dlrmv4-yambda5b")
    dense = dense_bytes(model, catalog.find_cluster("8xmi350x"))
    assert dense == 60 * 2**20
    more = 6 * dense + 20 * 8 * 512 * len(ROWS)
    hosted = ("user_x_artist_x_hour", "artist_x_hour")
    for cap, in_ddr, ddr, printed in (
        (260, (), 0, [73.7, 71.1, 69.7, 69.2, 95.9, 80.6, 65.3, 37.4]),
        (90, hosted, 128 * GIB, [73.7, 71.1, 69.7, 69.2, 65.3, 37.4, 35.0, 31.9]),
    ):
        _, held = layout(Job(8, 8, 512, (2.0, 2.0)), cap, CUT, in_ddr, ddr, dense)
        assert [round((each + more) / GIB, 1) for each in held] == printed


def test_four_ranks() -> None:
    """Read from the kernels' own records in a run on MI450: every table's ranks."""
    found, _ = layout(Job(4, 4, 512, (2.0, 2.0)), 260, ("artist_id", "uid", "user_x_is_organic"))
    everywhere = (0, 1, 2, 3)
    assert found == {
        "artist_id": everywhere, "uid": everywhere, "user_x_is_organic": everywhere,
        "item_id": (0,), "user_x_artist": (0,),
        "user_x_album": (1,), "artist_x_hour": (1,),
        "user_x_hour": (2,), "item_x_hour": (2,),
        "album_id": (3,), "user_x_artist_x_hour": (3,),
    }  # fmt: skip


def test_eight_ranks() -> None:
    """GiB of the shards on a rank of MI350X."""
    _, held = layout(Job(8, 8, 512, (2.0, 2.0)), 260, CUT)
    assert gib(held) == [73.3, 70.7, 69.4, 68.8, 95.6, 80.3, 65.0, 37.1]


def test_eight_ranks_at_a_lower_cap() -> None:
    """B200 at 90 GiB with 128 GiB of host memory: two tables in it, on the two ranks of the log."""
    hosted = ("user_x_artist_x_hour", "artist_x_hour")
    found, held = layout(Job(8, 8, 512, (2.0, 2.0)), 90, CUT, hosted, 128 * GIB)
    assert gib(held) == [73.3, 70.7, 69.4, 68.8, 65.0, 37.1, 34.7, 31.6]
    assert found["user_x_artist_x_hour"] == (6,) and found["artist_x_hour"] == (7,)


def test_thirty_two_ranks_cut() -> None:
    """All column-wise: four shards of 128 columns on 4 of 32 ranks, one on each machine."""
    found, _ = layout(Job(32, 8, 512, (2.0, 2.0)), 260, tuple(ROWS))
    assert found["album_id"] == (7, 15, 23, 31) and found["artist_id"] == (1, 9, 17, 25)
    assert found["item_id"] == (6, 14, 22, 30) and found["user_x_artist"] == (0, 8, 16, 24)


def test_thirty_two_ranks_by_row() -> None:
    """The planner's own choice on 4 machines: all row-wise, 17.5 GiB a rank."""
    job = Job(32, 8, 512, (2.0, 2.0))
    tables = [
        Asked(name, rows, 512, 4, "rowwise_adagrad", "row_wise", "fused")
        for name, rows in ROWS.items()
    ]
    assert set(partition(tables, job, room_of(260 * GIB, 0, tables, 512)).values()) == {
        tuple(range(32))
    }
    held = sum(shards_of(table, job)[0].storage.hbm for table in tables)
    assert round(held / GIB, 1) == 17.5
