"""Published table lists as instances under the cost of HugeCTR's planner, and its stored plans.

Where the lists come from: ``table-lists/README.md`` and ``embark/README.md`` of the data folder.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard

SAMPLES = 65_536
"""Of the global batch, as in EMBark's published runs."""
RATIO = 60
"""``mem_comm_bw_ratio`` of ``benchmark.sh``."""
ROOM = 60 * 2**30
"""``memory_cap_for_embedding`` of a GPU."""
MACHINE = 8
"""GPUs of a node."""
PASSES = 4
"""Reads of an element in a step (``mem_comm_work_ratio``, 8 over 2)."""
NARROWEST = 32
"""A part of this many columns or fewer is not halved."""
PUBLISHED = {
    "180table_70B_hotness80_2x8": "embark_180table_70B_hotness80",
    "200table_100B_hotness20_1x8": "embark_200table_100B_hotness20",
    "510table_110B_hotness5_2x8": "embark_510table_110B_hotness5",
    "7table_470B_hotness20_8x8": "embark_7table_470B_hotness20",
    "dcnv2_8x8": "mlperf_dlrm_dcnv2",
}
"""The table list of each published instance."""
KINDS = {
    "embark": ("sgd", 4), "mlperf": ("adagrad", 4), "distemb": ("adagrad", 4),
    "criteo": ("sgd", 4), "dlrmv3": ("rowwise_adagrad", 2), "torchrec": ("sgd", 4),
}  # fmt: skip
"""Optimizer and bytes of an element by the first word of a list's name (TorchRec's states none)."""


def instance_of(data: Path, name: str, ranks: int) -> Instance:
    """A table list under the cost of HugeCTR's planner (EMBark), one element read as a unit.

    A table is cut into r row parts times c column parts (1, 2, 4, …, and rows over all ranks too;
    a column part is halved while its width is even and above 32), each on a rank of its own. A
    shard costs B · 4 · ids · columns / r to look up and B · 60 · vectors · columns to exchange.
    A shared table counts the ids of all inputs that read it and a vector for each; sequences are
    priced as if they were pooled, as the formula knows nothing else.

    References
    ----------
    NVIDIA-Merlin/HugeCTR at 2f2016fa, ``benchmarks/embedding_collection/hugectr/sharding``
    (``planner.py``, ``generate_plan.py``); EMBark, RecSys 2024.
    """
    optimizer, width = KINDS[name.partition("_")[0]]
    machines = [range(first, first + MACHINE) for first in range(0, ranks, MACHINE)]
    built = InstanceBuilder(
        machines, ("lookup", "exchange"), [("hbm", "rank", ROOM)], "busiest_rank",
        name=f"{name}@{ranks}x60GiB", source="NVIDIA-Merlin/HugeCTR's cost model",
    )  # fmt: skip
    for table in _dcnv2(data) if name == "mlperf_dlrm_dcnv2" else _listed(data, name):
        built.add_table(table["name"])
        size = 2 if table["name"] == "FP16_table" else width
        for rows, columns in _cuts(table["dim"], ranks):
            parts = _parts(table, (size, optimizer), (rows, columns), ranks)
            built.add_option(f"r{rows}c{columns}", [parts])
    return built.build()


def _cuts(dim: int, ranks: int) -> Iterator[tuple[int, int]]:
    columns = 1
    while columns <= ranks:
        places = ranks // columns
        for rows in sorted({*(1 << k for k in range(places.bit_length())), places}):
            yield rows, columns
        width = dim // columns
        if width % 2 or width <= NARROWEST:
            return
        columns *= 2


def _parts(
    table: Mapping[str, Any], kind: tuple[int, str], cut: tuple[int, int], ranks: int
) -> Block:
    """The parts of a table, all alike: each has room for the most rows of a part."""
    (size, optimizer), (rows, columns) = kind, cut
    wide, vectors = table["dim"] // columns, table.get("num_features", 1)
    state = {"sgd": 0, "adagrad": wide, "rowwise_adagrad": wide / table["dim"]}[optimizer]
    bytes_ = round(-(-table["rows"] // rows) * (wide + state) * size)
    ids = vectors * table["pooling_factor"]
    cost = round(SAMPLES * PASSES * ids * wide / rows), SAMPLES * RATIO * vectors * wide
    shard = Shard({"hbm": bytes_}, cost, move_bytes=bytes_)
    if rows * columns == ranks:
        return Block(Where.EVERY_RANK, [shard])
    return Block(Where.ANY_RANK, [shard], count=rows * columns, distinct=rows * columns > 1)


def stored_cost(data: Path, instance: str) -> int:
    """The cost that HugeCTR's planner states of the better of its plans with and without column
    parts, for a published instance."""
    with gzip.open(data / "embark" / "reference-plans.json.gz") as file:
        return int(json.load(file)[instance]["busiest_rank"])


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
