"""What TorchRec's planner made of pinned tables, against layouts published by DLRMv4's users.
Eleven tables of 512 columns (mlcommons/training PR 889). The layouts are from the logs and
reports named in docs/from-plan-to-run.md; bytes are without dense part and inputs, as the
planner counts. Shards of no time, as TorchRec places them. What TorchRec's planner chooses by
itself, against layouts published by DLRMv4's users.

The cap that an export states: what runs stays the same while the dense parameters vary.
"""

import random

import pytest

from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec, ShardingType
from milp_planner.integrations.exports.dlrmv4 import DEFAULT_CAP, HBM
from milp_planner.integrations.replay import Pins, Ran, proposals
from milp_planner.integrations.replay.dlrmv4 import DENSE, runs, steady
from milp_planner.integrations.replay.estimate import (
    GIB,
    Asked,
    Bytes,
    Job,
    Perf,
    Shard,
    dense_bytes,
    shards_of,
)
from milp_planner.integrations.replay.greedy import _one_by_one, _Rank, partition, room_of
from scenarios import catalog

ROWS = {
    "item_id": 9_390_624, "artist_id": 1_293_395, "album_id": 3_367_692, "uid": 1_000_001,
    "user_x_artist": 100_000_000, "user_x_album": 40_000_000, "user_x_hour": 24_000_000,
    "item_x_hour": 40_000_000, "artist_x_hour": 32_000_000, "user_x_is_organic": 2_000_000,
    "user_x_artist_x_hour": 40_000_000,
}  # fmt: skip
CUT = ("user_x_artist", "user_x_album", "item_x_hour")
"""The tables that the planner cuts on 8 ranks when nothing is pinned."""


HOSTED = ("user_x_artist_x_hour", "artist_x_hour")
"""The tables in host memory of a run on B200."""
SMALL = ("artist_id", "uid", "user_x_is_organic")
"""The tables cut in a run on MI450."""
ONE, FOUR = Job(8, 8, 512, (2.0, 2.0)), Job(32, 8, 512, (2.0, 2.0))
"""One machine, and four."""


def pinned(
    cut: tuple[str, ...] = (), hosted: tuple[str, ...] = (), rest: ShardingType = "table_wise"
) -> list[Asked]:
    """All tables, some of them column-wise or hosted."""
    return [
        Asked(
            name, rows, 512, 4, "rowwise_adagrad", "column_wise" if name in cut else rest,
            "fused_uvm_caching" if name in hosted else "fused",
        )
        for name, rows in ROWS.items()
    ]  # fmt: skip


def layout(
    job: Job,
    cap: int,
    cut: tuple[str, ...],
    hosted: tuple[str, ...] = (),
    ddr: int = 0,
    dense: int = 0,
) -> tuple[dict[str, tuple[int, ...]], list[int]]:
    """Ranks of every table, and bytes on every rank, with some tables column-wise or hosted."""
    tables = pinned(cut, hosted)
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
    for cap, in_ddr, ddr, printed in (
        (260, (), 0, [73.7, 71.1, 69.7, 69.2, 95.9, 80.6, 65.3, 37.4]),
        (90, HOSTED, 128 * GIB, [73.7, 71.1, 69.7, 69.2, 65.3, 37.4, 35.0, 31.9]),
    ):
        _, held = layout(ONE, cap, CUT, in_ddr, ddr, dense)
        assert [round((each + more) / GIB, 1) for each in held] == printed


def test_four_ranks() -> None:
    """Read from the kernels' own records in a run on MI450: every table's ranks."""
    found, _ = layout(Job(4, 4, 512, (2.0, 2.0)), 260, SMALL)
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
    _, held = layout(ONE, 260, CUT)
    assert gib(held) == [73.3, 70.7, 69.4, 68.8, 95.6, 80.3, 65.0, 37.1]


def test_eight_ranks_at_a_lower_cap() -> None:
    """B200 at 90 GiB with 128 GiB of host memory: two tables in it, on the two ranks of the log."""
    found, held = layout(ONE, 90, CUT, HOSTED, 128 * GIB)
    assert gib(held) == [73.3, 70.7, 69.4, 68.8, 65.0, 37.1, 34.7, 31.6]
    assert found["user_x_artist_x_hour"] == (6,) and found["artist_x_hour"] == (7,)


def test_thirty_two_ranks_cut() -> None:
    """All column-wise: four shards of 128 columns on 4 of 32 ranks, one on each machine."""
    found, _ = layout(FOUR, 260, tuple(ROWS))
    assert found["album_id"] == (7, 15, 23, 31) and found["artist_id"] == (1, 9, 17, 25)
    assert found["item_id"] == (6, 14, 22, 30) and found["user_x_artist"] == (0, 8, 16, 24)


def test_thirty_two_ranks_by_row() -> None:
    """The planner's own choice on 4 machines: all row-wise, 17.5 GiB a rank."""
    tables = pinned(rest="row_wise")
    assert set(partition(tables, FOUR, room_of(260 * GIB, 0, tables, 512)).values()) == {
        tuple(range(32))
    }
    held = sum(shards_of(table, FOUR)[0].storage.hbm for table in tables)
    assert round(held / GIB, 1) == 17.5


