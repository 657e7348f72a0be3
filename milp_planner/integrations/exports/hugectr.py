"""The arguments of HugeCTR's ``EmbeddingCollectionConfig.shard``, as JSON.

They say which ranks hold parts of which table (``shard_matrix``), and how each table is cut
(``shard_strategy``) and compressed (``compression_strategy``). Row parts are not written: their
number is the table's ranks divided by its column parts. In rank order, runs of that many ranks hold
the column parts from the left, and row i is on rank number (i mod the run's length) of its run.

References
----------
NVIDIA-Merlin/HugeCTR at 2f2016fa, ``HugeCTR/include/embeddings/embedding_collection.hpp`` and
``HugeCTR/src/embeddings/embedding_collection.cpp``, which has the rules that :func:`read` checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.files import read_json
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import known, pin
from milp_planner.plans.placement import Plan
from milp_planner.pricing.runtimes.hugectr import sharding_of

FORMAT = "milp-planner-hugectr/1"
_GROUPS = ("dp", "mp")


def write(plan: Plan) -> str:
    """The three values as JSON, with tables by name, all compressed by Reduction."""
    matrix: list[list[str]] = [[] for _ in range(plan.cluster.num_ranks)]
    for placed in plan.tables:
        for rank in sorted(rank for block in placed.ranks for rank in block):
            matrix[rank].append(placed.name)
    dp = [t.name for t in plan.tables if t.kernel == "dp"]
    mp = [[t.name, t.column_shards] for t in plan.tables if t.kernel == "mp"]
    groups: list[tuple[str, list[Any]]] = [("dp", dp), ("mp", mp)]
    return json_text({
        "format": FORMAT,
        "shard_matrix": matrix,
        "shard_strategy": [group for group in groups if group[1]],
        "compression_strategy": {"Unique": [], "Reduction": [name for name, _ in mp]},
    })  # fmt: skip


def notes(plan: Plan) -> list[str]:
    """Sentences about what the values do not hold."""
    found = ["give these values to shard instead of what the samples' generate_plan makes"]
    if plan.model.workload.cost_model == "embark_hierarchical":
        found.append("set CommunicationStrategy.Hierarchical, for which the plan was priced")
    return found


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that such values fix: sharding type, column width and ranks of every table.

    A table is given by its name, or by its index in the model if no table has that name. BadInput
    for what HugeCTR itself refuses: tables that are unknown, in no group or in two, column parts
    that do not divide the width or the ranks, a data-parallel table that is not on all ranks.
    """
    document = _parse(text)
    holders = _holders(document["shard_matrix"], model)
    ranks, pins = len(document["shard_matrix"]), dict[str, PinSpec]()
    for group, table, columns in _groups(document["shard_strategy"], model):
        where = f"table {table.name!r}"
        if table.name in pins:
            raise BadInput(f"shard_strategy: {where} is listed twice")
        held = holders.get(table.name, [])
        _check_cut(where, group, columns, table, (len(held), ranks))
        by_machine = model.workload.cost_model == "embark_hierarchical"
        kind = sharding_of(len(held), columns, ranks, by_machine)
        pins[table.name] = pin(
            where,
            mode="HBM_ONLY",
            sharding_type="data_parallel" if group == "dp" else kind,
            column_width=table.dim // columns if columns > 1 else None,
            ranks=tuple(held),
        )
    if missing := [name for name in holders if name not in pins]:
        raise BadInput(f"shard_strategy: table {missing[0]!r} is in no group")
    return pins


def unread(text: str) -> list[str]:
    """A sentence about what prices ignore: ids made unique before they are sent."""
    unique = (_parse(text).get("compression_strategy") or {}).get("Unique") or []
    if not unique:
        return []
    return [f"{len(unique)} tables are compressed by Unique, which is priced like Reduction"]


def _parse(text: str) -> dict[str, Any]:
    found = read_json(text, "HugeCTR plan").data
    if not isinstance(found, dict):
        raise BadInput("HugeCTR plan: must hold shard_matrix and shard_strategy")
    for key in ("shard_matrix", "shard_strategy"):
        if not isinstance(found.get(key), list):
            raise BadInput(f"HugeCTR plan: {key} must be a list")
    squeezed = found.get("compression_strategy") or {}
    if not isinstance(squeezed, dict) or any(not isinstance(v, list) for v in squeezed.values()):
        raise BadInput("HugeCTR plan: compression_strategy must hold lists of tables")
    return found


def _holders(matrix: list[Any], model: Model) -> dict[str, list[int]]:
    """The ranks that hold each table, in order."""
    found: dict[str, list[int]] = {}
    for rank, listed in enumerate(matrix):
        where = f"shard_matrix[{rank}]"
        if not isinstance(listed, list):
            raise BadInput(f"{where}: must be a list of tables")
        for each in listed:
            ranks = found.setdefault(_table(each, model, where).name, [])
            if rank in ranks:
                raise BadInput(f"{where}: table {each!r} is listed twice")
            ranks.append(rank)
    return found


def _groups(strategy: list[Any], model: Model) -> Iterator[tuple[str, Table, int]]:
    """Group, table and column parts of everything listed."""
    for index, group in enumerate(strategy):
        where = f"shard_strategy[{index}]"
        if not isinstance(group, list) or len(group) != 2 or not isinstance(group[1], list):
            raise BadInput(f"{where}: must be a pair of a group and its tables")
        name = one_of(group[0], _GROUPS, where)
        for entry in group[1]:
            pair = entry if isinstance(entry, list) else [entry, 1]
            if len(pair) != 2 or type(pair[1]) is not int or pair[1] < 1:
                raise BadInput(
                    f"{where}: found {entry!r}; allowed: a table, or a table and its columns"
                )
            yield name, _table(pair[0], model, where), pair[1]


def _table(name: Any, model: Model, where: str) -> Table:
    names = {table.name for table in model.tables}
    if isinstance(name, str) and name not in names and name.isascii() and name.isdigit():
        at = int(name[:9])
        if at < len(model.tables):
            return model.tables[at]
    return known(model, name, where)


def _check_cut(where: str, group: str, columns: int, table: Table, held: tuple[int, int]) -> None:
    """Refuse what HugeCTR refuses; ``held`` is the number of the table's ranks and of all ranks."""
    holders, ranks = held
    if group == "dp" and (columns > 1 or holders != ranks):
        raise BadInput(f"{where}: is data-parallel; allowed: all {ranks} ranks and no column parts")
    if not holders or holders % columns or table.dim % columns:
        raise BadInput(
            f"{where}: {columns} column parts; allowed: a divisor of its {holders} ranks (at least "
            f"one) and of its {table.dim} columns"
        )
