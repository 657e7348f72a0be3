"""TorchRec's ShardingPlan as JSON, by hand and against TorchRec's own cut of a table.

Plans over a domain, exported to TorchRec and read back.
"""

import json
from functools import cache
from typing import Any

import pytest

from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.integrations.exports import torchrec, with_workload
from milp_planner.plans.placement import Plan
from milp_planner.start.mapping import start_on

from . import plans

#: The sharding types that cut a table or give it to one rank.
SPLIT = {
    "table_wise", "column_wise", "row_wise", "table_row_wise", "table_column_wise", "grid_shard",
}  # fmt: skip
PAIR = (plans.static("a", 10, 8), plans.static("b", 10, 128))


def _plan(**choose: str) -> Any:
    return plans.chosen_plan(
        {"a": "row_wise/HBM_ONLY", "b": "column_wise:2/CACHING/0.3"} | choose, *PAIR
    )


def test_by_hand() -> None:
    """Rows in blocks of ceil(10/4) = 3, 3, 3, 1; columns in two halves; local device numbers."""
    found = torchrec.document(_plan(), "sparse.ebc")
    tables = found["plan"]["sparse.ebc"]
    rows = tables["a"]
    assert (rows["sharding_type"], rows["compute_kernel"]) == ("row_wise", "fused")
    assert rows["ranks"] == [0, 1, 2, 3] and rows["cache_load_factor"] is None
    assert [s["shard_sizes"] for s in rows["shards"]] == [[3, 8], [3, 8], [3, 8], [1, 8]]
    assert [s["shard_offsets"] for s in rows["shards"]] == [[0, 0], [3, 0], [6, 0], [9, 0]]
    assert rows["shards"][3]["placement"] == "rank:3/cuda:1"
    columns = tables["b"]
    assert columns["compute_kernel"] == "fused_uvm_caching"
    assert columns["cache_load_factor"] == 0.3
    assert [s["shard_offsets"] for s in columns["shards"]] == [[0, 0], [0, 64]]
    assert (found["world_size"], found["local_world_size"]) == (4, 2)


def test_a_module_for_each_table() -> None:
    """Tables may belong to different modules."""
    found = torchrec.document(_plan(), {"a": "left", "b": "right"})
    assert {path: list(tables) for path, tables in found["plan"].items()} == {
        "left": ["a"],
        "right": ["b"],
    }


def test_data_parallel_has_no_shards() -> None:
    """A replicated table lists its ranks and no shards, as in TorchRec."""
    entry = torchrec.document(_plan(a="data_parallel/HBM_ONLY"))["plan"][""]["a"]
    assert entry["compute_kernel"] == "dense" and entry["ranks"] == [0, 1, 2, 3]
    assert "shards" not in entry


def _twice() -> str:
    document = torchrec.document(_plan())
    document["plan"]["other"] = {"a": document["plan"][""]["a"]}
    return json.dumps(document)


def _changed(table: str = "b", drop: str | None = None, **changes: Any) -> str:
    document = torchrec.document(_plan())
    document["plan"][""][table].update(changes)
    if drop:
        del document["plan"][""][table][drop]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (_changed(sharding_type="columnwise"), "did you mean column_wise"),
        (_changed(compute_kernel="fused_triton"), "a Triton kernel, which is not priced; allowed"),
        (_changed(compute_kernel="FUSED_TRITON"), "a Triton kernel, which is not priced; allowed"),
        (_changed(compute_kernel="unfused_tpu"), "a kernel of TPUs, which is not priced; allowed"),
        (_changed(compute_kernel="fused_uvmm"), "did you mean fused_uvm"),
        (_changed(ranks=[0, -1]), "whole numbers from 0"),
        (_changed(ranks=[0]), "one shard for each of its 1 ranks"),
        (_changed(cache_load_factor=1.0), "above 0 and below 1"),
        (_changed(drop="cache_load_factor"), "needs its cache_load_factor"),
        (_changed(shards=[{"shard_sizes": [10, 64]}, {"shard_sizes": [10, 60]}]), "hold 1240"),
        (_changed(shards=[{"shard_sizes": [10]}, {}]), r"\[rows, columns\]"),
        ("{", "not valid JSON"),
        ("{}", "its format must be"),
        ('{"format": "milp-planner-torchrec/1"}', "modules by path"),
        (torchrec.write(_plan()).replace('"b": {', '"a": {'), "'a'"),  # the last does not win
        (_twice(), "two modules"),
    ],
)
def test_illegal_documents(text: str, sentence: str) -> None:
    """Any document that is not a plan of the model's tables is an error."""
    with pytest.raises(BadInput, match=sentence):
        torchrec.read(text, plans.model(*PAIR))


