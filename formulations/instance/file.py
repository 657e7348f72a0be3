"""The file format ``milp-planner-instance/1``: read strictly, written compactly.

The format is described in docs/instance-format.md and by the JSON schema beside it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import (
    BlockView,
    Current,
    Instance,
    Objective,
    Pin,
    Scope,
    Where,
    strict_json,
)
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.strict_json import Reader, shown
from formulations.instance.validate import validate

FORMAT = "milp-planner-instance/1"

_TOP = {
    "format", "name", "source", "ranks", "machines", "phases", "hidden", "time_unit", "objective",
    "resources", "tables", "pins", "forbidden", "current", "max_moved_tables", "max_moved_bytes",
    "reference",
}  # fmt: skip


def read_instance(path: str | Path) -> Instance:
    """Read an instance file (``.json`` or ``.json.gz``).

    Raises
    ------
    InstanceError
        One sentence: the file, the field, what was found and what is allowed.
    """
    path = Path(path)
    # "reference" is for people and may contain fractions; every other number must be an integer.
    document = strict_json.parse(strict_json.read_bytes(path), str(path))
    return instance_from_dict(document, str(path))


def instance_from_dict(document: Any, what: str = "instance") -> Instance:
    """Build an Instance from a parsed document; see :func:`read_instance`."""
    # check this before the fields, because a file of another format has other fields
    if isinstance(document, dict) and document.get("format", FORMAT) != FORMAT:
        raise InstanceError(f"{what}: format is {shown(document['format'])}, allowed: {FORMAT!r}")
    if isinstance(document, dict) and document.keys() & {"agents", "groups"}:
        raise InstanceError(f"{what}: benchmarks/literature/convert.py makes an instance of it")
    top = Reader(document, what, _TOP)
    top.get("format", str)
    try:
        builder = _builder(top)
        for index, table in enumerate(top.items("tables")):
            _table(builder, Reader(table, f"{what}: tables[{index}]", {"name", "options"}))
        instance = builder.build(reference=top.get("reference", list, []))
        return _constraints(instance, top)
    except InstanceError as error:
        text = str(error)
        raise error if text.startswith(what) else InstanceError(f"{what}: {text}") from error


def _builder(top: Reader) -> InstanceBuilder:
    machines = [top.integers(m, f"machines[{i}]") for i, m in enumerate(top.items("machines"))]
    ranks = top.integer("ranks")
    if sum(map(len, machines)) != ranks:
        raise InstanceError(f"ranks is {ranks}, but machines lists {sum(map(len, machines))}")
    resources = []
    for index, item in enumerate(top.items("resources")):
        reader = Reader(item, f"{top.what}: resources[{index}]", {"name", "scope", "capacity"})
        scope = reader.choice("scope", [s.value for s in Scope])
        given = reader.value("capacity")
        capacity = (reader.whole if type(given) is int else reader.integers)(given, "capacity")
        resources.append((reader.get("name", str), scope, capacity))
    phases = [str(p) for p in top.items("phases") if top.is_a(p, str, "phases")]
    objective = top.choice("objective", [o.value for o in Objective])
    hides = objective == Objective.PIPELINED_STEP or top.has("hidden")
    return InstanceBuilder(
        machines,
        phases,
        resources,
        objective,
        name=top.get("name", str, ""),
        source=top.get("source", str, ""),
        hidden=top.integers(top.value("hidden"), "hidden") if hides else None,
    )


def _table(builder: InstanceBuilder, table: Reader) -> None:
    builder.add_table(table.get("name", str))
    for index, item in enumerate(table.items("options")):
        option = Reader(item, f"{table.what}.options[{index}]", {"name", "fusion", "blocks"})
        fusion = None
        if option.has("fusion"):
            reader = Reader(option.value("fusion"), f"{option.what}.fusion", {"group", "level"})
            fusion = (reader.get("group", str), reader.integer("level"))
        blocks = [
            _block(Reader(b, f"{option.what}.blocks[{i}]", _BLOCK))
            for i, b in enumerate(option.items("blocks"))
        ]
        builder.add_option(option.get("name", str), blocks, fusion)


_BLOCK = {"where", "count", "distinct", "among", "shards"}
_KINDS = {w.name.lower(): w for w in Where if w != Where.LIST}


def _block(block: Reader) -> Block:
    where = block.value("where")
    place: Where | Sequence[int]
    if isinstance(where, list):
        place = block.integers(where, "where")
        if block.has("among"):
            raise InstanceError(f"{block.what}: 'among' has no meaning beside a list of ranks")
    else:
        place = _KINDS[block.choice("where", list(_KINDS), "or a list of ranks")]
    return Block(
        where=place,
        shards=[
            _shard(Reader(item, f"{block.what}.shards[{i}]", _SHARD))
            for i, item in enumerate(block.items("shards"))
        ],
        count=block.integer("count", 1),
        distinct=block.get("distinct", bool, None),
        among=block.integers(block.value("among"), "among") if block.has("among") else None,
    )


_SHARD = {"use", "cost", "repeat", "move_bytes"}


def _shard(shard: Reader) -> Shard:
    use = shard.get("use", dict, {})
    for name, amount in use.items():
        shard.whole(amount, f"use.{name}")
    return Shard(
        use=use,
        cost=shard.integers(shard.value("cost"), "cost"),
        repeat=shard.integer("repeat", 1),
        move_bytes=shard.integer("move_bytes", 0),
    )


def _constraints(instance: Instance, top: Reader) -> Instance:
    pins = [_pin(instance, r) for r in _readers(top, "pins", {"table", "option", "ranks"})]
    forbidden = [
        _table_option(instance, r) for r in _readers(top, "forbidden", {"table", "option"})
    ]
    instance = replace(
        instance,
        pins=tuple(pins),
        forbidden=tuple(forbidden),
        current=tuple(_current(instance, top)),
        max_moved_tables=top.integer("max_moved_tables", None),
        max_moved_bytes=top.integer("max_moved_bytes", None),
        time_unit=top.get("time_unit", str, "ps"),
    )
    validate(instance)
    return instance


def _readers(top: Reader, key: str, fields: set[str]) -> list[Reader]:
    items = top.items(key) if top.has(key) else []
    return [Reader(item, f"{top.what}: {key}[{i}]", fields) for i, item in enumerate(items)]


def _table_option(instance: Instance, reader: Reader) -> tuple[int, int]:
    name, option = reader.get("table", str), reader.get("option", str)
    table = _known_table(instance, name, reader.what)
    names = [instance.option_names[o] for o in instance.options_of(table)]
    if option not in names:
        raise InstanceError(reader.unknown(f"option of table {name!r}", option, names))
    return table, instance.option_index(table, option)


def _known_table(instance: Instance, name: str, what: str) -> int:
    try:
        return instance.table_index(name)
    except KeyError:
        near = Reader({}, what, set()).unknown("table", name, list(instance.table_names))
        raise InstanceError(near) from None


def _pin(instance: Instance, reader: Reader) -> Pin:
    table, option = _table_option(instance, reader)
    ranks = _ranks(reader) if reader.has("ranks") else None
    if ranks is not None and len(ranks) != len(instance.blocks_of(option)):
        raise InstanceError(f"{reader.what}: ranks needs one list for each block of the option")
    return Pin(table, option, ranks)


def _ranks(reader: Reader) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(reader.integers(block, f"ranks[{i}]"))
        for i, block in enumerate(reader.items("ranks"))
    )


def _current(instance: Instance, top: Reader) -> list[Current]:
    plan = top.get("current", dict, {})
    result = []
    for name, item in plan.items():
        reader = Reader(item, f"{top.what}: current.{name}", {"option", "ranks"})
        table = _known_table(instance, name, reader.what)
        try:
            option = instance.option_index(table, reader.get("option", str))
        except KeyError:
            option = -1  # the option no longer exists, so the table has to move
        result.append(Current(table, option, _ranks(reader)))
    return result


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance file; gzipped (reproducibly) when the name ends in ``.gz``."""
    path = Path(path)
    text = json.dumps(instance_to_dict(instance), separators=(",", ":")).encode()
    data = gzip.compress(text, mtime=0) if path.suffix == ".gz" else text
    partial = path.with_name(path.name + ".tmp")
    partial.write_bytes(data)
    partial.replace(path)


