"""The fingerprint of an Instance: what decides its answer, in one text, and of that SHA-256.

docs/instance-format.md describes the text. ``formulations/checker.py`` derives it from the file,
and this from the arrays; they share no line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from formulations.instance.instance import Instance

_FORMAT = "milp-planner-instance/1"


def fingerprint(instance: Instance) -> str:
    """SHA-256, in hexadecimal, of the lines that say what decides the answer.

    A line of JSON for the cluster, for each table, and for the constraints. Names are in it, but
    neither the instance's own name nor its source, unit or reference.
    """
    digest = sha256()
    for number, line in enumerate(_lines(instance)):
        digest.update(b"\n" * bool(number) + json.dumps(line, separators=(",", ":")).encode())
    return digest.hexdigest()


def _lines(instance: Instance) -> Iterator[list[Any]]:
    names, options = instance.table_names, instance.option_names
    resources = [[r.name, r.scope.value, r.capacity.tolist()] for r in instance.resources]
    yield [_FORMAT, instance.objective.value, instance.machines, instance.phases, resources]
    runs = _runs(instance)
    for t, name in enumerate(names):
        found = []
        for o in instance.options_of(t):
            blocks = [_block(instance, b, runs[b]) for b in instance.blocks_of(o)]
            found.append([options[o], _fusion(instance, o), blocks])
        yield [name, found]
    now = sorted(instance.current, key=lambda c: c.table)
    yield [
        [[names[p.table], options[p.option], p.ranks] for p in instance.pins],
        [[names[t], options[o]] for t, o in instance.forbidden],
        [[names[c.table], None if c.option < 0 else options[c.option], c.ranks] for c in now],
        instance.max_moved_tables, instance.max_moved_bytes,
    ]  # fmt: skip


def _fusion(instance: Instance, option: int) -> list[Any] | None:
    group, level = int(instance.option_group[option]), int(instance.option_level[option])
    return None if group < 0 else [instance.fusion_groups[group], level]


def _block(instance: Instance, index: int, runs: list[list[Any]]) -> list[Any]:
    """Where, count, distinct, the ranks or machines allowed, shards."""
    block = instance.block(index)
    listed = block.where.name == "LIST"
    where = block.places if listed else block.where.name.lower()
    return [where, block.count, block.distinct, None if listed else block.places, runs]


def _runs(instance: Instance) -> list[list[list[Any]]]:
    """Of every block the runs of equal shards: length (1 if single), cost, use, bytes moved."""
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
