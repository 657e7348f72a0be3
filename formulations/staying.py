"""What must move: of the tables that lie where a capacity no longer suffices, some have to leave.

The question is an instance of its own, small and easy to prove: each of these tables either stays,
with what it uses of the exceeded capacities, or goes, and then uses nothing. The least cost is a
lower bound on what moves, because in every plan a table that does not move is where it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from formulations.instance import Current, Instance, IntArray, Objective, Scope, Where
from formulations.instance.assigning import assigned
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.facts import bytes_to_move
from formulations.instance.strict_json import Reader, parse
from formulations.result.certificate import (
    Certificate,
    certificate_from_dict,
    certificate_to_dict,
)
from formulations.result.check import compute_loads
from formulations.result.placement import Placement


class Counted(StrEnum):
    """What is counted of the tables that move."""

    TABLES = "tables"
    BYTES = "bytes"


STAYS, GOES = "stays", "goes"


def limit_of(instance: Instance, counted: Counted) -> int | None:
    """How much may move; None: any amount."""
    if counted == Counted.TABLES:
        return instance.max_moved_tables
    return instance.max_moved_bytes


@dataclass(frozen=True)
class MustMove:
    """What every plan moves at least.

    Attributes
    ----------
    counted : Counted
    least : int
        Tables, or bytes.
    certificate : Certificate
        Of :func:`what_must_move`; what it proves is for ``verify`` to say.
    """

    counted: Counted
    least: int
    certificate: Certificate

    def forbids(self, instance: Instance) -> bool:
        """Whether less may move, so that there is no plan."""
        limit = limit_of(instance, self.counted)
        return limit is not None and self.least > limit

    def to_dict(self) -> dict[str, Any]:
        """As in ``Outcome.detail["must_move"]``; the certificate, whose numbers may be large, as
        text."""
        text = json.dumps(certificate_to_dict(self.certificate), separators=(",", ":"))
        return {"counted": self.counted.value, "least": self.least, "certificate": text}


def forced_of(detail: Mapping[str, Any]) -> list[MustMove]:
    """What must move, from ``Outcome.detail``.

    Raises
    ------
    InstanceError
        When it is malformed.
    """
    found, what = [], "detail.must_move"
    for item in detail.get("must_move", []):
        reader = Reader(item, what, {"counted", "least", "certificate"})
        counted = Counted(reader.choice("counted", [each.value for each in Counted]))
        text = reader.get("certificate", str)
        proof = certificate_from_dict(parse(text.encode(), what), what)
        found.append(MustMove(counted, reader.integer("least"), proof))
    return found


def what_must_move(instance: Instance, counted: Counted) -> Instance:
    """An instance whose least cost is a lower bound on what moves from ``current``.

    Its resources are the places whose capacity is exceeded if all tables stay; its tables are those
    that lie there, and those that cannot stay. Shards of a block that differ may change places
    without moving their table, so each uses as much as the least of them.
    """
    stays, capacity = _uses(instance), _joined([r.capacity for r in instance.resources])
    names = [f"{r.name} {place}" for r in instance.resources for place in range(len(r.capacity))]
    full = np.flatnonzero(np.sum([*stays.values(), 0 * capacity], axis=0) > capacity).tolist()
    size = bytes_to_move(instance)
    if counted == Counted.TABLES:
        size = np.ones_like(size)
    found = InstanceBuilder(
        [[0]], [counted.value], [(names[p], Scope.CLUSTER, int(capacity[p])) for p in full],
        Objective.TOTAL, "what must move",
    )  # fmt: skip
    for now in instance.current:
        use = stays.get(now.table)
        if use is not None and not use[full].any():
            continue
        found.add_table(instance.table_names[now.table])
        if use is not None:
            amounts = {names[place]: int(use[place]) for place in full}
            found.add_option(STAYS, [Block(Where.CLUSTER, [Shard(amounts, [0])])])
        ways = _others(instance, now, use is not None)
        if ways or use is None:  # without any, it has no place, and the instance no plan
            least = int(size[ways].min()) if ways else 0
            found.add_option(GOES, [Block(Where.CLUSTER, [Shard(cost=[least])])])
    return found.build()


def _uses(instance: Instance) -> dict[int, IntArray]:
    """What every table that may stay uses of each place of each resource, one after the other."""
    least = np.minimum.reduceat(instance.shard_use, instance.block_shards[:-1])
    least = np.repeat(least, np.diff(instance.block_shards), axis=0)
    fixed = np.repeat(instance.settled, np.diff(instance.block_shards))
    loose = replace(instance, shard_use=np.where(fixed[:, None], instance.shard_use, least))
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    ranks: list[list[IntArray]] = [[] for _ in range(instance.num_tables)]
    for now in instance.current:
        there = assigned(instance, now.option, now.ranks)
        if there is not None and instance.allowed[now.option]:
            options[now.table] = now.option
            ranks[now.table] = [np.asarray(block, dtype=np.int64) for block in there]
    plan = Placement(options, ranks)
    return {
        table: _joined(compute_loads(loose, plan, [table]).use)
        for table in np.flatnonzero(options >= 0).tolist()
    }


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _others(instance: Instance, now: Current, stays: bool) -> list[int]:
    """Options that a table may move to: its own too, unless it already is all that this can be."""
    found = [int(option) for option in instance.options_of(now.table) if instance.allowed[option]]
    fixed = stays and all(instance.settled[b] for b in instance.blocks_of(now.option))
    return [option for option in found if not (fixed and option == now.option)]