def instance_to_dict(instance: Instance) -> dict[str, Any]:
    """The document of an Instance; :func:`instance_from_dict` reads it back to an equal one."""
    shards = _shard_dicts(instance)
    document: dict[str, Any] = {
        "format": FORMAT,
        "name": instance.name,
        "source": instance.source,
        "ranks": instance.num_ranks,
        "machines": [list(m) for m in instance.machines],
        "phases": list(instance.phases),
        "time_unit": instance.time_unit,
        "objective": instance.objective.value,
        "resources": [
            {
                "name": r.name,
                "scope": r.scope.value,
                "capacity": r.capacity.tolist() if r.scope != Scope.CLUSTER else int(r.capacity[0]),
            }
            for r in instance.resources
        ],
        "tables": [_table_dict(instance, t, shards) for t in range(instance.num_tables)],
    }
    if instance.hidden:
        document["hidden"] = list(instance.hidden)
    document.update(_constraint_dict(instance))
    if instance.reference:
        document["reference"] = list(instance.reference)
    return document


def _table_dict(instance: Instance, table: int, shards: list[dict[str, Any]]) -> dict[str, Any]:
    options = []
    for option in instance.options_of(table):
        item: dict[str, Any] = {"name": instance.option_names[option]}
        group = int(instance.option_group[option])
        if group >= 0:
            level = int(instance.option_level[option])
            item["fusion"] = {"group": instance.fusion_groups[group], "level": level}
        item["blocks"] = [
            _block_dict(instance, instance.block(b), shards) for b in instance.blocks_of(option)
        ]
        options.append(item)
    return {"name": instance.table_names[table], "options": options}


