"""Tables in key-value stores: bytes by hand and as TorchRec counts, times, legal options."""

import math
from typing import Any

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import Options, price
from milp_planner.pricing.runtimes import key_value
from tests.corpus import mistakes
from tests.milp_planner.pricing.build import cluster, column, cost, entry, held, model

MIB = 2**20
DRIVES = {"size": "30TB", "bandwidth": "24GB/s"}


def priced(*tables: dict[str, Any], ranks: int = 1, **workload: Any) -> Options:
    """Options on one machine with SSD."""
    return price(model(*tables, **workload), cluster(ranks=ranks, ssd=DRIVES))


@pytest.mark.parametrize(("cap", "sets"), [(None, 15_625), (100, 6_400)])
def test_slots_of_a_cache(cap: int | None, sets: int) -> None:
    """2.5 million rows of 128 floats: slots for a fifth of them, or for 100 MiB, in sets of 32."""
    mebibytes = None if cap is None else column(cap)
    found = key_value.cache_slots(column(2_500_000), column(128), column(4), mebibytes)
    assert found.tolist() == [32 * sets]


def test_bytes_of_a_table_on_ssd() -> None:
    """Cache 256 MB, 16 bytes per slot, state 4 per row; buffers, L2 and memtables in DDR.

    2,500,000 rows, a fifth in HBM: 500,000 slots.
    """
    store = {"l2": "3GiB", "write_buffer": "1GiB"}
    wide = {"rows": 2_500_000, "dim": 128, "key_value": store}
    found = held(priced(wide), "table_wise/SSD/0.2")
    assert (found["weights"], found["cache_index"], found["state"]) == (
        256_000_000, 8_000_000, 10_000_000
    )  # fmt: skip
    assert found["ddr"] == 524_000_000 + 4 * 2**30
    assert found["ssd"] == 2_500_000 * (512 + 8)
    ahead = held(priced(wide, prefetch_pipeline=True), "table_wise/SSD/0.2")
    assert ahead["cache_index"] == 10_000_000
    adam = held(priced({**wide, "optimizer": "adam"}), "table_wise/SSD/0.2")
    assert adam["state"] == 2_500_000 * (4 + 8 * 128)
    asked = held(priced({**wide, "optimizer": "adam"}, mode="inference"), "table_wise/SSD/0.2")
    assert asked["state"] == 0


