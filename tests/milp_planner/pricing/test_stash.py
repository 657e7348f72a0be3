"""Weights and caches that leave HBM between forward and backward.

Bytes and seconds by hand, twins, what is refused, and that they are chosen where they pay.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from milp_planner import plan, verify
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.integrations.exports import torchrec as export
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import Options, price
from milp_planner.pricing.entries import DENSE, MOMENTS, SHARD_NAMES, UPDATE, alive
from milp_planner.pricing.options import PHASES
from milp_planner.pricing.outside import capacities
from tests.corpus import mistakes
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, cost, entry, held, model

WINDOW = {"stash_window_ms": 20.0}
TABLE = {"rows": 1_000_000, "dim": 128, "optimizer": "adagrad"}


def site(activations: str = "30GiB", **fields: Any) -> Cluster:
    """Eight ranks of 80 GiB with 30 GiB for the dense part alone."""
    kept = {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0, "activations": activations}
    return cluster(reservations=kept, **fields)


def options(*tables: dict[str, Any], **workload: Any) -> Options:
    """The options priced there, with a window of 20 ms."""
    return price(model(*tables, **{**WINDOW, **workload}), site())


def test_a_twin_by_hand() -> None:
    """512,000,000 bytes of weights are an entry of their own, absent in the dense part, and take
    twice as much host memory. State, ids and exchange are those of the table that stays."""
    priced = options(TABLE)
    stays, leaves = (held(priced, f"table_wise/HBM_ONLY{end}") for end in ("", "/stash"))
    assert leaves["state"] == 512_000_000
    assert leaves == stays | {"weights": 0, "stashed": 512_000_000, "ddr": 1_024_000_000}
    assert (stays["weights"], stays["stashed"]) == (512_000_000, 0)


def test_only_the_dense_part_is_without_them() -> None:
    """At every other moment a twin holds as many bytes, and it costs and moves the same."""
    priced = options(TABLE)
    stays, leaves = (entry(priced, f"row_wise/HBM_ONLY{end}") for end in ("", "/stash"))
    ledger = priced.entries.ledger
    less = {m: int((ledger[stays] - ledger[leaves]) @ alive(m)) for m in MOMENTS}
    assert less == {m: 64_000_000 if m == DENSE else 0 for m in MOMENTS}
    assert priced.entries.hbm[stays] == priced.entries.hbm[leaves]
    assert priced.entries.cost[stays].tolist() == priced.entries.cost[leaves].tolist()
    assert priced.entries.move[stays] == priced.entries.move[leaves]


def test_the_window_limits_a_rank() -> None:
    """20 ms at 32 GiB/s allow every rank 687,194,767 stashed bytes, each way."""
    priced = options(TABLE)
    instance = compile_instance(priced)
    at = [r.name for r in instance.resources].index("stash")
    assert instance.resources[at].capacity.tolist() == [687_194_767] * 8
    stashed = priced.entries.ledger[:, SHARD_NAMES.index("stashed")]
    assert instance.shard_use[:, at].tolist() == stashed.tolist()
    assert "stash" not in [r.name for r in compile_instance(price(model(TABLE), site())).resources]


def test_the_dense_part_has_less_room() -> None:
    """Apart from the activations, it has 30 GiB less than the update, which exchanges nothing."""
    rooms = capacities(model(TABLE), site())
    assert rooms[UPDATE][0] == 80 * 2**30
    assert rooms[DENSE][0] == 50 * 2**30 - 2 * 512 * 128 * 4


def names(table: dict[str, Any], **workload: Any) -> set[str]:
    """Names of the options that are stashed."""
    found = options({**TABLE, **table}, **workload)
    return {name for name in found.names if "stash" in name}


def test_what_is_stashed() -> None:
    """TorchRec's tables in HBM_ONLY that are not replicated, in training, with a window, if bytes
    are counted as the runtime's."""
    shapes = {"table_wise", "row_wise", *(f"column_wise:{n}" for n in (2, 4))}
    assert names({}) == {f"{shape}/HBM_ONLY/stash" for shape in shapes}
    assert names({"constraints": {"stash": "never"}}) == set()
    assert names({}, stash_window_ms=None) == set()
    assert names({}, mode="inference") == set()
    assert names({}, storage_model="torcheasyrec") == set()
    assert names({"kind": "dynamicemb"}) == set()
    only = options({**TABLE, "constraints": {"stash": "always"}})
    assert all(name.endswith("/HBM_ONLY/stash") for name in only.names)
    pinned = {"constraints": {"pin": {"stash": True, "sharding_type": "row_wise"}}}
    assert names(pinned) == {"row_wise/HBM_ONLY/stash"}


