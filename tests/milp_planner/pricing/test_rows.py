"""How rows are distributed over ranks.

Shards of every option cover the table, once.

TorchRec storage, buffers and the admission counter, against exact fractions.
"""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.inputs import Table
from milp_planner.pricing import Options, price, storage
from milp_planner.pricing.splits import (
    Batch,
    dynamicemb_split,
    torchrec_split,
    whole,
    worst_batch,
)
from tests.milp_planner.pricing.build import cluster, column, model, priced

BATCH = Batch(dedup_lookups=0.0, ids=1e12, ids_a_sample=1.0)
"""So many ids that the worst batch equals the mean one to within a millionth."""


def table(rows: int, **fields: object) -> Table:
    """A narrow table of that many rows."""
    return Table.from_dict({"name": "t", "rows": rows, "dim": 4, **fields})


@given(st.integers(1, 5000), st.integers(1, 300))
def test_torchrec_blocks_cover_the_table(rows: int, ranks: int) -> None:
    """One shard per rank, equal blocks first, all rows together."""
    split = torchrec_split(table(rows), ranks, BATCH)
    shards = np.repeat(split.rows, split.repeat)
    block = -(-rows // ranks)
    expected = [max(0, min(block, rows - r * block)) for r in range(ranks)]
    assert shards.tolist() == expected
    assert all(np.diff(np.append(split.rows, -1)) != 0)


def test_known_ids_make_every_rank_its_own_run() -> None:
    """Only the hot id's owner differs, so there are runs before it, for it, and after it."""
    hot = {"kind": "top_ids", "ids": [{"share": 0.5, "id": 45}]}
    split = torchrec_split(table(80, access=hot), 8, BATCH)
    assert split.repeat.tolist() == [4, 1, 3]
    assert split.rows.tolist() == [10, 10, 10]
    assert split.load == pytest.approx([0.5, 4.5, 0.5])


def test_dynamicemb_shards_have_equal_room() -> None:
    """ceil(rows / ranks) rows on every rank; known ids only change the load."""
    split = dynamicemb_split(table(1001, kind="dynamicemb"), 8, "roundrobin", BATCH)
    assert (split.repeat.tolist(), split.rows.tolist()) == ([1], [126])
    hot = {"kind": "top_ids", "ids": [{"share": 0.5, "id": 9}]}
    split = dynamicemb_split(table(1001, kind="dynamicemb", access=hot), 8, "roundrobin", BATCH)
    assert split.repeat.tolist() == [1, 1, 6]
    assert split.load == pytest.approx([0.5, 4.5, 0.5])


def test_whole_tables_are_one_shard() -> None:
    """All rows at the mean load, in every batch."""
    split = whole(table(77))
    assert split.peak.tolist() == [1.0]
    assert (split.repeat.tolist(), split.rows.tolist(), split.load.tolist()) == ([1], [77], [1.0])


def test_worst_batch_by_hand() -> None:
    """10,000 ids per rank in samples of 100: six deviations of 1,000 more, at most all ids."""
    batch = Batch(0.0, ids=80_000.0, ids_a_sample=100.0)
    assert worst_batch(np.ones(1), 8, batch) == pytest.approx([1.6])
    assert worst_batch(np.ones(1), 8, Batch(0.0, 80.0, 80.0)) == pytest.approx([8.0])
    assert worst_batch(np.ones(1), 8, Batch(0.0, 8e12, 1.0)) == pytest.approx([1.0], abs=1e-5)


def test_peak_skew_is_the_worst_batch() -> None:
    """If measured and more than the deviations, it counts; memory uses it, time the mean."""
    access = {
        "kind": "unknown",
        "measured_skew": {"max_over_mean": 1.5, "ranks": 8},
        "peak_skew": {"max_over_mean": 5.0, "ranks": 8},
    }
    split = torchrec_split(table(80, access=access), 8, Batch(0.0, 80e6, 1.0))
    assert split.load == pytest.approx([1.5])
    assert split.peak == pytest.approx([5.0])


def test_a_worst_batch_before_deduplication_by_hand() -> None:
    """Half of each rank's 1,000 ids go to one of 8 ranks: 500 different ones if 900 of all are, all
    different ones if 400 are, its 100 rows if it has no more; after deduplication, 4 times."""

    def peak(distinct: float, rows: int, deduplication: str = "before") -> float:
        skew = {"max_over_mean": 4.0, "ranks": 8, "deduplication": deduplication}
        access = {"kind": "unknown", "peak_skew": skew}
        batch = Batch(1000.0, 8 * distinct, 1e-9, distinct)
        return float(torchrec_split(table(rows, access=access), 8, batch).peak[0])

    assert peak(900.0, 80_000) == pytest.approx(8 * 500 / 900)
    assert peak(400.0, 80_000) == pytest.approx(8)
    assert peak(400.0, 800) == pytest.approx(8 * 100 / 400)
    assert peak(400.0, 800, "after") == pytest.approx(4)


ACCESSES: list[dict[str, object]] = [
    {"kind": "unknown"},
    {"kind": "unknown", "unique_fraction": 0.02},
    {"kind": "unknown", "unique_fraction": 0.9},
    {"kind": "unknown", "measured_skew": {"max_over_mean": 2.0, "ranks": 4}},
    {"kind": "zipf", "alpha": 1.1},
    {"kind": "zipf", "alpha": 0.9, "hot_ids": [5, 0]},
    {"kind": "histogram", "bins": [[0.1, 0.8], [0.9, 0.2]]},
    {"kind": "top_ids", "ids": [{"share": 0.3, "id": 1}, {"share": 0.1}]},
    {"kind": "miss_rate", "points": [[0.1, 0.5], [0.5, 0.1]]},
    {"kind": "frequency", "curve": "criteo"},
]


KINDS: dict[str, dict[str, Any]] = {
    "torchrec": {},
    "dynamicemb": {"kind": "dynamicemb"},
    "growing": {"kind": "dynamicemb", "init_capacity": 1},
    "virtual": {"key_value": {"virtual": True}},
}
"""What tables can be in: every runtime, in all of its modes."""
DRIVES = {"size": "30TB", "bandwidth": "24GB/s"}
SITES: list[dict[str, Any]] = [
    {}, {"machines": 2}, {"ssd": DRIVES}, {"machines": 2, "ssd": DRIVES},
    {"two_d": {"sharding_group_size": 4, "layout": "strided", "strategy": "fully_sharded"}},
]  # fmt: skip


@settings(max_examples=100)
@given(st.data())
def test_no_worst_batch_reserves_less_than_a_milder_one(data: st.DataObject) -> None:
    """Nor than none, entry by entry of the ledger, however it is stated and measured: of every
    runtime, in all modes and ways to cut, with and without deduplication, whatever the exchange."""
    draw = data.draw
    site = draw(st.sampled_from(SITES))
    kinds = [kind for kind in KINDS if "two_d" not in site or kind == "torchrec"]
    kind = draw(st.sampled_from([k for k in kinds if k != "virtual" or "ssd" in site]))
    fields = {
        **KINDS[kind], "rows": draw(st.sampled_from([2, 3, 500, 40_000, 10**7])), "dim": 64,
        "weighted": draw(st.booleans()) and kind == "torchrec",
        "num_features": draw(st.integers(1, 2)),
        **draw(st.sampled_from([
            {"output": "sequence", "sequence_length": 40.0}, {"pooling_factor": 10.0},
        ])),
    }  # fmt: skip
    access = draw(st.sampled_from(ACCESSES))
    ranks = 8 if "two_d" in site else draw(st.sampled_from([2, 8]))
    wires = st.sampled_from(["fp32", "fp16", "bf16", "fp8", "int8"])
    workload = {
        "dedup": draw(st.booleans()), "batch_per_rank": draw(st.sampled_from([1, 64, 4096])),
        "exchange_dtype": draw(wires), "exchange_dtype_backward": draw(st.none() | wires),
        "codec": draw(st.sampled_from(["stock", "low_memory"])),
        "mode": draw(st.sampled_from(["training", "inference"])),
        "prefetch_pipeline": draw(st.booleans()),
        "storage_model": draw(st.sampled_from(["runtime", "runtime", "torcheasyrec", "rows"])),
        "stash_window_ms": draw(st.sampled_from([None, 1.0])),
    }  # fmt: skip
    run = {
        "ranks": draw(st.sampled_from([2, 8, 32])),
        "deduplication": draw(st.sampled_from(["before", "after"])),
    }
    skews = sorted(draw(st.lists(st.floats(1.0, 40.0), min_size=2, max_size=4)))
    stated = [access, *({**access, "peak_skew": {**run, "max_over_mean": m}} for m in skews)]
    kept = {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0, "activations": "1GiB"}
    place = cluster(ranks=ranks, **site, reservations=kept)
    held = [
        np.repeat(np.column_stack([entries.ledger, entries.ddr]), entries.repeat, axis=0)
        for each in stated
        for entries in [price(model({**fields, "access": each}, **workload), place).entries]
    ]
    assert all((worse >= milder).all() for milder, worse in pairwise(held))


def cells(options: Options, option: int, ranks: int) -> int:
    """Cells of all shards of an option, a shared entry counted for every position."""
    entries, choice = options.entries, options.choices[option]
    lo, hi = int(entries.first[option]), int(entries.first[option + 1])
    each = entries.rows[lo:hi] * entries.columns[lo:hi]
    local = {"row_wise": ranks, "table_row_wise": choice.machine_ranks,
             "grid_shard": choice.machine_ranks * choice.columns}  # fmt: skip
    positions = local.get(choice.sharding, choice.columns)
    if hi - lo == 1:
        return int(each[0]) * positions
    copies = choice.columns if choice.sharding == "grid_shard" else 1
    assert int(entries.repeat[lo:hi].sum()) * copies == positions
    return int((each * entries.repeat[lo:hi]).sum()) * copies


@given(st.integers(1, 3000), st.sampled_from([4, 32, 96, 100, 128, 512]), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_shards_cover_the_table(rows: int, dim: int, machines: int) -> None:
    """Every option but data_parallel places every cell exactly once."""
    options = priced({"rows": rows, "dim": dim}, machines=machines, ranks=4)
    split = [o for o in options.of(0) if options.choices[o].sharding != "data_parallel"]
    assert {options.choices[o].sharding for o in split} >= {"table_wise", "row_wise"}
    for option in split:
        assert cells(options, option, 4 * machines) == rows * dim, options.names[option]


def test_uneven_columns_take_the_rest() -> None:
    """128 columns in widths of 48: two shards of 48 and one of 32."""
    limits = {"column_widths": [48], "sharding_types": ["column_wise"], "modes": ["HBM_ONLY"]}
    entries = priced({"dim": 128, "constraints": limits}).entries
    assert entries.columns.tolist() == [48, 32]
    assert entries.repeat.tolist() == [2, 1]


def test_pinned_shards_are_entries_of_their_own() -> None:
    """Four shards with a rank each; the last is narrower."""
    pin = {"sharding_type": "column_wise", "mode": "HBM_ONLY", "ranks": [0, 0, 5, 1]}
    limits = {"column_widths": [36], "pin": pin}
    entries = priced({"dim": 128, "constraints": limits}).entries
    assert entries.columns.tolist() == [36, 36, 36, 20]
    assert entries.repeat.tolist() == [1, 1, 1, 1]


@given(st.integers(1, 10**9))
def test_admission_counter_is_the_formula(capacity: int) -> None:
    """ceil(align16(capacity) · (17 + 4/bucket)), in exact fractions; buckets of 1024 by default. A
    million slots take 17,003,907 bytes, the published figure."""
    assert storage.admission_counter(1_000_000) == 17_003_907
    slots = -(-capacity // 16) * 16
    for bucket in (1024, 128, 48):
        counted = storage.admission_counter(capacity, bucket)
        assert counted == math.ceil(slots * (17 + Fraction(4, bucket)))
    assert storage.admission_counter(capacity) == storage.admission_counter(capacity, 1024)


def test_state_multiples() -> None:
    """State as a multiple of the weights, as TorchRec counts it: row-wise Adagrad one number a
    row."""
    names = ("none", "sgd", "adam", "adagrad", "other", "rowwise_adagrad")
    found = [storage.state_multiple(name, 64) for name in names]
    assert found == [0, 0, 2, 1, 1, Fraction(1, 64)]


@given(
    st.integers(1, 10**9),
    st.integers(1, 2048),
    st.integers(1, 128),
    st.integers(1, 8),
    st.integers(0, 100),
    st.sampled_from([1, 2, 4]),
)
def test_cache_is_its_share_of_the_tables_cache(
    rows: int, dim: int, parts: int, cuts: int, over: int, element: int
) -> None:
    """ceil(round(table · c) · share), 4 bytes per row and 16 per slot, in exact fractions."""
    shard_rows, shard_columns = -(-rows // parts), -(-dim // cuts)
    shape, table = (column(shard_rows), column(shard_columns)), (column(rows), column(dim))
    part, index = storage.torchrec_cache(shape, table, column(element), (column(over), column(100)))
    ratio = Fraction(over, 100)
    cached = math.floor(rows * dim * element * ratio + Fraction(1, 2))
    share = Fraction(shard_rows * shard_columns, rows * dim)
    assert int(part[0]) == math.ceil(cached * share)
    assert int(index[0]) == 4 * shard_rows + math.ceil(16 * shard_rows * ratio)


@given(st.integers(0, 2**52), st.integers(0, 2**40), st.integers(1, 2**40))
def test_ceil_div_product_survives_products_beyond_64_bits(
    value: int, numerator: int, denominator: int
) -> None:
    """It is exact even if value · numerator overflows."""
    numerator = min(numerator, denominator)
    found = storage.ceil_div_product(column(value), column(numerator), column(denominator))
    assert int(found[0]) == -(-value * numerator // denominator)


def test_buffers_round_up() -> None:
    """Fractional mean ids give whole bytes, rounded up."""
    assert storage.input_bytes(np.array([10.01])).tolist() == [81]
    output = storage.output_bytes(np.array([1.001]), column(64), column(4))
    assert output.tolist() == [257]
