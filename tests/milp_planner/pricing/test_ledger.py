"""The ledger: every entry by hand, the moments of a step, and the room that they leave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.inputs import Workload
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing.buffers import batches_in_flight
from milp_planner.pricing.entries import (
    BACKWARD_SEND,
    DENSE,
    FORWARD_SEND,
    MOMENTS,
    SHARD_ENTRIES,
    SHARD_NAMES,
    UPDATE,
    alive_outside_exchange,
    binding,
)
from milp_planner.pricing.outside import at_moment, capacities, exchange_bytes, outside
from tests.milp_planner.pricing.build import cluster, held, model, priced

pytestmark = pytest.mark.usefixtures("even_batches")
#: 1,000 ids per rank in sequences of two, rows of 64 floats, row-wise Adagrad.
SEQ = {
    "rows": 8000, "output": "sequence", "sequence_length": 2, "optimizer": "rowwise_adagrad",
}  # fmt: skip
FP16 = {"batch_per_rank": 500, "exchange_dtype": "fp16"}


def entries(name: str, **workload: object) -> dict[str, int]:
    """The ledger of an option's first shard, without zeros."""
    found = held(priced(SEQ, **{**FP16, **workload}), name)
    return {n: v for n, v in found.items() if v and n in SHARD_NAMES}


def test_row_wise_in_hbm() -> None:
    """1,000 rows per rank; 1,000 ids return rows, which are permuted: 3.5 with fp16 and its clamp,
    2.5 back."""
    output = 1000 * 64 * 4
    assert entries("row_wise/HBM_ONLY") == {
        "weights": 1000 * 64 * 4,
        "state": 1000 * 4,
        "inputs": 2 * 2 * 8 * 1000,
        "lengths": 2 * 2 * 16 * 500 * 8,
        "output": output,
        "send_buffer": output,
        "encoding": output // 2 + output,
        "gradients": 2 * output + output // 2,
    }


BAGS = {"rows": 8000, "pooling_factor": 2}
AHEAD = {"prefetch_pipeline": True}
DYNAMIC = {"kind": "dynamicemb", "rows": 8192, "dim": 128, "optimizer": "adam"}
IDS, ROWS, SUMS = 8 * 1000, 1000 * 64 * 4, 4000 * 64 * 4
"""Bytes of a rank's ids, of its sequences, and of 4,000 bags, 500 of each rank."""


