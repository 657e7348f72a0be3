"""What must move: of the tables that lie where a capacity no longer suffices, some have to leave.

Two questions, both instances of their own. The *pooled* one is small and easy to prove: each of
these tables either stays, with what it uses of the exceeded capacities, or goes, and then uses
nothing. The whole one, which the checker makes from the instance's file (docs/proof.md), places
what goes as well, so that its least cost is what must move. In every plan a table that does not
move is where it was, so either least is a lower bound; a proof of the pooled one, put in the terms
of the whole one, proves that too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations import checker
from formulations.classes import classes_of
from formulations.instance import Current, Instance, IntArray, Objective, Scope, Where
from formulations.instance.assigning import Ranks, assigned
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.facts import bytes_to_move, per_option, shard_counts, total_cost
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.instance import MAX_VALUE
from formulations.presolve import presolve
from formulations.result.certificate import Certificate
from formulations.result.check import compute_loads
from formulations.result.must_move import Counted
from formulations.result.placement import Placement

STAYS, GOES = "stays", "goes"


def whole_question(
    instance: Instance,
    counted: Counted,
    tables: Sequence[int],
    apart: bool | tuple[int, ...] = False,
) -> Instance:
    """The instance of what must move of some tables, with the places of what goes."""
    told = list(apart) if isinstance(apart, tuple) else apart
    document = checker.leaving(instance_to_dict(instance), counted.value, list(tables), told)
    return instance_from_dict(document, "what must move")


def ways_to_lie(instance: Instance) -> list[int]:
    """Of all options of each table together, those alone that have few (docs/proof.md)."""
    document = instance_to_dict(instance)

    def ways(option: dict[str, Any]) -> int:
        many = prod(checker.choices(document, block)[0] for block in option["blocks"])
        return many if many <= checker.MOST_WAYS else 0

    return [sum(map(ways, table["options"])) for table in document["tables"]]


def flattened(question: Instance) -> Pooled:
    """A whole question with one resource for each place, all of the cluster.

    What an option uses of a place is what its blocks without a choice use there: no less where all
    its ways to lie are ``apart``. Where some are not, all places of a resource together are one
    more. A prover that knows no ranks proves it best. An option stands for those that it dominates.
    """
    named, capacity = _places(question), _joined([r.capacity for r in question.resources])
    uses = np.stack([_settled_use(question, o) for o in range(question.num_options)])
    if not question.settled.all():
        every = _all_places(question)
        named, capacity = named + every.named, np.append(capacity, every.capacity)
        uses = np.concatenate([uses, every.totals], axis=1)
    names = list(map(str, range(len(named))))
    places = [(n, Scope.CLUSTER, int(c)) for n, c in zip(names, capacity, strict=True)]
    cost, kinds = total_cost(question)[:, 0].tolist(), classes_of(question).of

    def built(kept: NDArray[np.bool_]) -> Instance:
        found = InstanceBuilder([[0]], question.phases, places, Objective.TOTAL, question.name)
        for table, name in enumerate(question.table_names):
            found.add_table(name)
            for option in (o for o in question.options_of(table) if kept[o]):
                use, group = uses[option], int(question.option_group[option])
                amounts = {names[p]: min(int(use[p]), MAX_VALUE - 1) for p in np.flatnonzero(use)}
                level, shard = int(question.option_level[option]), Shard(amounts, [cost[option]])
                fusion = (question.fusion_groups[group], level) if group >= 0 else None
                blocks = [Block(Where.CLUSTER, [shard])]
                # named by what is equal in the whole question: only that may be counted as one
                found.add_option(f"{kinds[table]}/{question.option_names[option]}", blocks, fusion)
        return found.build()

    first, own = question.table_options, np.arange(question.num_options)
    best = presolve(built(own >= 0)).replacement
    none = np.maximum.reduceat(best, first[:-1]) < 0
    best = np.where(none[question.table_of], own, best)
    kept, ways = best == own, list[list[list[int]]]()
    for low, high in pairwise(first.tolist()):
        stands = (best[low:high] == low + way for way in np.flatnonzero(kept[low:high]))
        ways.append([np.flatnonzero(each).tolist() for each in stands])
    full = np.flatnonzero((uses[best < 0] > capacity).any(axis=0)).tolist()
    where, tables = dict(zip(names, named, strict=True)), tuple(range(question.num_tables))
    return Pooled(built(kept), tables, ways, where, tuple(names[place] for place in full))


def as_it_is(question: Instance) -> Pooled:
    """A whole question about all tables, in which whoever proves it places what goes."""
    each = [range(len(question.options_of(table))) for table in range(question.num_tables)]
    ways = [[range(way, way + 1) for way in own] for own in each]
    return Pooled(question, tuple(range(question.num_tables)), ways, {})


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


@dataclass(frozen=True)
class Pooled:
    """The small question of what must move, and how it stands in the whole one.

    Attributes
    ----------
    question : Instance
        Its least cost is a lower bound on what moves from ``current``.
    tables : tuple of int
        The instance's tables that its own stand for.
    ways : list of lists of sequences of int
        For each option of each of its tables, the positions of the options in the whole question
        that it stands for.
    places : mapping of str to dict
        For each of its resources, ``of`` and ``at`` of the capacity that it stands for; empty
        where they are the same.
    full : tuple of str
        Those of its resources for which some option is too large; no option stands for that.
    """

    question: Instance
    tables: tuple[int, ...]
    ways: Sequence[Sequence[Sequence[int]]]
    places: Mapping[str, dict[str, Any]]
    full: tuple[str, ...] = ()

    def whole(self, certificate: Certificate) -> Certificate:
        """Its certificate as one of the whole question about its tables.

        An option there uses of the places no less, and costs no less, than what stands for it
        here, so whatever is closed here is closed there.
        """
        vectors = tuple([self._row(row) for row in vector] for vector in certificate.vectors)
        rows = [{"row": "capacity", "of": name, "times": 1} for name in self.full]
        every = (*vectors, *([self._row(row)] for row in rows))
        root, *others = map(self._node, certificate.nodes)
        if rows:  # what is too large for a place goes first
            root = {**root, "use": [*range(len(vectors), len(every)), *root.get("use", [])]}
        return replace(certificate, vectors=every, nodes=(root, *others))

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["row"] != "capacity" or not self.places:
            return row
        return {"row": "capacity", **self.places[row["of"]], "times": row["times"]}

    def _node(self, node: dict[str, Any]) -> dict[str, Any]:
        if not node.keys() & {"options", "counted"}:
            return node
        ways = self.ways[node["tables"][0] if "counted" in node else node["table"]]

        def those(options: list[int]) -> list[int]:
            return [way for option in options for way in ways[option]]

        if "counted" in node:
            return {**node, "counted": those(node["counted"])}
        return {**node, "options": list(map(those, node["options"]))}


def pooled_question(instance: Instance, counted: Counted) -> Pooled:
    """The small question of what must move.

    Its resources are the places whose capacity is exceeded if all tables stay, all places of a
    resource together being one more; its tables are those that use these, and those that cannot
    stay. Shards of a block that differ may change places without moving their table, so each uses
    as much as the least of them. What goes uses of a place what its options use there at least that
    have no choice, and of all places together as much as its least option; options with a shard
    that has room nowhere do not count.
    """
    every, all_places = _all_places(instance), _joined([r.capacity for r in instance.resources])
    named, capacity = _places(instance) + every.named, np.append(all_places, every.capacity)
    names = list(map(str, range(len(named))))
    stays = {table: np.append(use, every.of(use)) for table, use in _uses(instance).items()}
    current = {now.table: now for now in instance.current}
    number = range(instance.num_tables)
    others = [_others(instance, table, current.get(table), table in stays) for table in number]
    room = _with_room(instance)
    some = ([option for option in ways if room[option]] or ways for ways in others)
    goes = [_least_of(instance, every.totals, ways) for ways in some]
    held = [stays.get(table, goes[table]) for table in number]
    full = np.flatnonzero(np.sum([*held, 0 * capacity], axis=0) > capacity).tolist()
    size = np.minimum(bytes_to_move(instance), MAX_VALUE - 1)
    if counted == Counted.TABLES:
        size = np.ones_like(size)
    found = InstanceBuilder(
        [[0]], [counted.value], [(names[p], Scope.CLUSTER, int(capacity[p])) for p in full],
        Objective.TOTAL, "what must move",
    )  # fmt: skip

    def way(name: str, use: IntArray, cost: int) -> None:
        amounts = {names[place]: min(int(use[place]), MAX_VALUE - 1) for place in full}
        found.add_option(name, [Block(Where.CLUSTER, [Shard(amounts, [cost])])])

    tables, ways = list[int](), list[list[range]]()
    for table, use in enumerate(held):
        if not use[full].any() and (table in stays or table not in current):
            continue
        found.add_table(instance.table_names[table])
        tables.append(table)
        first = int(table in stays)
        ways.append([range(1)] * first)
        if first:
            way(STAYS, use, 0)
        if others[table] or not first:  # without any, it has no place, and the instance no plan
            counts = table in current and others[table]
            way(GOES, goes[table], int(size[others[table]].min()) if counts else 0)
            ways[-1].append(range(first, first + max(1, len(others[table]))))
    return Pooled(found.build(), tuple(tables), ways, dict(zip(names, named, strict=True)))


def _least_of(instance: Instance, totals: IntArray, options: Sequence[int]) -> IntArray:
    """What one of some options uses of places at least: of each alone, then of all together."""
    places = np.zeros(sum(len(r.capacity) for r in instance.resources), dtype=np.int64)
    if not len(options):
        return np.append(places, 0 * totals[:1].sum(axis=0))
    if all(any(instance.settled[b] for b in instance.blocks_of(o)) for o in options):
        places = np.min([_settled_use(instance, o) for o in options], axis=0)
    return np.append(places, totals[options].min(axis=0))


def _with_room(instance: Instance) -> NDArray[np.bool_]:
    """Options each of whose shards fits some rank and some machine, bool array [options]."""
    over = np.zeros(len(instance.shard_use), dtype=bool)
    for column, resource in enumerate(instance.resources):
        if resource.scope != Scope.CLUSTER:
            over |= instance.shard_use[:, column] > resource.capacity.max()
    return ~per_option(instance, over & ~instance.off_rank, np.logical_or)


@dataclass(frozen=True, eq=False)
class _AllPlaces:
    """All places of a resource together, for each resource that has several.

    Attributes
    ----------
    named : list of dict
        ``of`` each.
    capacity : int64 array [these]
    totals : int64 array [options, these]
        What all shards of an option use at least.
    parts : list of slice
        Their places, among those of all resources one after the other.
    """

    named: list[dict[str, Any]]
    capacity: IntArray
    totals: IntArray
    parts: list[slice]

    def of(self, use: IntArray) -> IntArray:
        """What is used of all places, from what is used of each."""
        return np.asarray([use[part].sum() for part in self.parts], dtype=np.int64)


def _all_places(instance: Instance) -> _AllPlaces:
    ends = np.cumsum([0, *(len(r.capacity) for r in instance.resources)]).tolist()
    capacity = [int(r.capacity.sum()) for r in instance.resources]
    several = [
        c for c, r in enumerate(instance.resources) if len(r.capacity) > 1
        if capacity[c] < MAX_VALUE
    ]  # fmt: skip
    on_ranks = np.asarray([r.scope != Scope.CLUSTER for r in instance.resources], dtype=bool)
    use = np.where(instance.off_rank[:, None] & on_ranks, 0, instance.shard_use)
    totals = per_option(instance, use * shard_counts(instance)[:, None])
    return _AllPlaces(
        [{"of": instance.resources[c].name} for c in several],
        np.asarray([capacity[c] for c in several], dtype=np.int64),
        totals[:, several],
        [slice(ends[c], ends[c + 1]) for c in several],
    )


def _uses(instance: Instance) -> dict[int, IntArray]:
    """What every table that may stay uses of each place of each resource, one after the other."""
    least = np.minimum.reduceat(instance.shard_use, instance.block_shards[:-1])
    least = np.repeat(least, np.diff(instance.block_shards), axis=0)
    fixed = np.repeat(instance.settled, np.diff(instance.block_shards))
    loose = replace(instance, shard_use=np.where(fixed[:, None], instance.shard_use, least))
    plan = all_stay(instance)
    return {
        table: _joined(compute_loads(loose, plan, [table]).use)
        for table in np.flatnonzero(plan.options >= 0).tolist()
    }


def all_stay(instance: Instance) -> Placement:
    """Every table that may stay where it is, with option −1 for the others."""
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    ranks: list[list[IntArray]] = [[] for _ in range(instance.num_tables)]
    for now in instance.current:
        if (there := _there(instance, now)) is not None:
            options[now.table] = now.option
            ranks[now.table] = [np.asarray(block, dtype=np.int64) for block in there]
    return Placement(options, ranks)


def _there(instance: Instance, now: Current) -> Ranks | None:
    """The ranks in position order of a table that may stay; None if it may not."""
    there = assigned(instance, now.option, now.ranks)
    return there if there is not None and instance.allowed[now.option] else None


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _others(instance: Instance, table: int, now: Current | None, stays: bool) -> list[int]:
    """Options that a table may move to: its own too, unless it already is all that this can be."""
    found = [int(option) for option in instance.options_of(table) if instance.allowed[option]]
    if now is None or not stays or not _fixed(instance, now):
        return found
    return [option for option in found if option != now.option]


def _fixed(instance: Instance, now: Current) -> bool:
    """Whether an option has no choice of place."""
    return all(instance.settled[block] for block in instance.blocks_of(now.option))
