"""What TorchRec's planner chooses by itself, against layouts published by DLRMv4's users."""

from __future__ import annotations

import pytest

from milp_planner.errors import FallsShort
from milp_planner.integrations.replay import proposals
from milp_planner.integrations.replay.estimate import GIB, Asked, Job
from milp_planner.integrations.replay.greedy import room_of
from tests.milp_planner.integrations.replay.test_published import CUT, ROWS, layout

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
    tables, ranks = proposals.plan(spaces, Job(world, min(world, 8), 512, (2.0, 2.0)), room)
    assert {table.kernel for table in tables} == {"fused"}
    return {table.name: table.sharding_type for table in tables}, ranks


def test_eight_ranks() -> None:
    """8 table-wise and 3 column-wise tables, and the ranks that pinning them gives."""
    kinds, ranks = chosen(8, 260)
    assert {name for name, kind in kinds.items() if kind == "column_wise"} == {*CUT}
    assert {kind for name, kind in kinds.items() if name not in CUT} == {"table_wise"}
    assert ranks == layout(Job(8, 8, 512, (2.0, 2.0)), 260, CUT)[0]


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