@pytest.mark.parametrize(
    ("name", "table", "workload", "wanted"),
    [
        # a second copy in fp32, half a copy beside half in fp16, none if clamped
        ("table_wise/HBM_ONLY", BAGS, {"exchange_dtype": "fp32"},
         {"inputs": 2 * 8 * 8000, "lengths": 2 * 16 * 4000, "output": SUMS, "send_buffer": SUMS,
          "gradients": SUMS}),
        ("table_wise/HBM_ONLY", BAGS, {"codec": "low_memory"},
         {"encoding": SUMS // 2, "send_buffer": SUMS // 2}),
        ("table_wise/HBM_ONLY", BAGS, {},
         {"encoding": SUMS + SUMS // 2, "send_buffer": 0, "gradients": SUMS + SUMS // 2}),
        # reduce-scatters read the output: there is no copy to send
        ("row_wise/HBM_ONLY", BAGS, {"exchange_dtype": "fp32"},
         {"send_buffer": 0, "gradients": SUMS}),
        ("row_wise/HBM_ONLY", BAGS, {}, {"gradients": SUMS + SUMS // 2}),
        # without a copy to clamp, a peak of 1.5 times the output; without a codec, it alone
        ("row_wise/HBM_ONLY", SEQ, {"codec": "low_memory"}, {"encoding": ROWS // 2}),
        ("row_wise/HBM_ONLY", SEQ, {"exchange_dtype": "fp32"},
         {"encoding": 0, "gradients": 2 * ROWS}),
        # half the rows, the row-wise state of all, 4 bytes per row and 16 per slot
        ("row_wise/CACHING/0.5", SEQ, {},
         {"weights": ROWS // 2, "state": 4 * 1000, "cache_index": 4 * 1000 + 16 * 500,
          "prefetch": 0}),
        # ids once more, and six times those of one of the passes; three batches, each twice
        ("row_wise/CACHING/0.5", SEQ, AHEAD, {"prefetch": 7 * IDS, "inputs": 3 * 2 * IDS}),
        ("row_wise/CACHING/0.5", SEQ, {**AHEAD, "prefetch_passes": 4},
         {"prefetch": IDS + 6 * IDS // 4}),
        ("row_wise/HBM_ONLY", SEQ, AHEAD, {"prefetch": 0}),
        ("row_wise/HOST_ONLY", SEQ, AHEAD, {"prefetch": 0}),
        ("row_wise/CACHING/0.5", SEQ, {"prefetch_passes": 4}, {"prefetch": 0}),
        # Adam: a third of a row's 1,536 bytes are weights; 21 bytes per slot and 4 per bucket
        ("row_wise/HBM_ONLY/roundrobin", DYNAMIC, {},
         {"weights": 1024 * 512, "state": 1024 * 1024, "metadata": 1024 * 21 + 4 * 8}),
    ],
)  # fmt: skip
def test_entries_by_hand(
    name: str, table: dict[str, object], workload: dict[str, object], wanted: dict[str, int]
) -> None:
    """Of the first shard of a table of sequences, of pooled bags of two ids, of dynamicemb."""
    found = held(priced(table, **{**FP16, **workload}), name)
    assert {entry: found[entry] for entry in wanted} == wanted


def test_host_tables() -> None:
    """The state, but no rows."""
    assert entries("row_wise/HOST_ONLY").keys() == {
        "state", "inputs", "lengths", "output", "send_buffer", "encoding", "gradients",
    }  # fmt: skip


def test_replicas_hold_dense_gradients_and_send_nothing() -> None:
    """Weights, their bucket and gradient; the output's gradient counts as that of activations."""
    assert entries("data_parallel/HBM_ONLY") == {
        "weights": 8000 * 64 * 4,
        "state": 8000 * 4,
        "inputs": 2 * 8 * 1000,
        "gradient_bucket": 8000 * 64 * 4,
        "dense_gradients": 8000 * 64 * 4,
    }


def test_inference_has_no_gradients() -> None:
    """Ids, rows and the forward exchange."""
    found = entries("row_wise/HBM_ONLY", mode="inference")
    assert found.keys() == {
        "weights", "inputs", "lengths", "output", "send_buffer", "encoding",
    }  # fmt: skip
    assert found["inputs"] == 2 * 8 * 1000


def test_what_every_rank_receives() -> None:
    """1,000 embeddings of 256 bytes; half of it arrives, is decoded and put in order."""
    size = 1000 * 64 * 4
    read = model(SEQ, **FP16)
    assert exchange_bytes(read, 8) == {
        "receive_buffer": 0,
        "activations": size,
        "received": size + size // 2,
        "activation_gradients": size,
        "sent_gradients": 2 * size,
        "held_gradients": 0,
    }
    alone = {name: n for name, n in exchange_bytes(read, 1).items() if n}
    assert alone == {"activations": size, "activation_gradients": size}
    rooms = capacities(read, cluster())
    held = [0, 2 * size + size // 2, 2 * size, 3 * size, 0, 0]
    assert [rooms[moment][0] for moment in MOMENTS] == [80 * 2**30 - n for n in held]


def test_what_every_rank_receives_by_codec() -> None:
    """Not encoded: a buffer while owners send. Pooled and clamped: half a copy more is sent."""
    size = 1000 * 64 * 4
    plain = exchange_bytes(model(SEQ, **{**FP16, "exchange_dtype": "fp32"}), 8)
    assert (plain["receive_buffer"], plain["received"]) == (size, size)
    low = exchange_bytes(model(SEQ, codec="low_memory", **FP16), 8)
    assert (low["receive_buffer"], low["sent_gradients"]) == (size // 2, 2 * size)
    bags = exchange_bytes(model({"rows": 8000}, **{**FP16, "batch_per_rank": 1000}), 8)
    assert (bags["sent_gradients"], bags["held_gradients"]) == (2 * size + size // 2, 0)
    assert exchange_bytes(model({"rows": 8000}, batch_per_rank=1000), 8)["held_gradients"] == size


def test_deduplicated_batches_receive_distinct_rows() -> None:
    """If a quarter of the ids are distinct, a quarter is received."""
    access = {"kind": "unknown", "unique_fraction": 0.25}
    less = exchange_bytes(model({**SEQ, "access": access}, dedup=True, **FP16), 8)
    assert less["activations"] == 250 * 64 * 4


def test_batches_in_flight() -> None:
    """One without a pipeline, two in TorchRec's training pipeline, three with prefetch."""

    def flying(**fields: object) -> int:
        return batches_in_flight(Workload.from_dict({"batch_per_rank": 1, **fields}))

    assert flying() == flying(pipeline="sparse_dist") == 2
    assert flying(pipeline="none") == flying(mode="inference") == 1
    assert flying(prefetch_pipeline=True) == 3


def test_outside_says_what_it_assumed() -> None:
    """A sentence says 15%, of which 5 are headroom; if the model states it, nothing is assumed."""
    site = cluster(reservations={"kjt_multiple": 0})
    found = outside(model(SEQ), site, 100_000)
    assert found.entries == {"assumed": 10_000, "headroom": 5_000}
    assert found.assumed is not None
    assert "15%" in found.assumed
    said = model(SEQ).model_copy(update={"outside_embeddings": None})
    stated = cluster(reservations={"kjt_multiple": 0, "outside_embeddings": 7_000})
    assert outside(said, stated, 100_000, own=11) == (
        {"measured": 7_000, "rank": 11, "headroom": 5_000}, None,
    )  # fmt: skip


def test_what_is_reserved_further_by_hand() -> None:
    """Six copies of 1,000 dense bytes, 3 · 8 · 512 · 2 of ids, 77 bytes, and the rank's own 11."""
    site = cluster(
        reservations={"hbm_percent": 5, "dense_parameter_bytes": 1000, "kjt_multiple": 3,
                      "hbm_bytes": 77}
    )  # fmt: skip
    found = outside(model(SEQ), site, 100_000, own=11)
    assert found == (
        {"dense": 6_000, "batch": 3 * 8 * 512 * 2, "further": 77, "rank": 11, "headroom": 5_000},
        None,
    )


def test_fragmentation_comes_on_top() -> None:
    """3% of the HBM beside 15% assumed leave embeddings 82%, and never less than 0."""
    site = cluster(
        hbm=100_000, reservations={"kjt_multiple": 0, "fragmentation": 3, "min_headroom": 5}
    )
    found = outside(model(SEQ), site, 100_000)
    assert found.entries == {"assumed": 10_000, "fragmentation": 3_000, "headroom": 5_000}
    assert site.usable_hbm(model(SEQ)) == (82_000,) * 8
    full = cluster(reservations={"hbm_percent": 60, "fragmentation": 60})
    assert full.usable_hbm(model(SEQ)) == (0,) * 8


ROOMS = st.integers(0, 2000)
USES = st.lists(st.integers(0, 3), min_size=3, max_size=3)


@given(st.lists(st.tuples(USES, ROOMS), min_size=1, max_size=4))
def test_moments_left_imply_the_others(moments: list[tuple[list[int], int]]) -> None:
    """What fits at the kept moments fits at all, and at least one is kept; none is tighter by over
    1/200."""
    use = {str(i): np.array(u) for i, (u, _) in enumerate(moments)}
    room = {str(i): (r, r + 1) for i, (_, r) in enumerate(moments)}
    left = binding(use, room)
    assert left
    rng = np.random.default_rng(0)
    for times in rng.integers(0, 500, (50, 3)):
        inside = all(times @ use[m] <= r[0] for m, r in left.items())
        if inside:
            assert all(times @ use[m] <= room[m][0] for m in use)
    for moment, each in left.items():
        assert all(a >= b - b // 200 for a, b in zip(each, room[moment], strict=True))


def test_moments_are_named_in_the_instance() -> None:
    """The needs of rows' owners and of every rank are two resources."""
    heavy = {"batch_per_rank": 2**20, "exchange_dtype": "fp16"}
    instance = compile_instance(priced(SEQ, **heavy))
    names = [r.name for r in instance.resources]
    assert names == [f"hbm@{FORWARD_SEND}", f"hbm@{BACKWARD_SEND}", "ddr"]
    exchange = exchange_bytes(model(SEQ, **heavy), 8)
    for resource in instance.resources[:2]:
        moment = resource.name.partition("@")[2]
        room = 80 * 2**30 - at_moment(exchange, moment)
        assert room - room // 200 <= resource.capacity[0] <= room
    assert at_moment(exchange, UPDATE) == 0 < at_moment(exchange, DENSE)


def test_every_entry_has_one_column() -> None:
    """If a name occurred twice, one column would stay empty."""
    assert len(set(SHARD_NAMES)) == len(SHARD_NAMES)


def test_what_is_alive_outside_an_exchange() -> None:
    """What every moment or the dense part has, and copies for lookups; no exchange buffers."""
    for moment in MOMENTS:
        found = dict(zip(SHARD_NAMES, alive_outside_exchange(moment).tolist(), strict=True))
        assert found["weights"] == found["inputs"] == found["gradient_bucket"] == 1
        assert found["output"] == found["encoding"] == found["gradients"] == 0
        for entry_ in SHARD_ENTRIES:
            if entry_.name in ("gathered_weights", "padded_weights"):
                assert found[entry_.name] == (moment in entry_.moments), moment
