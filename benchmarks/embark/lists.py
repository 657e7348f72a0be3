"""Published table lists as models of HugeCTR, its planner's stored plans, and clusters for them.

Where the lists come from: ``table-lists/README.md`` and ``embark/README.md`` of the data folder.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from formulations.instance import Instance
from milp_planner.inputs import Cluster, Model

SAMPLES = 65_536
"""Of the global batch, as in EMBark's published runs."""
RATIO = 60
"""``mem_comm_bw_ratio`` of ``benchmark.sh``."""
ROOM = "60GiB"
"""``memory_cap_for_embedding`` of a GPU."""
MACHINE = 8
"""GPUs of a node."""
PUBLISHED = {
    "180table_70B_hotness80_2x8": "embark_180table_70B_hotness80",
    "200table_100B_hotness20_1x8": "embark_200table_100B_hotness20",
    "510table_110B_hotness5_2x8": "embark_510table_110B_hotness5",
    "7table_470B_hotness20_8x8": "embark_7table_470B_hotness20",
    "dcnv2_8x8": "mlperf_dlrm_dcnv2",
}
"""The table list of each published instance."""
KINDS = {
    "embark": ("sgd", "fp32"), "mlperf": ("adagrad", "fp32"), "distemb": ("adagrad", "fp32"),
    "criteo": ("sgd", "fp32"), "dlrmv3": ("rowwise_adagrad", "fp16"), "torchrec": ("sgd", "fp32"),
}  # fmt: skip
"""Optimizer and element type by the first word of a list's name (TorchRec's states none)."""


def names(data: Path) -> list[str]:
    """All lists with published ids per sample, dcnv2 among them."""
    files = sorted((data / "table-lists").glob("*.csv"))
    found = [f.stem for f in files if f.stem != "published" and all(r["pooling"] for r in _rows(f))]
    return [*found, "mlperf_dlrm_dcnv2"]


def model_of(data: Path, name: str, ranks: int) -> Model:
    """A table list as a model of HugeCTR at the published settings.

    A shared table counts the ids of all inputs that read it and a vector for each; sequences are
    priced as if they were pooled, as the formula knows nothing else.
    """
    optimizer, dtype = KINDS[name.partition("_")[0]]
    tables = list(_dcnv2(data) if name == "mlperf_dlrm_dcnv2" else _listed(data, name))
    for table in tables:
        if table["name"] == "FP16_table":
            table["dtype"] = "fp16"
    return Model.from_dict({
        "name": name,
        "workload": {"batch_per_rank": SAMPLES // ranks, "cost_model": "embark",
                     "storage_model": "embark", "mem_comm_bw_ratio": RATIO},
        "defaults": {"kind": "hugectr", "optimizer": optimizer, "dtype": dtype},
        "tables": tables,
    })  # fmt: skip


def cluster_of(ranks: int) -> Cluster:
    """Nodes of eight GPUs, all of whose room is for embeddings."""
    return Cluster.from_dict({
        "name": f"{ranks}x60GiB", "machines": ranks // MACHINE, "ranks_per_machine": MACHINE,
        "hbm": ROOM, "ddr": "1TB",
        "interconnect": {"intra_machine": "400GB/s", "inter_machine": "50GB/s"},
        "reservations": {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0},
    })  # fmt: skip


def published(data: Path, instance: str) -> tuple[Model, Cluster]:
    """Model and cluster of one of :data:`PUBLISHED`."""
    machines = int(instance.rpartition("_")[2].partition("x")[0])
    ranks = machines * MACHINE
    return model_of(data, PUBLISHED[instance], ranks), cluster_of(ranks)


class StoredPlan(NamedTuple):
    """What HugeCTR's planner returned for a published instance."""

    values: dict[str, Any]
    """``shard_matrix`` and ``shard_strategy``, with tables by position."""
    cost: int
    """The largest cost of a GPU, as the planner states it."""


def stored_plan(data: Path, instance: str) -> StoredPlan:
    """The better of its plans with and without column parts."""
    with gzip.open(data / "embark" / "reference-plans.json.gz") as file:
        found = json.load(file)[instance]
    ranks = int(instance.rpartition("_")[2].partition("x")[0]) * MACHINE
    matrix: list[list[str]] = [[] for _ in range(ranks)]
    groups = []
    for index, placed in enumerate(found["tables"].values()):
        groups.append([str(index), int(placed["option"].partition("c")[2])])
        for rank in placed["ranks"]:
            matrix[rank].append(str(index))
    values = {"shard_matrix": matrix, "shard_strategy": [["mp", groups]]}
    return StoredPlan(values, int(found["busiest_rank"]))


def facts(instance: Instance, table: int) -> list[tuple[int, int, bool, int, int]]:
    """Place, shards, whether these are apart, cost and MiB of every option of a table, sorted.

    MiB, since a whole number of rows may be a row more than the planner's bytes.
    """
    found = []
    for option in instance.options_of(table):
        for index in instance.blocks_of(option):
            block, shard = instance.block(index), int(instance.block_shards[index])
            cost, use = instance.shard_cost[shard].sum(), instance.shard_use[shard, 0]
            apart = block.distinct or block.count == 1
            size = (int(block.where), block.count, apart, int(cost), int(use) >> 20)
            found.append(size)
    return sorted(found)


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _listed(data: Path, name: str) -> Iterator[dict[str, Any]]:
    number = 0
    for row in _rows(data / "table-lists" / f"{name}.csv"):
        inputs = row["inputs"].count("+") + 1
        for _ in range(int(row["count"])):
            alone = row["name"] if row["count"] == "1" else f"t{number}"
            yield {
                "name": alone, "rows": int(row["rows"]), "dim": int(row["dim"]),
                "num_features": inputs, "pooling_factor": float(row["pooling"]) / inputs,
            }  # fmt: skip
            number += 1


def _dcnv2(data: Path) -> Iterator[dict[str, Any]]:
    yield from json.loads((data / "tables" / "mlperf_dlrm_dcnv2_26.json").read_text())["tables"]