def test_unknown_table() -> None:
    """A table that the model lacks is refused with the nearest name."""
    with pytest.raises(BadInput, match="unknown table 'b'"):
        torchrec.read(_changed(), plans.model(plans.static("a", 10, 8)))


def test_shards_are_torchrecs() -> None:
    """Sizes and offsets of random plans equal those of TorchRec's
    ``calculate_shard_sizes_and_offsets``, for every sharding type that cuts a table."""
    pytest.importorskip("torchrec")
    import torch
    from torchrec.distributed.sharding_plan import calculate_shard_sizes_and_offsets

    compared = set()
    for seed in range(20):
        plan = plans.random_plan(seed, *plans.MIXED[:3], on=plans.cluster(2, 4))
        for _, name, entry in torchrec.entries(torchrec.write(plan)):
            table, placed = plan.model.table(name), plan.table(name)
            if entry["sharding_type"] == "data_parallel":
                continue
            if placed.column_shards * placed.column_width != table.dim or placed.column_width % 4:
                continue
            sizes, offsets = calculate_shard_sizes_and_offsets(
                torch.empty(table.rows, table.dim, device="meta"),
                world_size=8,
                local_world_size=4,
                sharding_type=entry["sharding_type"],
                col_wise_shard_dim=placed.column_width,
            )
            assert [s["shard_sizes"] for s in entry["shards"]] == sizes
            assert [s["shard_offsets"] for s in entry["shards"]] == offsets
            compared.add(entry["sharding_type"])
    assert compared == SPLIT


def test_sharders_are_written_where_they_are_not_the_defaults() -> None:
    """A 16-bit exchange and deduplication are in the file, and come back; plain ones are not."""
    plain = plans.model(plans.static("a"))
    assert "sharders" not in torchrec.document(plans.plan_of(plain))
    changes = {"exchange_dtype": "fp16", "exchange_dtype_backward": "bf16", "dedup": True}
    plan = plans.plan_of(with_workload(plain, {**changes, "codec": "low_memory"}))
    assert torchrec.workload(torchrec.write(plan), plain) == changes
    assert "casts before it clamps" in torchrec.notes(plan)[-1]
    document = torchrec.document(plan) | {"sharders": {"use_index_dedup": 1}}
    with pytest.raises(BadInput, match="sharders: must have"):
        torchrec.workload(json.dumps(document), plain)


def place() -> Cluster:
    """4 machines of 2 ranks in domains of two."""
    links = {"intra_machine": "600GB/s", "inter_machine": "12.5GB/s", "domains": {"machines": 2}}
    return Cluster.from_dict({**plans.cluster(4).to_dict(), "interconnect": links})


@cache
def planned(kind: str) -> Plan:
    """A plan of one table with a single sharding type."""
    limits = {"sharding_types": [kind], "modes": ["HBM_ONLY"]}
    table = plans.static("a", 1003, constraints=limits)
    return plan(plans.model(table), place(), formulation="cpsat")


def test_the_export_says_the_span() -> None:
    """It has ``pod_size`` and what to set at run time, unless no rows are split over machines; of a
    grid over machines it warns, as TorchRec cannot build it."""
    wide, whole = planned("table_row_wise"), planned("table_wise")
    document = torchrec.document(wide)
    assert (document["pod_size"], document["local_world_size"]) == (2, 2)
    assert [s["shard_sizes"] for s in document["plan"][""]["a"]["shards"]] == [
        [251, 128], [251, 128], [251, 128], [250, 128],
    ]  # fmt: skip
    assert "TORCHREC_RESOLVED_POD_SIZE=2" in torchrec.notes(wide)[0]
    assert "pod_size" not in torchrec.document(whole)
    assert torchrec.notes(whole) == []
    assert "grid_shard" in torchrec.notes(planned("grid_shard"))[1]


@pytest.mark.parametrize("kind", ["table_row_wise", "grid_shard"])
def test_a_plan_over_a_domain_is_known_as_todays(kind: str) -> None:
    """Given as today's plan, it is the same placement of the same option."""
    found = planned(kind)
    known = start_on(found, found.model, found.cluster, "step_time", exact=True).placement
    assert known.options.tolist() == found.outcome.placement.options.tolist()
    assert known.to_lists(0) == found.outcome.placement.to_lists(0)
