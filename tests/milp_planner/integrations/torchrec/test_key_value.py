"""Bytes of key-value and virtual tables in the drop-in, by hand and against TorchRec's."""

from __future__ import annotations

from typing import Any

import pytest
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import KeyValueParams

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import MilpShardingPlanner

from .models import bag_sharders, bags, topology

ROWS, DIM = 1_000_000, 128
GIB = 2**30


def stored(kernel: str, key_value: Any = "runtime", **params: Any) -> dict[str, int]:
    """HBM, DDR and SSD of a table-wise table's one shard, in the compiled instance."""
    limits = {
        "t0": ParameterConstraints(
            sharding_types=["table_wise"],
            compute_kernels=[kernel],
            key_value_params=KeyValueParams(**params),
            use_virtual_table="virtual" in kernel,
        )
    }
    planner = MilpShardingPlanner(
        topology=topology(2, hbm=16 * GIB, ddr=16 * GIB),
        batch_size=64,
        constraints=limits,
        key_value=key_value,
    )
    problem = planner.prepare(bags([(ROWS, DIM)]), bag_sharders())
    assert problem is not None
    use = problem.instance.shard_use[0].tolist()
    names = (resource.name for resource in problem.instance.resources)
    return {"ssd": 0} | dict(zip(names, use, strict=True))


@pytest.mark.parametrize("cap", [None, 50])
def test_a_cache_without_a_cap_is_charged(cap: int | None) -> None:
    """TorchRec counts 0 bytes without L1, and the cap with it; the kernel takes a fifth of the
    rows, or less."""
    kernel, slots = "key_value", 200_000 if cap is None else 50 * 2**20 // (32 * 512) * 32
    ours = stored(kernel, max_l1_cache_size=cap, l2_cache_size=3)
    theirs = stored(kernel, "torchrec", max_l1_cache_size=cap, l2_cache_size=3)
    counted = 0 if cap is None else cap * 2**20
    assert ours["hbm"] - theirs["hbm"] == slots * (512 + 16) + 4 * ROWS - counted
    assert (theirs["ddr"], ours["ddr"]) == (0, 2 * slots * (512 + 12) + 5 * GIB)
    assert ours["ssd"] == ROWS * (512 + 8) != theirs["ssd"]


@pytest.mark.parametrize("kernel", ["ssd_virtual_table", "dram_virtual_table"])
def test_virtual_tables_are_charged_for_their_rows(kernel: str) -> None:
    """TorchRec charges them nothing; here rows are on SSD, or in host memory with 32 bytes each."""
    ours, theirs = stored(kernel), stored(kernel, "torchrec")
    assert theirs["ddr"] == theirs["ssd"] == 0
    evicted = 2 * 200_000 * (512 + 12)
    on_ssd = kernel.startswith("ssd")
    assert ours["ssd"] == (ROWS * (512 + 8) if on_ssd else 0)
    assert ours["ddr"] == evicted + (2 * GIB if on_ssd else ROWS * (512 + 32))


def test_only_two_counts_are_known() -> None:
    """Another name is refused with the nearest one."""
    with pytest.raises(BadInput, match="key_value"):
        stored("key_value", "runtimes")