def test_a_virtual_table_is_charged_for_its_rows() -> None:
    """In host memory each row takes 32 bytes more, on SSD its key; state in rows widens them.

    One row of 64 floats with 4 bytes of state takes 65 elements, padded to 68: 272 bytes.
    """
    table = {"rows": 1_000_000, "key_value": {"virtual": True, "optimizer_in_rows": True}}
    options = priced(table)
    modes = {name.split("/")[1] for name in options.names}
    assert modes == {"CACHING", "SSD"}
    assert {name.split("/")[0] for name in options.names} == {"table_wise", "row_wise"}
    hosted, stored = (held(options, f"table_wise/{mode}/0.2") for mode in ("CACHING", "SSD"))
    slots = 32 * (200_000 // 32)
    assert hosted["weights"] == stored["weights"] == slots * 272
    assert hosted["state"] == stored["state"] == 0
    evicted = 2 * slots * (272 + 12)
    assert hosted["ddr"] == evicted + 1_000_000 * (272 + 32) and hosted["ssd"] == 0
    assert stored["ddr"] == evicted + 2 * 2**30 and stored["ssd"] == 1_000_000 * (272 + 8)


def test_what_is_missed_comes_from_ssd() -> None:
    """A step's 16,384 rows at 3 GB/s take 22.4 ms in blocks of 4 KiB, and as much back in training.

    Rows are equally popular and none is looked up twice in so large a table, so a cache of 1/100
    misses 99 in 100.
    """
    table = {"rows": 10**9, "dim": 64, "pooling_factor": 32.0}
    for mode, ways in (("inference", 1), ("training", 2)):
        options = priced(table, ranks=8, mode=mode, batch_per_rank=512)
        row = entry(options, "row_wise/SSD/0.01")
        missing = 0.99 * 8 * 512 * 32 / 8
        expected = ways * missing * (4096 / 3e9 + 256 / options.profile.host_link)
        assert options.entries.cost[row, 4] / 1e12 == pytest.approx(expected, rel=1e-3)
        assert options.entries.ssd_step[row] == pytest.approx(ways * missing * 4096, rel=1e-3)
        assert pytest.approx(22.4e-3, rel=2e-3) == 16_384 * 4096 / 3e9


def test_l2_takes_what_falls_out_of_hbm() -> None:
    """L2 of half the table saves that share of SSD's traffic, and none of the host link's."""
    rows = 2**20 * 16
    without = {"rows": rows, "dim": 64}
    size = rows // 2 * (256 + 8)
    assert size % 2**20 == 0
    half = {**without, "key_value": {"l2": -(-size // 2**30) * 2**30}}
    share = -(-size // 2**30) * 2**30 // 264 / rows
    traffic = []
    for table in (without, half):
        options = priced(table)
        traffic.append(int(options.entries.ssd_step[entry(options, "table_wise/SSD/0.1")]))
    assert traffic[1] / traffic[0] == pytest.approx((0.9 - share) / 0.9, rel=1e-3)


def test_popular_rows_are_not_fetched() -> None:
    """Under skewed access the same cache misses less often than under even access."""
    table = {"rows": 10**7, "pooling_factor": 20.0}
    even = priced(table)
    skewed = priced({**table, "access": {"kind": "zipf", "alpha": 1.1}})
    one, other = (cost(options, "table_wise/SSD/0.1")[4] for options in (even, skewed))
    assert 0 < other < one / 3


def test_lookups_of_a_store_read_hbm() -> None:
    """A store's forward, exchange and backward cost what HBM_ONLY's cost."""
    options = priced({"rows": 10**6}, ranks=4)
    stored, near = (cost(options, f"row_wise/{mode}") for mode in ("SSD/0.1", "HBM_ONLY"))
    assert stored[:4].tolist() == near[:4].tolist() and near[4] == 0 < stored[4]


def test_ssd_is_offered_where_there_is_some() -> None:
    """Without SSD the options are as before; with SSD there are its options as well."""
    tables = ({"rows": 10**6, "dim": 128}, {"kind": "dynamicemb", "rows": 10**6})
    plain = price(model(*tables), cluster(ranks=4))
    more = priced(*tables, ranks=4)
    assert [n for n in more.names if "/SSD/" not in n] == list(plain.names)
    kept = np.array(["/SSD/" not in name for name in more.names])
    rows = np.repeat(kept, np.diff(more.entries.first))
    for name in ("cost", "ledger", "ddr"):
        left = getattr(more.entries, name)[rows]
        assert (left == getattr(plain.entries, name)).all()
    ratios = [n.split("/")[2] for n in more.names if n.startswith("table_wise/SSD")]
    assert ratios == ["0.01", "0.02", "0.05", "0.1", "0.2"]
    assert not any("data_parallel/SSD" in name for name in more.names)


@pytest.mark.parametrize(("table", "why"), mistakes(__file__, "what no store holds is refused"))
def test_what_no_store_holds_is_refused(table: dict[str, Any], why: str) -> None:
    """A sentence says what FBGEMM's kernel does not support."""
    constraints = {"modes": ["SSD"], **table.get("constraints", {})}
    with pytest.raises(BadInput, match=why):
        priced({**table, "constraints": constraints})


def test_ssd_without_drives_is_refused() -> None:
    """If a table asks for SSD, the error says that the cluster has none."""
    with pytest.raises(BadInput, match="no machine of the cluster has any"):
        price(model({"constraints": {"modes": ["SSD"]}}), cluster(ranks=2))


def test_own_ratios_and_the_workload_s() -> None:
    """A table's own cache ratios apply up to the cache's limit, otherwise the workload's."""
    own = {"constraints": {"cache_ratios": ["1/10", "1/2"], "modes": ["SSD"]}}
    names = priced(own, {"constraints": {"modes": ["SSD"]}}, l1_ratios=["1/25"]).names
    assert {name.split("/", 2)[2] for name in names} == {"0.1", "0.04"}


def test_column_shards_are_on_different_ranks() -> None:
    """A rank has one store per table, so their blocks are distinct; others are not."""
    options = priced({"rows": 10**6, "dim": 128}, ranks=4)
    instance = compile_instance(options)
    for name, want in (("column_wise:2/SSD/0.1", True), ("column_wise:2/HBM_ONLY", False)):
        block = instance.option_blocks[options.index(0, name)]
        assert bool(instance.block_distinct[block]) is want


def test_resources_of_machines_with_ssd() -> None:
    """Size divided by the amplification limits live bytes; traffic is limited only if a step is."""
    machines = [
        {"ddr": "1TB", "ranks": 2, "hbm": "80GiB", "ssd": {**DRIVES, "space_amplification": 3}},
        {"ddr": "1TB", "ranks": 2, "hbm": "80GiB"},
    ]
    data = {**cluster(2, 2).to_dict(), "machines": machines}
    mixed = Cluster.from_dict(data)
    assert mixed.ssd_share == 12e9
    for busy, names in ((None, ["hbm", "ddr", "ssd"]), (0.5, ["hbm", "ddr", "ssd", "ssd_step"])):
        options = price(model({"rows": 10**6}, ssd_step_ms=busy), mixed)
        found = {r.name.partition("@")[0]: r for r in compile_instance(options).resources}
        assert list(found) == names
        assert found["ssd"].capacity.tolist() == [10**13, 0]
    assert found["ssd_step"].capacity.tolist() == [12_000_000, 0]


def test_as_torchrec_counts() -> None:
    """TorchRec's vectors: each shard's cache takes its cap, no DDR, 4 + 16/5 bytes per row.

    10 million rows of 128 floats without optimizer state: 5,192,000,000 bytes of SSD table-wise,
    1,298,000,000 on each of four ranks.
    """
    table = {"rows": 10_000_000, "dim": 128, "optimizer": "none"}
    options = priced(table, ranks=4, storage_model="torcheasyrec", mode="inference")
    for name, ssd, shards in (("table_wise", 5_192_000_000, 1), ("row_wise", 1_298_000_000, 4)):
        found = held(options, f"{name}/SSD/0.01")
        assert (found["ssd"], found["ddr"]) == (ssd, 0)
        assert found["weights"] == math.ceil(100_000 / shards * 512 / MIB) * MIB
    whole = held(options, "table_wise/SSD/0.2")
    assert whole["weights"] == min(math.ceil(2_000_000 * 512 / MIB) * MIB, 2_000_000 * 512)
