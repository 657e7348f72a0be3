"""Bytes of options, by hand."""

import math

import pytest

from milp_planner.pricing import price
from milp_planner.pricing.storage import OVERFLOW_SLOTS
from tests.milp_planner.pricing.build import cluster, entry, model, priced

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