def _block_dict(
    instance: Instance, block: BlockView, shards: list[dict[str, Any]]
) -> dict[str, Any]:
    item: dict[str, Any] = {"where": block.where.name.lower(), "count": block.count}
    if block.where == Where.LIST:
        item = {"where": list(block.places or ())}
    elif block.places is not None:
        item["among"] = list(block.places)
    if block.distinct != (block.where == Where.ONE_MACHINE):
        item["distinct"] = block.distinct
    low, high = (int(instance.block_shards[block.index + i]) for i in (0, 1))
    item["shards"] = shards[low:high]
    return item


def _shard_dicts(instance: Instance) -> list[dict[str, Any]]:
    """Every shard entry."""
    names, found = [r.name for r in instance.resources], []
    rows = zip(
        instance.shard_use.tolist(), instance.shard_cost.tolist(), instance.shard_repeat.tolist(),
        instance.shard_move.tolist(), strict=True,
    )  # fmt: skip
    for use, cost, repeat, move in rows:
        item = {"use": {n: u for n, u in zip(names, use, strict=True) if u}, "cost": cost}
        if repeat != 1:
            item["repeat"] = repeat
        if move:
            item["move_bytes"] = move
        found.append(item)
    return found


def _constraint_dict(instance: Instance) -> dict[str, Any]:
    names, options = instance.table_names, instance.option_names
    result: dict[str, Any] = {}
    if instance.pins:
        result["pins"] = [
            {"table": names[p.table], "option": options[p.option]}
            | ({} if p.ranks is None else {"ranks": [list(r) for r in p.ranks]})
            for p in instance.pins
        ]
    if instance.forbidden:
        result["forbidden"] = [
            {"table": names[t], "option": options[o]} for t, o in instance.forbidden
        ]
    if instance.current:
        result["current"] = {names[c.table]: _current_dict(instance, c) for c in instance.current}
    for key in ("max_moved_tables", "max_moved_bytes"):
        if getattr(instance, key) is not None:
            result[key] = getattr(instance, key)
    return result


def _current_dict(instance: Instance, now: Current) -> Mapping[str, Any]:
    name = "(no longer an option)" if now.option < 0 else instance.option_names[now.option]
    return {"option": name, "ranks": [list(r) for r in now.ranks]}
