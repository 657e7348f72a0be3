"""What must move: of the tables that lie where a capacity no longer suffices, some have to leave.

Two questions, both instances of their own. The *pooled* one is small and easy to prove: each of
these tables either stays, with what it uses of the exceeded capacities, or goes, and then uses
nothing. The whole one, which the checker makes from the instance's file (docs/proof.md), places
what goes as well, so that its least cost is what must move. In every plan a table that does not
move is where it was, so either least is a lower bound; a proof of the pooled one, put in the terms
of the whole one, proves that too.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from formulations import checker
from formulations.instance import Current, Instance, IntArray, Objective, Scope, Where
from formulations.instance.assigning import Ranks, assigned
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.facts import bytes_to_move, total_cost
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.instance import MAX_VALUE
from formulations.instance.strict_json import Reader
from formulations.result.certificate import Certificate, certificate_to_dict
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
    tables : tuple of int
        Those of which the proof speaks.
    apart : bool
        Whether it tells apart the ranks that an option with one shard may take.
    certificate : str
        Of the whole question about them, as gzipped JSON in base64; what it proves is for
        ``verify`` to say.
    """

    counted: Counted
    least: int
    tables: tuple[int, ...]
    apart: bool
    certificate: str

    def forbids(self, instance: Instance) -> bool:
        """Whether less may move, so that there is no plan."""
        limit = limit_of(instance, self.counted)
        return limit is not None and self.least > limit

    def to_dict(self) -> dict[str, Any]:
        """As in ``Outcome.detail["must_move"]``."""
        return {
            "counted": self.counted.value, "least": self.least, "tables": list(self.tables),
            "apart": self.apart, "certificate": self.certificate,
        }  # fmt: skip


def forced_of(detail: Mapping[str, Any]) -> list[MustMove]:
    """What must move, from ``Outcome.detail``.

    Raises
    ------
    InstanceError
        When it is malformed.
    """
    found, what = [], "detail.must_move"
    for item in detail.get("must_move", []):
        reader = Reader(item, what, {"counted", "least", "tables", "apart", "certificate"})
        counted = Counted(reader.choice("counted", [each.value for each in Counted]))
        tables = tuple(reader.integers(reader.value("tables"), "tables"))
        apart, text = reader.get("apart", bool), reader.get("certificate", str)
        found.append(MustMove(counted, reader.integer("least"), tables, apart, text))
    return found


def packed(certificate: Certificate) -> str:
    """A certificate, whose numbers may be large, as text."""
    text = json.dumps(certificate_to_dict(certificate), separators=(",", ":"))
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def whole_question(
    instance: Instance, counted: Counted, tables: Sequence[int], apart: bool = False
) -> Instance:
    """The instance of what must move of some tables, with the places of what goes."""
    document = checker.leaving(instance_to_dict(instance), counted.value, list(tables), apart)
    return instance_from_dict(document, "what must move")


def flattened(question: Instance) -> Pooled:
    """A whole question with one resource for each place, all of the cluster.

    What an option uses of a place is what its blocks without a choice use there: no less where it
    is ``apart`` and has one shard. A prover that knows no ranks proves it best.
    """
    named = _places(question)
    names = [" ".join(map(str, place.values())) for place in named]
    capacity = _joined([r.capacity for r in question.resources])
    places = [(n, Scope.CLUSTER, int(c)) for n, c in zip(names, capacity, strict=True)]
    found = InstanceBuilder([[0]], question.phases, places, Objective.TOTAL, question.name)
    cost, ways = total_cost(question)[:, 0].tolist(), list[list[range]]()
    for table, name in enumerate(question.table_names):
        found.add_table(name)
        options = question.options_of(table)
        ways.append([range(way, way + 1) for way in range(len(options))])
        for option in options:
            use = _settled_use(question, option)
            amounts = {names[p]: min(int(use[p]), MAX_VALUE - 1) for p in np.flatnonzero(use)}
            shard = Shard(amounts, [cost[option]])
            found.add_option(question.option_names[option], [Block(Where.CLUSTER, [shard])])
    tables = tuple(range(question.num_tables))
    return Pooled(found.build(), tables, ways, dict(zip(names, named, strict=True)))


def _places(instance: Instance) -> list[dict[str, Any]]:
    """``of`` and ``at`` of every place of each resource, one after the other."""
    return [
        {"of": r.name} if r.scope == Scope.CLUSTER else {"of": r.name, "at": place}
        for r in instance.resources
        for place in range(len(r.capacity))
    ]


def _settled_use(instance: Instance, option: int) -> IntArray:
    """What an option's blocks without a choice use of each place of each resource."""
    uses = [np.zeros(len(r.capacity), dtype=np.int64) for r in instance.resources]
    for index in instance.blocks_of(option):
        ranks = instance.settled_ranks(index)
        if ranks is None:
            continue
        block, scopes = instance.block(index), {Scope.RANK: ranks}
        many = block.count if block.unplaced else len(ranks)
        scopes[Scope.CLUSTER] = np.zeros(many, dtype=np.int64)
        scopes[Scope.MACHINE] = instance.machine_of[ranks]
        entries = [block.entry(position) for position in range(many)]
        for column, resource in enumerate(instance.resources):
            if block.unplaced and resource.scope != Scope.CLUSTER:
                continue
            np.add.at(uses[column], scopes[resource.scope], instance.shard_use[entries, column])
    return _joined(uses)


