"""Bytes and picoseconds of options, by hand."""

import math

import numpy as np
import pytest

from benchmarks.simulator.streams import drawn
from benchmarks.simulator.tiers import Shape, Tiers
from milp_planner.pricing import price
from milp_planner.pricing.popularity import zipf
from milp_planner.pricing.profile import load_profile
from milp_planner.pricing.storage import OVERFLOW_SLOTS
from tests.milp_planner.pricing.build import cluster, cost, entry, model, priced

DYN = {"kind": "dynamicemb", "rows": 8192, "dim": 128, "optimizer": "adam"}
BAGS = 8 * 512
IN, OUT = 2 * (math.ceil(8 * (512 + 6 * 512**0.5)) + 16 * BAGS), BAGS * 128 * 4
"""Row-wise buffers of one rank: two batches of 512 ids plus six deviations of sqrt(512), length
and offset of each bag, and a pooled output for each bag."""


def test_dynamicemb_modes_on_eight_ranks() -> None:
    """1,024 rows of 1,536 bytes per rank; metadata 21 bytes per slot , 4 per bucket, all in HBM."""
    options = priced(DYN)
    e = options.entries
    hbm_only = entry(options, "row_wise/HBM_ONLY/roundrobin")
    assert e.hbm[hbm_only] == 1024 * (1536 + 21) + 4 * 8 + IN
    assert (e.ddr[hbm_only], e.buffer[hbm_only]) == (0, OUT)
    host = entry(options, "row_wise/HOST_ONLY/roundrobin")
    assert e.hbm[host] == 1024 * 21 + 4 * 8 + IN
    assert e.ddr[host] == 1024 * 1536
    cached = entry(options, "row_wise/CACHING/0.5/roundrobin")
    slots = 1024 + OVERFLOW_SLOTS
    assert e.hbm[cached] == slots * (1536 + 21) + 4 * 4 + 1024 * 21 + 4 * 8 + IN
    assert e.ddr[cached] == 1024 * 1536
    hybrid = entry(options, "row_wise/HYBRID/0.5/roundrobin")
    assert e.ddr[hybrid] == 512 * 1536
    assert e.move[host] == e.move[cached] == 1024 * 1536


def test_admission_counter() -> None:
    """It is in every rank's HBM."""
    plain, rich = priced(DYN), priced({**DYN, "admission_capacity": 10**6})
    name = "row_wise/CACHING/0.5/roundrobin"
    assert rich.entries.hbm[entry(rich, name)] == plain.entries.hbm[entry(plain, name)] + 17_003_907


def test_an_external_store_takes_the_host_tiers_place() -> None:
    """A cached table has its cache and that cache's keys in HBM, a table in the store nothing but
    its exchange; neither has DDR. HYBRID and HBM_ONLY are as without it."""
    plain, outside = priced(DYN), priced({**DYN, "external_storage": "ps"})
    slots = 1024 + OVERFLOW_SLOTS
    for name, hbm in (
        ("row_wise/CACHING/0.5/roundrobin", slots * (1536 + 21) + 4 * 4 + IN),
        ("row_wise/HOST_ONLY/roundrobin", IN),
    ):
        at = entry(outside, name)
        assert (outside.entries.hbm[at], outside.entries.ddr[at]) == (hbm, 0)
        assert outside.entries.cost[at].tolist() == plain.entries.cost[at].tolist()
    for name in ("row_wise/HYBRID/0.5/roundrobin", "row_wise/HBM_ONLY/roundrobin"):
        at = entry(outside, name)
        assert outside.entries.hbm[at] == plain.entries.hbm[at]
        assert outside.entries.ddr[at] == plain.entries.ddr[at]


def test_torcheasyrec_storage_is_the_published_formula() -> None:
    """1,024 rows at x = 1/2 with that planner's own buffers: no codec, no skew, no dedup."""
    options = priced(DYN, storage_model="torcheasyrec", codec_peak_factor=2.5)
    e = options.entries
    hybrid = entry(options, "row_wise/HYBRID/0.5/roundrobin")
    assert e.hbm[hybrid] == 512 * 1536 + 17 * 1024 + 4 * 8 + 512 * 8
    assert (e.ddr[hybrid], e.buffer[hybrid]) == (512 * 1536, OUT)


