"""Ranks that overflow whatever is chosen: by hand, and never if a plan exists."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from milp_planner.plans.compile import compile_instance
from milp_planner.plans.forced import Forced, TableLeast, forced_overflow
from milp_planner.pricing import price
from milp_planner.pricing.outside import capacities
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, model

HOT = {"kind": "unknown", "peak_skew": {"max_over_mean": 2.0, "ranks": 2}}
ROWS: dict[str, Any] = {
    "rows": 1000, "output": "sequence", "sequence_length": 1, "access": HOT,
    "optimizer": "none", "constraints": {"sharding_types": "row_wise", "modes": ["HBM_ONLY"]},
}  # fmt: skip


def test_the_overflow_by_hand() -> None:
    """500 rows of 256 bytes. Of two ranks' 512 ids each rank may get twice the mean, 1,024: 8
    bytes each, and as much for those sent; 16 for each bag of both ranks; two rows of output
    each when they are sent. The replica of the second table holds rows and ids; the third may
    lie elsewhere."""
    replica = {"constraints": {"sharding_types": "data_parallel"}, "rows": 10}
    read = model(ROWS, replica, {"rows": 100}, mode="inference")
    site = cluster(1, 2, hbm="600kB", ddr="0B")
    found = forced_overflow(price(read, site))
    buffers = 2 * (8 * 1024 + 16 * 1024 + 1024 * 256)
    first = TableLeast("t0", 500 * 256 + buffers, buffers)
    second = TableLeast("t1", 10 * 256 + 8 * 512, 8 * 512)
    moment = "forward_send"
    assert found == Forced(
        ranks=(0, 1),
        all_ranks=2,
        moment=moment,
        least=first.least + second.least,
        room=capacities(read, site)[moment][0],
        tables=(first, second),
    )
    assert "t0 685.0 KiB" in str(found)
    assert "on each of all 2 ranks" in str(found)
    assert Forced.from_dict(found.to_dict()) == found


def test_one_rank_alone_is_named() -> None:
    """The first rank has 501 of 1,001 rows, the last of which does not fit."""
    read = model({**ROWS, "rows": 1001}, mode="inference", batch_per_rank=1)
    site = cluster(1, 2, hbm="200kB", ddr="0B")
    found = forced_overflow(price(read, site))
    assert found is None
    tight = cluster(1, 2, hbm=f"{500 * 256 + 600}B", ddr="0B")
    found = forced_overflow(price(read, tight))
    assert found is not None
    assert found.ranks == (0,)
    assert "on rank 0, where" in str(found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["row_wise", "table_wise", "data_parallel"]), min_size=1, max_size=3),
    st.sampled_from([["HBM_ONLY"], ["HBM_ONLY", "HOST_ONLY"]]),
    st.integers(200, 1500),
    st.sampled_from(["0B", "300kB", "1GB"]),
    st.booleans(),
)
def test_nothing_fits_where_a_rank_is_named(
    types: list[str], modes: list[str], hbm: int, ddr: str, both: bool
) -> None:
    """If a rank is named, brute force finds no plan; with row-wise tables in HBM only, it finds one
    if no rank is named."""
    tables = [
        {**ROWS, "rows": 500 * (i + 1), "constraints": {
            "sharding_types": [each, "row_wise"] if both else each, "modes": modes}}
        for i, each in enumerate(types)
    ]  # fmt: skip
    tables = [t for t in tables if "HOST_ONLY" not in modes or "data_parallel" not in str(t)]
    assume(tables)
    options = price(model(*tables), cluster(1, 2, hbm=f"{hbm}kB", ddr=ddr))
    found = forced_overflow(options)
    truth = brute_force(compile_instance(options)).objective
    if found is not None:
        assert truth is None
    elif set(types) == {"row_wise"} and modes == ["HBM_ONLY"]:
        assert truth is not None