@pytest.mark.parametrize(("table", "workload"), mistakes(__file__, "asking in vain is refused"))
def test_asking_in_vain_is_refused(table: dict[str, Any], workload: dict[str, Any]) -> None:
    """The sentence says what a stash needs."""
    with pytest.raises(BadInput, match="stash: it needs stash_window_ms in the workload"):
        options({**TABLE, **table}, **workload)


def test_a_stash_that_frees_nothing_is_refused() -> None:
    """Without a reservation for the dense part alone, the error says what to write."""
    with pytest.raises(BadInput, match=r"needed: reservations\.activations"):
        price(model(TABLE, **WINDOW), cluster())


def test_the_twins_are_what_the_table_itself_is() -> None:
    """Without a window the options are the same, byte for byte."""
    with_window, without = options(TABLE), price(model(TABLE), site())
    kept = [i for i, name in enumerate(with_window.names) if "stash" not in name]
    assert [with_window.names[i] for i in kept] == list(without.names)
    first = with_window.entries.first
    rows = np.concatenate([np.arange(first[i], first[i + 1]) for i in kept])
    assert (with_window.entries.ledger[rows] == without.entries.ledger).all()


def test_other_collectives_hold_them_too() -> None:
    """If only the largest collective's buffers count, a table of another collective still has its
    weights in HBM at every moment but the dense part."""
    priced = options(TABLE, {**TABLE, "output": "sequence"}, buffers="largest_collective")
    instance = compile_instance(priced)
    at = entry(priced, "table_wise/HBM_ONLY/stash")
    least = {
        resource.name: int(used)
        for resource, used in zip(instance.resources, instance.shard_use[at], strict=True)
        if resource.name.startswith("hbm")
    }
    assert any("sequence" in name for name in least)
    for name, used in least.items():
        assert (used >= 1_024_000_000) == (DENSE not in name)


LINK = 32 * 2**30
ROWS, DISTINCT = 5_000_000, 980_000
WORK = {
    "batch_per_rank": DISTINCT, "stash_window_ms": 20.0, "stash_caches": True,
    "prefetch_pipeline": True, "cache_ratios": ["1/5"],
}  # fmt: skip
CACHED = {
    "rows": ROWS, "dim": 512, "optimizer": "sgd",
    "access": {"kind": "unknown", "unique_fraction": 1.0},
    "constraints": {"modes": ["CACHING"], "sharding_types": ["table_wise"]},
}  # fmt: skip
STAYS, LEAVES = "table_wise/CACHING/0.2", "table_wise/CACHING/0.2/stash"


def cached(**workload: Any) -> Options:
    """The options of one cached table on one rank."""
    return price(model(CACHED, **{**WORK, **workload}), site(ranks=1))


def test_bytes_of_a_cache() -> None:
    """TorchRec's own example, 5 million rows of 512 floats at 0.2: 2.048 · 10⁹ bytes (1.91 GiB)
    leave HBM in the dense part and stay at every other moment; host memory has the rows anyway, and
    nothing is copied within the window."""
    priced = cached()
    ledger = priced.entries.ledger
    stays, leaves = entry(priced, STAYS), entry(priced, LEAVES)
    less = {m: int((ledger[stays] - ledger[leaves]) @ alive(m)) for m in MOMENTS}
    assert less == {m: 2_048_000_000 if m == DENSE else 0 for m in MOMENTS}
    assert ledger[leaves, SHARD_NAMES.index("stashed")] == 2_048_000_000
    assert priced.entries.ddr[stays] == priced.entries.ddr[leaves]
    instance = compile_instance(priced)
    at = [resource.name for resource in instance.resources].index("stash")
    assert not instance.shard_use[:, at].any()