def test_inference_keeps_no_optimizer_state() -> None:
    """A row takes 512 instead of 1,536 bytes; a TorchRec table takes its weights alone."""
    options = priced(DYN, {"rows": 1000, "optimizer": "adam"}, mode="inference")
    host = entry(options, "row_wise/HOST_ONLY/roundrobin")
    assert options.entries.ddr[host] == 1024 * 512
    whole = entry(options, "table_wise/HOST_ONLY", 1)
    assert options.entries.ddr[whole] == 1000 * 64 * 4


def test_stated_codec_peak_multiplies_the_output_buffer() -> None:
    """3 times the output if it is encoded; in fp32 there is one copy."""
    options = priced({}, codec_peak_factor=3.0, exchange_dtype="fp16")
    sent = 512 * 8 * 64 * 4
    assert options.entries.buffer[entry(options, "table_wise/HBM_ONLY")] == 3 * sent
    assert options.entries.buffer[entry(options, "data_parallel/HBM_ONLY")] == 1000 * 64 * 4
    plain = priced({}, codec_peak_factor=3.0)
    assert plain.entries.buffer[entry(plain, "table_wise/HBM_ONLY")] == 2 * sent
    alone = priced({}, ranks=1, codec_peak_factor=3.0, exchange_dtype="fp16")
    assert alone.entries.buffer[entry(alone, "table_wise/HBM_ONLY")] == 0


@pytest.mark.usefixtures("even_batches")
def test_hot_rows_swell_the_buffers_of_sequences() -> None:
    """At 2.8 times the mean, a row-wise sequence's embeddings take 2.8 times the memory."""
    skew = {"max_over_mean": 2.8, "ranks": 8}
    hot = {"kind": "unknown", "peak_skew": skew}
    seq = {"rows": 8000, "output": "sequence", "sequence_length": 100}
    options = priced({**seq, "access": hot}, seq)
    high, low = (entry(options, "row_wise/HBM_ONLY", t) for t in (0, 1))
    e, ids = options.entries, 512 * 100
    assert e.buffer[low] == 2 * ids * 64 * 4
    assert e.buffer[high] == pytest.approx(2.8 * 2 * ids * 64 * 4)
    assert e.hbm[high] - e.hbm[low] == pytest.approx(2 * 2 * 1.8 * ids * 8)
    cut, other = (entry(options, "column_wise:2/HBM_ONLY", t) for t in (0, 1))
    assert e.buffer[cut] == e.buffer[other] == 2 * 8 * ids * 32 * 4
    assert (e.cost[high] == e.cost[low]).all()  # time follows the mean


def test_hot_rows_leave_pooled_outputs_alone() -> None:
    """A sample has one partial sum however many rows it adds up; only the ids grow."""
    zipf = {"kind": "zipf", "alpha": 1.5}
    options = priced({"rows": 8000, "access": zipf}, {"rows": 8000})
    hot, even = (entry(options, "row_wise/HBM_ONLY", t) for t in (0, 1))
    assert options.entries.buffer[hot] == options.entries.buffer[even]
    assert options.entries.hbm[hot] > options.entries.hbm[even]


def test_known_hot_id_fills_its_owner_only() -> None:
    """Of eight ranks, the one that owns the id needs more and the others less."""
    hot = {"kind": "top_ids", "ids": [{"share": 0.5, "id": 3500}]}
    seq = {"rows": 8000, "output": "sequence", "sequence_length": 100, "access": hot}
    options = priced(seq)
    at = entry(options, "row_wise/HBM_ONLY")
    assert options.entries.repeat[at : at + 3].tolist() == [3, 1, 4]
    mean = 2 * 512 * 100 * 64 * 4
    deviations = [(f, 600 * (100 * f * 512 * 100) ** 0.5 / 100 / 51_200) for f in (0.5, 4.5, 0.5)]
    expected = [pytest.approx((f + more) * mean) for f, more in deviations]
    assert options.entries.buffer[at : at + 3].tolist() == expected


def test_without_hbm_everything_is_ddr() -> None:
    """Rows, metadata and buffers of a CPU-only rank are charged to its machine's DDR."""
    options = price(model(DYN), cluster(1, 8, hbm=0))
    at = entry(options, "row_wise/HOST_ONLY/roundrobin")
    assert options.entries.hbm[at] == options.entries.buffer[at] == 0
    assert options.entries.ddr[at] == 1024 * (1536 + 21) + 4 * 8 + IN + OUT  # as for an exchange


