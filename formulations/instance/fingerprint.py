"""The fingerprint of an Instance: the SHA-256 of a text with everything that decides its answer.

docs/instance-format.md describes the text. This module derives it from the arrays;
``formulations/checker.py`` derives it from the file, and the two share no code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.runtime.collector import uncollected

if TYPE_CHECKING:
    from formulations.instance.instance import Instance

_FORMAT = "milp-planner-instance/1"


def fingerprint(instance: Instance) -> str:
    """SHA-256, in hexadecimal, of one line of JSON for the cluster, each table, and the
    constraints.

    The lines contain all names but the instance's own, and neither its source, unit nor reference.
    """
    digest, encode = sha256(), json.JSONEncoder(separators=(",", ":")).encode
    with uncollected():
        for number, line in enumerate(_lines(instance)):
            digest.update(b"\n" * bool(number) + encode(line).encode())
    return digest.hexdigest()


def _lines(instance: Instance) -> Iterator[list[Any]]:
    names, options = instance.table_names, instance.option_names
    resources = [[r.name, r.scope.value, r.capacity.tolist()] for r in instance.resources]
    first = [_FORMAT, instance.objective.value, instance.machines, instance.phases, resources]
    yield [*first, *([instance.hidden] if instance.hidden else [])]
    blocks = _blocks(instance)
    parts = [blocks[low:high] for low, high in pairwise(instance.option_blocks.tolist())]
    found = list(map(list, zip(options, _fusions(instance), parts, strict=True)))
    for name, (low, high) in zip(names, pairwise(instance.table_options.tolist()), strict=True):
        yield [name, found[low:high]]
    now = sorted(instance.current, key=lambda c: c.table)
    yield [
        [[names[p.table], options[p.option], p.ranks] for p in instance.pins],
        [[names[t], options[o]] for t, o in instance.forbidden],
        [[names[c.table], None if c.option < 0 else options[c.option], c.ranks] for c in now],
        instance.max_moved_tables, instance.max_moved_bytes,
    ]  # fmt: skip


def _fusions(instance: Instance) -> Iterator[list[Any] | None]:
    """Group and level of every option; None for an option without a group."""
    levels = zip(instance.option_group.tolist(), instance.option_level.tolist(), strict=True)
    for group, level in levels:
        yield None if group < 0 else [instance.fusion_groups[group], level]


def _blocks(instance: Instance) -> list[list[Any]]:
    """Kind of place, count, distinct, allowed ranks or machines, and runs of shards of every
    block."""
    from formulations.instance.instance import Where

    names = [None if kind == Where.LIST else kind.name.lower() for kind in Where]
    places = [None if p < 0 else instance.place_sets[p] for p in instance.block_places.tolist()]
    where = [names[kind] for kind in instance.block_where.tolist()]
    columns = (
        [name or place for name, place in zip(where, places, strict=True)],
        instance.block_count.tolist(), instance.block_distinct.tolist(),
        [name and place for name, place in zip(where, places, strict=True)], _runs(instance),
    )  # fmt: skip
    return list(map(list, zip(*columns, strict=True)))


def _runs(instance: Instance) -> list[list[list[Any]]]:
    """The runs of equal shards of every block: length (1 if shared), cost, use, bytes moved."""
    amounts = instance.shard_cost, instance.shard_use, instance.shard_move[:, None]
    rows = np.hstack(amounts)
    new = np.append(True, np.any(rows[1:] != rows[:-1], axis=1))[: len(rows)]
    new[instance.block_shards[:-1]] = True
    first, ends = np.flatnonzero(new), np.append(0, np.cumsum(new))[instance.block_shards]
    length = np.add.reduceat(instance.shard_repeat, first) if len(first) else first
    length[ends[:-1][np.diff(ends) == 1]] = 1
    parts = [part[first].tolist() for part in (*amounts[:2], instance.shard_move)]
    found = [[n, *row] for n, *row in zip(length.tolist(), *parts, strict=True)]
    return [found[low:high] for low, high in pairwise(ends.tolist())]