def test_seconds_of_a_cache() -> None:
    """Three times the distinct rows of a step cross the link: flushed, fetched for the backward
    pass, and the next batch's. A cache that stays fetches the four fifths that it misses."""
    priced, fetched = cached(), PHASES.index("prefetch")
    stays, leaves = (cost(priced, name) for name in (STAYS, LEAVES))
    distinct = float(stays[fetched]) * 1e-12 * LINK / 2048 / 0.8
    assert distinct == pytest.approx(ROWS * (1 - (1 - 1 / ROWS) ** DISTINCT), rel=1e-6)
    assert leaves[fetched] * 1e-12 == pytest.approx(3 * distinct * 2048 / LINK, rel=1e-6)
    assert leaves[:fetched].tolist() == stays[:fetched].tolist()


def test_caches_only_where_it_is_asked_for() -> None:
    """By default no cache leaves."""
    assert cached().names == [STAYS, LEAVES]
    assert cached(stash_caches=False).names == [STAYS]


@pytest.mark.parametrize(
    ("activations", "leaves"), [("1GB", 0), ("3GB", 1), ("3500MB", 2), ("3990MB", None)]
)
def test_chosen_where_it_pays(activations: str, leaves: int | None) -> None:
    """Two cached tables: with room no cache leaves, as that costs time; with less, one or both do;
    with none there is no plan. Brute force agrees, and the plan verifies."""
    small = {**CACHED, "rows": 1_000_000, "dim": 1024}
    given = model(small, small, **{**WORK, "batch_per_rank": 64})
    place = site(activations, ranks=1, hbm="4GB")
    found = plan(given, place, formulation="cpsat", time_limit=20)
    truth = brute_force(found.instance)
    assert found.outcome.objective == truth.objective
    if leaves is None:
        assert found.status == "infeasible"
        return
    assert sum(table.stash for table in found.tables) == leaves
    assert verify(found).ok


def test_export_names_them_apart() -> None:
    """TorchRec's flag frees nothing of a cached table, so the caches are a list of their own, with
    a note of what the trainer must call; read back, both are pinned to a stash."""
    stashed = {**CACHED, "constraints": {**CACHED["constraints"], "stash": "always"}}
    read = model(stashed, **WORK)
    found = plan(read, site(ranks=1), formulation="greedy", time_limit=5)
    document = export.document(found)
    assert document["stash_caches"] == ["t0"] and document["stash_weights"] == []
    assert any("MemoryStashingManager.stash_emo_cache" in note for note in export.notes(found))
    assert export.read(export.write(found), read)["t0"].stash is True


def test_a_shipped_torchrec_does_what_is_priced() -> None:
    """In 1.8.0 and 1.9.2 stash_emo_cache flushes the cache, frees it, and at restore fetches the
    batch's ids again; the next batch's are the pipeline's. FBGEMM has caches on GPUs alone, so its
    kernel is one that notes its calls."""
    stashing = pytest.importorskip(
        "torchrec.distributed.memory_stashing", reason="this TorchRec has no memory stashing"
    ).MemoryStashingManager
    if not hasattr(stashing, "stash_emo_cache"):
        pytest.skip("this TorchRec has no stash_emo_cache (1.8.0 and 1.9.2 have)")
    import torch
    from torchrec import KeyedJaggedTensor
    from torchrec.distributed.embedding_types import (
        EmbeddingComputeKernel,
        GroupedEmbeddingConfig,
    )

    called: list[Any] = []
    kernel = SimpleNamespace(
        lxu_cache_weights=torch.ones(64, 4), lxu_cache_locations_list=[],
        flush=lambda: called.append("flush"), reset_cache_states=lambda: called.append("reset"),
        prefetch=lambda indices, offsets: called.append(indices.tolist()),
    )  # fmt: skip
    config = GroupedEmbeddingConfig.__new__(GroupedEmbeddingConfig)
    table = SimpleNamespace(compute_kernel=EmbeddingComputeKernel.FUSED_UVM_CACHING)
    config.embedding_tables = [table]  # type: ignore[list-item]
    grouped = SimpleNamespace(_config=config, _emb_module=kernel)
    lookup = SimpleNamespace(_emb_modules=[grouped], _feature_splits=[1])
    batch = KeyedJaggedTensor.from_lengths_sync(
        ["f"], torch.tensor([7, 3, 7]), torch.tensor([2, 1])
    )
    found = stashing.stash_emo_cache(lookup, batch)
    assert found is not None and called == ["flush"]
    storage = kernel.lxu_cache_weights.untyped_storage()
    assert storage.size() == 0
    found[1]()
    assert storage.size() == 64 * 4 * 4 and called == ["flush", "reset", [7, 3, 7]]