def test_empty_shards_need_nothing() -> None:
    """With three rows on eight ranks, five ranks hold no byte."""
    options = priced({"rows": 3})
    at = entry(options, "row_wise/HBM_ONLY")
    assert options.entries.rows[at : at + 2].tolist() == [1, 0]
    assert options.entries.hbm[at + 1] == options.entries.buffer[at + 1] == 0


GIB = 2**30
LOOKED_UP = {"kind": "dynamicemb", "rows": 8192, "dim": 128, "pooling_factor": 10.0}
A2A = 400e9 * 8 / 7
"""Bandwidth of an all-to-all (or reduce-scatter) of eight ranks at 400 GB/s each."""


def test_dynamicemb_row_wise_by_hand() -> None:
    """Forward, reduce-scatter, twice forward, all-gather and copy, at 897/10 GiB/s."""
    ids, sent, bandwidth = 5120, 512 * 8 * 128 * 4, 89.7 * GIB
    forward = (8 * ids + ids * 512 + sent) / bandwidth
    scatter = sent / A2A
    expected = [forward, scatter, 2 * forward, scatter + 2.455 * sent / bandwidth, 0]
    found = cost(priced(LOOKED_UP), "row_wise/HBM_ONLY/roundrobin")
    assert found.tolist() == pytest.approx([1e12 * s for s in expected], abs=1)


def test_caching_is_slower_by_the_curve() -> None:
    """Compute scales with the mode's bandwidth; the exchange does not change."""
    options = priced(LOOKED_UP)
    fast, slow = (cost(options, f"row_wise/{m}/roundrobin") for m in ("HBM_ONLY", "CACHING/0.5"))
    x_eff = 0.3102  # half of the rows, in a bucket of 1024 slots on every rank: all of them
    assert slow[0] / fast[0] == pytest.approx(897 / (x_eff * 897 + (1 - x_eff) * 32), rel=1e-6)
    assert slow[1] == fast[1]


def test_half_precision_halves_the_wire() -> None:
    """fp16 halves the bytes sent; replicas still write full precision."""
    full, half = priced({}), priced({}, exchange_dtype="fp16")
    for name in ("table_wise/HBM_ONLY", "row_wise/HBM_ONLY"):
        a, b = cost(full, name), cost(half, name)
        assert a[1] == pytest.approx(2 * b[1], abs=1)
    name = "data_parallel/HBM_ONLY"
    assert cost(full, name).tolist() == cost(half, name).tolist()


def test_hot_rows_slow_their_rank() -> None:
    """A row-wise sequence at 2.8 times the mean takes 2.8 times the lookups and the exchange."""
    skew = {"kind": "unknown", "measured_skew": {"max_over_mean": 2.8, "ranks": 8}}
    seq = {"rows": 8000, "output": "sequence", "sequence_length": 100}
    options = priced({**seq, "access": skew}, seq)
    hot, even = (cost(options, "row_wise/HBM_ONLY", t) for t in (0, 1))
    assert hot[:4] / even[:4] == pytest.approx([2.8] * 4, rel=1e-6)
    whole = [cost(options, "table_wise/HBM_ONLY", t) for t in (0, 1)]
    assert whole[0].tolist() == whole[1].tolist()


def test_deduplication_shortens_sequences() -> None:
    """If half of the ids are distinct, everything halves, for sequences only."""
    seq = {"output": "sequence", "sequence_length": 100, "rows": 8000,
           "access": {"kind": "unknown", "unique_fraction": 0.5}}  # fmt: skip
    plain, dedup = priced(seq, {}), priced(seq, {}, dedup=True)
    for table, factor in ((0, 2.0), (1, 1.0)):
        a, b = (cost(options, "table_wise/HBM_ONLY", table) for options in (plain, dedup))
        assert a[:4] / b[:4] == pytest.approx([factor] * 4, rel=1e-6)


def test_inference_has_no_backward() -> None:
    """Both backward phases are 0."""
    options = priced({}, LOOKED_UP, mode="inference")
    assert (options.entries.cost[:, 2:4] == 0).all()
    assert (options.entries.cost[:, 0] > 0).all()


def test_prefetch_is_a_phase_of_cached_tables() -> None:
    """(1 − x) of a step's distinct rows over the host link, an eighth of them per rank."""
    options = priced({"rows": 8000, "pooling_factor": 10.0}, prefetch_pipeline=True)
    distinct = 8000 * (1 - (1 - 1 / 8000) ** (512 * 8 * 10))
    found = cost(options, "row_wise/CACHING/0.3")[4]
    assert found == pytest.approx(1e12 * 0.7 * distinct / 8 * 256 / (32 * GIB), rel=1e-6)
    assert cost(options, "table_wise/CACHING/0.3")[4] == pytest.approx(8 * found, rel=1e-6)
    assert cost(options, "table_wise/HBM_ONLY")[4] == 0
    plain = priced({"rows": 8000, "pooling_factor": 10.0})
    assert (plain.entries.cost[:, 4] == 0).all()


