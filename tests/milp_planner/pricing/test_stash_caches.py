"""Caches that leave HBM in the dense part: bytes and seconds by hand, chosen where they pay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from milp_planner import plan, verify
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.integrations.exports import torchrec as export
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import Options, price
from milp_planner.pricing.entries import DENSE, MOMENTS, SHARD_NAMES, alive
from milp_planner.pricing.options import PHASES
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, entry, model

LINK = 32 * 2**30
ROWS, DISTINCT = 5_000_000, 980_000
WORK = {
    "batch_per_rank": DISTINCT, "stash_window_ms": 20.0, "stash_caches": True,
    "prefetch_pipeline": True, "cache_ratios": ["1/5"],
}  # fmt: skip
TABLE = {
    "rows": ROWS, "dim": 512, "optimizer": "sgd",
    "access": {"kind": "unknown", "unique_fraction": 1.0},
    "constraints": {"modes": ["CACHING"], "sharding_types": ["table_wise"]},
}  # fmt: skip
STAYS, LEAVES = "table_wise/CACHING/0.2", "table_wise/CACHING/0.2/stash"


def site(ranks: int = 1, hbm: str = "80GiB", activations: str = "1GiB") -> Cluster:
    """Ranks with memory that only the dense part takes."""
    held = {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0, "activations": activations}
    return cluster(1, ranks, hbm=hbm, ddr="1TiB", reservations=held)


def options(**workload: Any) -> Options:
    """The options of one cached table."""
    return price(model(TABLE, **{**WORK, **workload}), site())


def test_bytes_by_hand() -> None:
    """TorchRec's own example, 5 million rows of 512 floats at 0.2: 2.048 · 10⁹ bytes (1.91 GiB)
    leave HBM in the dense part and stay at every other moment; host memory has the rows anyway, and
    nothing is copied within the window."""
    priced = options()
    ledger = priced.entries.ledger
    stays, leaves = entry(priced, STAYS), entry(priced, LEAVES)
    less = {m: int((ledger[stays] - ledger[leaves]) @ alive(m)) for m in MOMENTS}
    assert less == {m: 2_048_000_000 if m == DENSE else 0 for m in MOMENTS}
    assert ledger[leaves, SHARD_NAMES.index("stashed")] == 2_048_000_000
    assert priced.entries.ddr[stays] == priced.entries.ddr[leaves]
    instance = compile_instance(priced)
    at = [resource.name for resource in instance.resources].index("stash")
    assert not instance.shard_use[:, at].any()


def test_seconds_by_hand() -> None:
    """Three times the distinct rows of a step cross the link: flushed, fetched for the backward
    pass, and the next batch's. A cache that stays fetches the four fifths that it misses."""
    priced, fetched = options(), PHASES.index("prefetch")
    stays, leaves = (priced.entries.cost[entry(priced, n)] for n in (STAYS, LEAVES))
    distinct = float(stays[fetched]) * 1e-12 * LINK / 2048 / 0.8
    assert distinct == pytest.approx(ROWS * (1 - (1 - 1 / ROWS) ** DISTINCT), rel=1e-6)
    assert leaves[fetched] * 1e-12 == pytest.approx(3 * distinct * 2048 / LINK, rel=1e-6)
    assert leaves[:fetched].tolist() == stays[:fetched].tolist()


def test_only_where_it_is_asked_for() -> None:
    """By default no cache leaves; it needs a window and rows that are fetched ahead."""
    assert options().names == [STAYS, LEAVES]
    assert options(stash_caches=False).names == [STAYS]
    for without in ({"stash_window_ms": None}, {"prefetch_pipeline": False}):
        with pytest.raises(BadInput, match="stash_caches: needs stash_window_ms and prefetch"):
            options(**without)


@pytest.mark.parametrize(
    ("activations", "leaves"), [("1GB", 0), ("3GB", 1), ("3500MB", 2), ("3990MB", None)]
)
def test_chosen_where_it_pays(activations: str, leaves: int | None) -> None:
    """Two cached tables: with room no cache leaves, as that costs time; with less, one or both do;
    with none there is no plan. Brute force agrees, and the plan verifies."""
    small = {**TABLE, "rows": 1_000_000, "dim": 1024}
    given = model(small, small, **{**WORK, "batch_per_rank": 64})
    place = site(hbm="4GB", activations=activations)
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
    stashed = {**TABLE, "constraints": {**TABLE["constraints"], "stash": "always"}}
    read = model(stashed, **WORK)
    found = plan(read, site(), formulation="greedy", time_limit=5)
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