def test_shards_of_no_time() -> None:
    """Four ranks of 20 GiB hold 10, 4, 7 and 4 GiB and take 3, 1, 2 and 1 ms; of three shards of 2
    GiB that take no time, rank 1, which stays the first of least time, gets all."""
    full = 20 * GIB
    there = [
        _Rank(number, Bytes(full - held * GIB, 0), Perf(time, 0.0, 0.0, 0.0))
        for number, (held, time) in enumerate([(10, 3.0), (4, 1.0), (7, 2.0), (4, 1.0)])
    ]
    shards = [Shard(Bytes(2 * GIB, 0), Perf(0.0, 0.0, 0.0, 0.0))] * 3
    assert _one_by_one(shards, there, 4) == (1, 1, 1)
    assert [(full - rank.room.hbm) // GIB for rank in there] == [10, 10, 7, 4]


def test_a_grid_goes_round_the_machines() -> None:
    """Four slices of 128 columns on two machines: each takes two; without room there is no plan."""
    grid, job = [Asked("a", 1000, 512, 4, "sgd", "grid_shard", "fused")], Job(4, 2, 512)
    assert partition(grid, job, Bytes(GIB, 0)) == {"a": (0, 1, 2, 3) * 2}
    with pytest.raises(FallsShort, match=r"for a shard of 'a' \(grid_shard\)"):
        partition(grid, job, Bytes(2**20, 0))


KINDS = ("data_parallel", "table_wise", "column_wise", "row_wise")


def free(name: str, rows: int) -> list[Asked]:
    """All that TorchRec's enumerator lists for a table of DLRMv4's with nothing set."""
    return [
        Asked(name, rows, 512, 4, "rowwise_adagrad", kind, kernel)
        for kind in KINDS
        for kernel in (
            ("dense",) if kind == "data_parallel" else ("fused", "fused_uvm", "fused_uvm_caching")
        )
    ]


def chosen(world: int, cap: int) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """Type and ranks of every table, at a cap in GiB and without host memory."""
    spaces = [free(name, rows) for name, rows in ROWS.items()]
    room = room_of(cap * GIB, 0, [own[0] for own in spaces], 512)
    tables, ranks = proposals.plan(spaces, ONE if world == 8 else FOUR, room)
    assert {table.kernel for table in tables} == {"fused"}
    return {table.name: table.sharding_type for table in tables}, ranks


def test_eight_ranks_by_proposals() -> None:
    """8 table-wise and 3 column-wise tables, and the ranks that pinning them gives."""
    kinds, ranks = chosen(8, 260)
    assert {name for name, kind in kinds.items() if kind == "column_wise"} == {*CUT}
    assert {kind for name, kind in kinds.items() if name not in CUT} == {"table_wise"}
    assert ranks == layout(ONE, 260, CUT)[0]


@pytest.mark.parametrize(
    ("world", "cap", "kind"), [(32, 260, "row_wise"), (8, 84, "row_wise"), (8, 90, "column_wise")]
)
def test_one_type_for_all(world: int, cap: int, kind: str) -> None:
    """On 4 machines, and where a cap leaves nothing else, all tables are of one type."""
    assert {*chosen(world, cap)[0].values()} == {kind}


def test_nothing_fits() -> None:
    """The planner's last complaint, as for pinned tables."""
    with pytest.raises(FallsShort, match="its planner finds no rank"):
        chosen(8, 40)


CLUSTER = Cluster.from_dict({
    "name": "drawn", "machines": 1, "ranks_per_machine": 4, "hbm": "80GiB", "ddr": "2TiB",
    "profile": "mi350x", "interconnect": {"intra_machine": "600GB/s"},
})  # fmt: skip


def drawn(seed: int, dense: int) -> tuple[Model, Pins]:
    """Tables of 3 to 20 GiB, whole or cut into columns, with so many bytes of dense parameters."""
    draw = random.Random(seed)
    tables = [
        {"name": f"t{i}", "rows": draw.randint(1_500_000, 10_000_000), "dim": 512,
         "output": "sequence", "sequence_length": 1}
        for i in range(9)
    ]  # fmt: skip
    asked = {
        str(table["name"]): PinSpec(
            mode="HBM_ONLY", sharding_type=draw.choice(["table_wise", "column_wise"])
        )
        for table in tables
    }
    return Model.from_dict({
        "name": "drawn", "workload": {"batch_per_rank": 64}, "tables": tables,
        "outside_embeddings": {"parameter_bytes": dense},
    }), asked  # fmt: skip


def replayed(seed: int, dense: int, cap: str) -> dict[str, PinSpec] | None:
    """What runs with other dense parameters at a cap; None if the trainer would stop."""
    model, asked = drawn(seed, dense)
    try:
        first = next(runs(asked, asked, model, whole_gib(int(cap or DEFAULT_CAP))))
    except FallsShort:
        return None
    return first.pins if first.settings[HBM] == cap else None


def whole_gib(cap: int) -> Cluster:
    """The cluster with as much HBM a rank, so that the first way to run is at this cap."""
    data = CLUSTER.to_dict()
    data["machines"] = [
        {**machine, "ranks": [{**rank, "hbm": cap * 2**30} for rank in machine["ranks"]]}
        for machine in data["machines"]
    ]
    return Cluster.from_dict(data)


def test_the_ranks_hold_at_both_ends_of_what_is_said() -> None:
    """A plan that is said to hold from none to the most does so when replayed; the cap often
    differs from the first that leads to the plan, and then holds where that one does not."""
    dense, whole, moved = 60 * 2**20, 0, 0
    for seed in range(40):
        model, asked = drawn(seed, dense)
        for first in runs(asked, asked, model, CLUSTER):
            kept: Ran = steady(first, asked, model, CLUSTER)
            assert kept.pins == first.pins == replayed(seed, dense, kept.settings[HBM])
            if "0 B to 128.0 MiB" not in kept.kept:
                continue
            whole += 1
            for end in (0, DENSE):
                assert replayed(seed, end, kept.settings[HBM]) == first.pins
            if kept.settings != first.settings:
                moved += 1
                ends = [replayed(seed, end, first.settings[HBM]) for end in (0, DENSE)]
                assert any(each != first.pins for each in ends)
    assert whole > 20 and moved > 5