@pytest.mark.parametrize("strategy", ["timestamp", "lfu"])
@pytest.mark.parametrize("batch", [32, 2048])
def test_prefetch_counts_the_misses_of_a_simulated_cache(strategy: str, batch: int) -> None:
    """The distinct rows that a simulated cache of two fifths of the rows lacks, within a tenth."""
    rows, lookups = 20_480, batch * 8 * 4
    table = {"rows": rows, "kind": "dynamicemb", "dim": 64, "pooling_factor": 4.0,
             "access": {"kind": "zipf", "alpha": 0.9}, "score_strategy": strategy,
             "constraints": {"modes": "CACHING", "cache_ratios": [0.4]}}  # fmt: skip
    options = priced(table, prefetch_pipeline=True, batch_per_rank=batch)
    misses = cost(options, "row_wise/CACHING/0.4/roundrobin")[4] / 1e12 * 32 * GIB / 256 * 8
    generator = np.random.default_rng(0)
    stream, ids = drawn(zipf(rows, 0.9)), generator.permutation(rows)
    tiers = Tiers(Shape("CACHING", rows * 2 // 5, frequency=strategy == "lfu"), np.arange(rows))
    for _ in range(20 * rows // lookups + 4):
        tiers.step(ids[stream.draw(lookups, generator)])
    steps = [tiers.step(ids[stream.draw(lookups, generator)]) for _ in range(8)]
    simulated = np.mean([(step.unique - step.unique_hits)[0] for step in steps])
    assert misses == pytest.approx(simulated, rel=0.1)


def test_one_rank_exchanges_nothing() -> None:
    """A single rank has neither exchange nor copy; a replica still updates its rows."""
    options = priced({}, LOOKED_UP, ranks=1)
    exchanged = [o for o, name in enumerate(options.names) if "data_parallel" not in name]
    assert (options.entries.cost[options.entries.first[exchanged]][:, [1, 3]] == 0).all()
    assert cost(options, "data_parallel/HBM_ONLY")[3] == pytest.approx(
        1e12 * 1000 * 256 * 9.22 / (897 * GIB / 2), rel=1e-6
    )


def test_launch_time_is_added_to_forward_and_scaled_backward() -> None:
    """Ten microseconds per lookup, twice that in the backward pass."""
    base = load_profile("torchrec-default")
    kernel = base.kernel.model_copy(update={"launch_seconds": 1e-5})
    slow = base.model_copy(update={"kernel": kernel})
    a, b = (cost(price(model({}), cluster(), p), "row_wise/HBM_ONLY") for p in (base, slow))
    assert (b - a).tolist() == pytest.approx([10**7, 0, 2 * 10**7, 0, 0], abs=2)


def test_each_direction_has_its_own_element_type() -> None:
    """One-byte gradients make the way back cheaper; a table's own type takes precedence."""
    full = priced({})
    others = priced({}, exchange_dtype_backward="int8"), priced({"exchange_dtype": "fp16"})
    name, out, back = "table_wise/HBM_ONLY", 1, 3
    base, gradients, own = (cost(options, name) for options in (full, *others))
    assert gradients[out] == base[out]
    assert 4 * gradients[back] == pytest.approx(base[back], abs=4)
    assert [2 * own[i] for i in (out, back)] == pytest.approx([base[out], base[back]], abs=2)


def test_poolings_multiply_ids_and_outputs() -> None:
    """Three poolings per sample of half an id each exchange as three half-filled features."""
    one, three = priced({"pooling_factor": 0.5}), priced({"pooling_factor": 0.5, "num_poolings": 3})
    a, b = (cost(options, "table_wise/HBM_ONLY") for options in (one, three))
    assert b[1] == pytest.approx(3 * a[1], abs=3)
    for profile in ("torchrec-default", "h100-fbgemm"):  # a feature that never occurs
        idle = price(model({"pooling_factor": 0}), cluster(1, 1, profile=profile))
        assert cost(idle, "table_wise/HBM_ONLY").tolist() == [0, 0, 0, 0, 0]