def question_to_plan(
    instance: Instance, question: Instance, placement: Placement
) -> Placement | None:
    """The instance's plan that an answer to the whole question about all tables means; None where
    a table has no option. It keeps no limit on what moves, nor the ranks that a pin names."""
    now = {each.table: each for each in instance.current}
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    ranks: list[list[IntArray]] = [[] for _ in range(instance.num_tables)]
    for table, chosen in enumerate(placement.options.tolist()):
        position, there = chosen - int(question.table_options[table]), None
        if table in now:
            there = _there(instance, now[table])
            ways = _others(instance, now[table], there is not None)
        else:
            ways = [option for option in instance.options_of(table) if instance.allowed[option]]
        if there is not None and position == 0:
            options[table] = now[table].option
            ranks[table] = [np.asarray(block, dtype=np.int64) for block in there]
            continue
        if not ways:
            return None
        options[table] = option = ways[position - (there is not None)]
        ranks[table] = list(placement.ranks[table][: len(instance.blocks_of(option))])
    return Placement(options, ranks)


@dataclass(frozen=True)
class Pooled:
    """The small question of what must move, and how it stands in the whole one.

    Attributes
    ----------
    question : Instance
        Its least cost is a lower bound on what moves from ``current``.
    tables : tuple of int
        The instance's tables that its own stand for.
    ways : list of lists of ranges
        For each option of each of its tables, the positions of the options in the whole question
        that it stands for.
    places : mapping of str to dict
        For each of its resources, ``of`` and ``at`` of the capacity that it stands for.
    """

    question: Instance
    tables: tuple[int, ...]
    ways: list[list[range]]
    places: Mapping[str, dict[str, Any]]

    def whole(self, certificate: Certificate) -> Certificate:
        """Its certificate as one of the whole question about its tables.

        An option there uses of the places no less, and costs no less, than what stands for it
        here, so whatever is closed here is closed there.
        """
        vectors = tuple([self._row(row) for row in vector] for vector in certificate.vectors)
        return replace(
            certificate, vectors=vectors, nodes=tuple(map(self._node, certificate.nodes))
        )

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["row"] != "capacity":
            return row
        return {"row": "capacity", **self.places[row["of"]], "times": row["times"]}

    def _node(self, node: dict[str, Any]) -> dict[str, Any]:
        if "options" not in node:
            return node
        ways = self.ways[node["table"]]
        cases = [[way for option in case for way in ways[option]] for case in node["options"]]
        return {**node, "options": cases}


def pooled_question(instance: Instance, counted: Counted) -> Pooled:
    """The small question of what must move.

    Its resources are the places whose capacity is exceeded if all tables stay; its tables are those
    that lie there, and those that cannot stay. Shards of a block that differ may change places
    without moving their table, so each uses as much as the least of them.
    """
    stays, capacity = _uses(instance), _joined([r.capacity for r in instance.resources])
    named = _places(instance)
    names = [" ".join(map(str, place.values())) for place in named]
    full = np.flatnonzero(np.sum([*stays.values(), 0 * capacity], axis=0) > capacity).tolist()
    size = np.minimum(bytes_to_move(instance), MAX_VALUE - 1)
    if counted == Counted.TABLES:
        size = np.ones_like(size)
    found = InstanceBuilder(
        [[0]], [counted.value], [(names[p], Scope.CLUSTER, int(capacity[p])) for p in full],
        Objective.TOTAL, "what must move",
    )  # fmt: skip
    tables, every = list[int](), list[list[range]]()
    for now in sorted(instance.current, key=lambda each: each.table):
        use = stays.get(now.table)
        if use is not None and not use[full].any():
            continue
        found.add_table(instance.table_names[now.table])
        tables.append(now.table)
        ways, others = list[range](), _others(instance, now, use is not None)
        if use is not None:
            amounts = {names[place]: min(int(use[place]), MAX_VALUE - 1) for place in full}
            found.add_option(STAYS, [Block(Where.CLUSTER, [Shard(amounts, [0])])])
            ways.append(range(1))
        if others or use is None:  # without any, it has no place, and the instance no plan
            least = int(size[others].min()) if others else 0
            found.add_option(GOES, [Block(Where.CLUSTER, [Shard(cost=[least])])])
            ways.append(range(len(ways), len(ways) + max(1, len(others))))
        every.append(ways)
    places = dict(zip(names, named, strict=True))
    return Pooled(found.build(), tuple(tables), every, places)


def _uses(instance: Instance) -> dict[int, IntArray]:
    """What every table that may stay uses of each place of each resource, one after the other."""
    least = np.minimum.reduceat(instance.shard_use, instance.block_shards[:-1])
    least = np.repeat(least, np.diff(instance.block_shards), axis=0)
    fixed = np.repeat(instance.settled, np.diff(instance.block_shards))
    loose = replace(instance, shard_use=np.where(fixed[:, None], instance.shard_use, least))
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    ranks: list[list[IntArray]] = [[] for _ in range(instance.num_tables)]
    for now in instance.current:
        if (there := _there(instance, now)) is not None:
            options[now.table] = now.option
            ranks[now.table] = [np.asarray(block, dtype=np.int64) for block in there]
    plan = Placement(options, ranks)
    return {
        table: _joined(compute_loads(loose, plan, [table]).use)
        for table in np.flatnonzero(options >= 0).tolist()
    }


def _there(instance: Instance, now: Current) -> Ranks | None:
    """The ranks in position order of a table that may stay; None if it may not."""
    there = assigned(instance, now.option, now.ranks)
    return there if there is not None and instance.allowed[now.option] else None


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _others(instance: Instance, now: Current, stays: bool) -> list[int]:
    """Options that a table may move to: its own too, unless it already is all that this can be."""
    found = [int(option) for option in instance.options_of(now.table) if instance.allowed[option]]
    fixed = stays and all(instance.settled[b] for b in instance.blocks_of(now.option))
    return [option for option in found if not (fixed and option == now.option)]
