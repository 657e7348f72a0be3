"""Check a plan and its proof: one file, Python's standard library only, no solver.

    python checker.py plan.json
    python checker.py outcome.json instance.json.gz

Names and rules are those of docs/instance-format.md, docs/outcome.md and docs/proof.md. It exits
with 0 and a verdict, with 1 where a claim is refuted, with 2 where the input cannot be read.
"""

from __future__ import annotations

import base64
import gc
import gzip
import io
import json
import sys
import zlib
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterator
from functools import cache
from operator import add, le, lt, mul, sub
from pathlib import Path
from typing import Any

MAX_BYTES = 256 * 2**20  # that are read or unpacked


class Unreadable(Exception):
    """The input is not what the pages describe; nothing is said about its claims."""


class Refuted(Exception):
    """A claim of the outcome is not so."""


def need(good: object, sentence: str, error: type[Exception] = Unreadable) -> None:
    """Refuse to go on."""
    if not good:
        raise error(sentence)


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape.

    A shape is a range, a type, a set of texts, a tuple of alternatives, [the shape of items],
    {None: the shape of values} or {key: its shape}; keys that end in ? may be missing.
    """
    if type(shape) is range:
        return type(value) is int and value in shape
    if type(shape) is tuple:
        return any(fits(value, one) for one in shape)
    if type(shape) is list:
        return type(value) is list and all([fits(item, shape[0]) for item in value])
    if type(shape) is set:
        return type(value) is str and value in shape
    if type(shape) is type or type(value) is not dict:
        return type(value) is shape
    if None in shape:
        return all([fits(item, shape[None]) for item in value.values()])
    known = {key.rstrip("?"): inner for key, inner in shape.items()}
    good = known.keys() & shape.keys() <= value.keys() <= known.keys()
    return good and all([fits(item, known[key]) for key, item in value.items()])


def parse(source: Path | str, what: str) -> Any:
    """JSON in UTF-8, gzipped or not, no NaN and no key twice: of a file, or from base64."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(found := dict(pairs)) == len(pairs), f"{what} has a key twice in an object")
        return found

    try:
        if isinstance(source, str):
            data = base64.b64decode(source, validate=True)
        else:
            need(source.is_file(), f"{what} is no regular file")
            with source.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        if data.startswith(b"\x1f\x8b"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        need(len(data) <= MAX_BYTES, f"{what} has more than {MAX_BYTES} bytes")
        hooks: dict[str, Any] = {"parse_constant": lambda name: need(False, f"{what} has {name}")}
        return json.loads(data.decode(), object_pairs_hook=unique, **hooks)
    except (OSError, EOFError, RecursionError, ValueError, zlib.error) as error:
        raise Unreadable(f"{what} cannot be read: {str(error)!a:.60}") from error


# The instance
AMOUNT, COUNT, SIGNED = range(2**53), range(1, 2**53), range(1 - 2**53, 2**53)
ON_MACHINES = {"any_rank_of_one_machine", "one_machine"}
FREE = {"any_rank", *ON_MACHINES}
SHARD = {"cost": [SIGNED], "use?": {None: AMOUNT}, "repeat?": COUNT, "move_bytes?": AMOUNT}
SHARDS = {"shards": [SHARD], "distinct?": bool}
BLOCK = (
    {"where": FREE, "count?": COUNT, "among?": [AMOUNT], **SHARDS},
    {"where": {"cluster"}, "count?": COUNT, **SHARDS},
    {"where": ({"every_rank"}, [AMOUNT]), "count?": range(1, 2), **SHARDS},
)
OPTION = {"name": str, "blocks": [BLOCK], "fusion?": {"group": str, "level": SIGNED}}
RESOURCE = {"name": str, "scope": {"rank", "machine", "cluster"}, "capacity": (AMOUNT, [AMOUNT])}
CHOSEN, PLACED = {"table": str, "option": str}, {"option": str, "ranks": [[AMOUNT]]}
INSTANCE = {
    "format": {"milp-planner-instance/1"}, "ranks": COUNT, "machines": [[AMOUNT]], "phases": [str],
    "objective": {"total", "busiest_rank", "step_time"}, "resources": [RESOURCE],
    "tables": [{"name": str, "options": [OPTION]}], "forbidden?": [CHOSEN],
    "pins?": [{**CHOSEN, "ranks?": [[AMOUNT]]}], "current?": {None: PLACED},
    "max_moved_tables?": AMOUNT, "max_moved_bytes?": AMOUNT,
    "name?": str, "source?": str, "time_unit?": str, "reference?": list,
}  # fmt: skip

#: ``amounts``, by *coordinate*: a cost a phase, their sum, uses, bytes if moved; ``kinds`` it fits.
Shard = namedtuple("Shard", "amounts move_bytes kinds")
#: Shards alike: so many, on any of the ranks, or if not ``free`` one on each.
Part = namedtuple("Part", "times shard ranks free")
#: An option of a table: ``home`` is the position of its home block, or -1, ``homes`` its machines.
Option = namedtuple("Option", "name fusion moves blocks home homes first floor excess")


class Block:
    """Shards placed together: ``copies`` of its ``sites``, by machine (-1: it is about none)."""

    def __init__(self, instance: Instance, entry: Any, named: Any, moves: bool) -> None:
        where, self.count, shards = entry["where"], entry.get("count", 1), entry["shards"]
        self.runs = [(item.get("repeat", 1), instance.shard(item, moves)) for item in shards]
        self.where = "list" if type(where) is list else where
        self.free = self.where in {"cluster", "any_rank", "any_rank_of_one_machine"}
        self.copies = self.count if where == "one_machine" else 1
        self.distinct = where != "cluster" and entry.get("distinct", where == "one_machine")
        many = len(instance.machines if self.where in ON_MACHINES else instance.ranks)
        places = where if self.where == "list" else entry.get("among", range(many))
        good = len(set(places)) == len(places) > 0 and max(places) < many
        need(good, "ranks or machines must be different ones in range")
        regions = {-1: (many,) if where == "cluster" else tuple(places)}
        if self.where in ON_MACHINES:
            regions = {machine: instance.machines[machine] for machine in places}
        sizes = {self.count} if self.free else set(map(len, regions.values()))
        total = sum([length for length, _ in self.runs])
        need(total == 1 or sizes == {total}, "give one shard for all positions, or one a position")
        sites = {q: self._parts(instance, ranks, named) for q, ranks in regions.items()}
        sites = {machine: parts for machine, parts in sites.items() if parts}
        need(where != "cluster" or sites, "on no rank, it may not use that")
        self.sites = sites if len(sites) >= self.copies or not self.distinct else {}
        values = list(zip(*[shard.amounts for _, shard in self.runs], strict=True))
        covers = where == "every_rank" or (where == "one_machine" and len(instance.machines) == 1)
        self.floor = [covers * self.copies * min(value) for value in values]
        self.excess = [(where != "cluster") * max(value) - covers * min(value) for value in values]

    def _parts(self, instance: Instance, ranks: tuple[int, ...], named: Any) -> tuple[Part, ...]:
        """The shards with the ranks they may take of these, or take; () if one has none."""
        parts, start = [], 0
        if named is not None and self.where in FREE:
            inside = tuple([rank for rank in ranks if rank in named])
            ranks = ranks if inside and not self.free else inside
        alike = len({shard for _, shard in self.runs}) == 1
        total = self.count if self.free else len(ranks)
        least = self.count if self.distinct and alike else 1
        for length, shard in self.runs if not alike else [(total, self.runs[0][1])]:
            piece = ranks if self.free else ranks[start : start + length]
            left, start = piece, start + length
            if len(shard.kinds) < len(instance.kinds):
                left = tuple([rank for rank in piece if instance.held[rank] in shard.kinds])
            if len(left) < max(1, least if self.free else len(piece)):
                return ()
            parts.append(Part(length, shard, left, self.free))
        return tuple(parts)

    def seat(self, instance: Instance, ranks: list[int]) -> Iterator[tuple[int, Shard, int]]:
        """How many of a shard are on a rank; :class:`Refuted`: the ranks are no places of it."""
        wrong, rest, sites = f"ranks {ranks!a:.60} are no place", ranks, list[int]()
        for _ in range(self.copies):
            machine = instance.machine_of.get(rest[0], -1) if rest else -1
            sites.append(-1 if -1 in self.sites else machine)
            need(sites[-1] in self.sites, wrong, Refuted)
            for times, shard, places, free in self.sites[sites[-1]]:
                if self.where == "cluster":
                    yield times, shard, places[0]
                    continue
                piece, rest = rest[:times], rest[times:]
                good = set(piece) <= set(places) if free else tuple(piece) == places
                need(good and len(piece) == times, wrong, Refuted)
                yield from ((1, shard, rank) for rank in piece)
        taken = sites if self.where == "one_machine" else ranks
        apart = len(set(taken)) == len(taken) or not self.distinct
        need(apart and not rest, wrong, Refuted)


class Instance:
    """An instance file, read strictly.

    Its *coordinates* are a cost a phase, their sum, the resources, and bytes that move. The rank
    after the last is where the shards of ``cluster`` blocks are: nowhere.
    """

    def __init__(self, document: Any) -> None:
        need(fits(document, INSTANCE), "the instance is not as its page says")
        self.machines = [tuple(ranks) for ranks in document["machines"]]
        self.machine_of = {rank: q for q, ranks in enumerate(self.machines) for rank in ranks}
        self.ranks = tuple(range(sum(map(len, self.machines))))
        good = sorted(self.machine_of) == list(self.ranks) and document["ranks"] == len(self.ranks)
        need(good and all(self.machines), "machines must part the ranks")
        self.phases, self.objective = document["phases"], document["objective"]
        need(len(set(self.phases)) == len(self.phases) > 0, "phases must be different names")
        self.limits = {key: document.get(f"max_{key}") for key in ("moved_tables", "moved_bytes")}
        self._read_places(document["resources"])
        tables, self.current = document["tables"], document.get("current", {})
        need(self.current or set(self.limits.values()) == {None}, "limits on moves need 'current'")
        pins, forbidden = document.get("pins", []), document.get("forbidden", [])
        self.pins = {pin["table"]: pin for pin in pins}
        self.tables = {t["name"]: [self._option(t, o) for o in t["options"]] for t in tables}
        known = {(t, o.name): o for t, options in self.tables.items() for o in options}
        wished = {(entry["table"], entry["option"]) for entry in [*pins, *forbidden]}
        there = wished <= known.keys() and self.current.keys() <= self.tables.keys()
        need(there, "pins, forbidden or current name what is not there")
        sizes = len(tables), len(pins), sum(map(len, self.tables.values()))
        once = sizes == (len(self.tables), len(self.pins), len(known))
        need(once and all(self.tables.values()), "each table needs options, and nothing is twice")
        barred = {(entry["table"], entry["option"]) for entry in forbidden}
        barred |= {(t, o) for t, o in known if self.pins.get(t, {}).get("option", o) != o}
        self.allowed = {key: option for key, option in known.items() if key not in barred}
        self.names["fusion"] = {o.fusion[0]: 0 for o in known.values() if o.fusion}

    def _read_places(self, resources: list[Any]) -> None:
        """Names, places and capacities by coordinate; what each rank can hold."""
        nowhere, total = len(self.ranks), self.objective == "total"
        at = {"rank": [*self.ranks, nowhere], "cluster": [0] * (nowhere + 1)}
        at["machine"] = [*[self.machine_of[rank] for rank in self.ranks], len(self.machines)]
        first = len(self.phases) + 1  # of the coordinates of resources
        items = [("rank", 1)] * len(self.phases) + [("cluster" if total else "rank", 1)]
        items += [(item["scope"], item["capacity"]) for item in resources]
        items += [("cluster", self.limits["moved_bytes"] or 0)]
        self.at, self.capacities, held = [at[scope] for scope, _ in items], list[Any](), list[Any]()
        for k, (scope, amounts) in enumerate(items):
            size = len(set(at[scope][:-1]))
            self.capacities.append(amounts if type(amounts) is list else [amounts] * size)
            need(len(self.capacities[k]) == size, "a resource has one capacity a place")
            full = [*self.capacities[k], 0] if k >= first and scope != "cluster" else None
            held.append([full[place] if full else float("inf") for place in at[scope]])
        self.held = list(zip(*held, strict=True))
        self.kinds = set(self.held)
        phases = {phase: k for k, phase in enumerate(self.phases)}
        costs = phases if self.objective == "step_time" else {self.objective: first - 1}
        uses = {item["name"]: k for k, item in enumerate(resources, first)}
        need(len(uses) == len(resources), "a resource is named twice")
        ranked = {name: k for name, k in uses.items() if self.at[k] is at["rank"]}
        self.names: dict[str, dict[Any, int]] = {
            "cost": costs, "largest_cost": {} if total else costs,
            "capacity": uses, "largest_use": ranked,
            **{key: {} if most is None else {None: -1} for key, most in self.limits.items()},
        }  # fmt: skip

    def _option(self, table: dict[str, Any], entry: dict[str, Any]) -> Option:
        name, fusion, blocks = entry["name"], entry.get("fusion"), entry["blocks"]
        pin, now = self.pins.get(table["name"], {}), self.current.get(table["name"])
        moves = now is not None and now["option"] != name
        named = (pin if pin.get("option") == name else {}).get("ranks", [None] * len(blocks))
        inside = all(max(ranks or [0]) < len(self.ranks) for ranks in named)
        good = inside and len(named) == len(blocks) > 0
        need(good, "an option needs blocks, and a pin that names ranks has some for each")
        found = [Block(self, b, ranks, moves) for b, ranks in zip(blocks, named, strict=True)]
        home = next((i for i, block in enumerate(found) if block.where in FREE), -1)
        first = found[home].runs[0][1].amounts if found[home].where != "one_machine" else ()
        sites = found[home].sites if home >= 0 else {}
        near = sites[-1][0].ranks if -1 in sites else ()
        homes = {self.machine_of[rank] for rank in near} or set(sites)
        floor = list(map(sum, zip(*[block.floor for block in found], strict=True)))
        excess = list(map(max, zip(*[block.excess for block in found], strict=True)))
        fused = (fusion["group"], fusion["level"]) if fusion else None
        return Option(name, fused, moves, found, home, homes or {None}, first, floor, excess)

    def shard(self, entry: dict[str, Any], moves: bool) -> Shard:
        costs, use, moved = entry["cost"], entry.get("use", {}), entry.get("move_bytes", 0)
        need(len(costs) == len(self.phases), "a shard has one cost a phase")
        need(self.objective == "total" or min(costs) >= 0, "a cost is below 0")
        need(use.keys() <= self.names["capacity"].keys(), "a shard uses an unknown resource")
        uses = [use.get(name, 0) for name in self.names["capacity"]]
        found = (*costs, sum(costs), *uses, moves * moved)
        return Shard(found, moved, frozenset([k for k in self.kinds if all(map(le, found, k))]))


# The plan
def check_plan(instance: Instance, tables: Any) -> dict[str, int]:
    """The three objectives of a plan; :class:`Refuted` says which constraint it does not keep."""
    need(fits(tables, {None: PLACED}), "tables of the outcome are not as the page says")
    need(tables.keys() == instance.tables.keys(), "a table is only in one of both", Refuted)
    loads = [[0] * len(instance.at) for _ in instance.held]
    moved, levels = {"moved_tables": 0, "moved_bytes": 0}, dict[str, int]()
    for name in instance.tables:
        option, ranks, moves = _chosen(instance, name, tables[name])
        fused = option.fusion is None or levels.setdefault(*option.fusion) == option.fusion[1]
        need(fused, f"fusion group {option.fusion!a:.60} is at two levels", Refuted)
        moved["moved_tables"] += moves
        for block, taken in zip(option.blocks, ranks, strict=True):
            for times, shard, rank in block.seat(instance, taken):
                moved["moved_bytes"] += moves * times * shard.move_bytes
                loads[rank] = list(map(add, loads[rank], [times * a for a in shard.amounts]))
    columns, phases = list(zip(*loads, strict=True)), len(instance.phases)
    for name, k in instance.names["capacity"].items():
        used = [0] * (len(instance.capacities[k]) + 1)
        for place, load in zip(instance.at[k], columns[k], strict=True):
            used[place] += load
        need(all(map(le, used, instance.capacities[k])), f"{name!a:.60} is exceeded", Refuted)
    for key, most in instance.limits.items():
        need(most is None or moved[key] <= most, f"max_{key} is exceeded: {moved[key]}", Refuted)
    peaks = [max(column[:-1]) for column in columns]
    of_all = {"total": sum(columns[phases]), "busiest_rank": peaks[phases]}
    return of_all | {"step_time": sum(peaks[:phases])}


def _chosen(instance: Instance, table: str, entry: dict[str, Any]) -> tuple[Option, Any, bool]:
    """The option of a table, its ranks, and whether the table moves."""
    ranks, what = entry["ranks"], f"table {table!a:.60}"
    option: Any = instance.allowed.get((table, entry["option"]))
    need(option, f"{what} may not have the option {entry['option']!a:.60}", Refuted)
    need(len(ranks) == len(option.blocks), f"{what} has not one list of ranks a block", Refuted)
    spread, now = list(map(sorted, ranks)), instance.current.get(table)
    pinned = instance.pins.get(table, {}).get("ranks", ranks)
    need(spread == list(map(sorted, pinned)), f"{what} is not on the ranks of its pin", Refuted)
    return option, ranks, bool(now and (option.moves or spread != list(map(sorted, now["ranks"]))))


# The certificate
OF = {"of": str, "times": range(10**4300)}
LARGEST = {"table": AMOUNT, "machine?": AMOUNT, **OF}
COSTS = ({"row": {"cost"}, "at?": AMOUNT, **OF}, {"row": {"largest_cost"}, **LARGEST})
ROWS = (
    {"row": {"capacity"}, "at?": AMOUNT, **OF}, {"row": {"largest_use"}, **LARGEST},
    {"row": {"fusion"}, "table": AMOUNT, "level": SIGNED, **OF},
    {"row": {"moved_tables", "moved_bytes"}, "times": OF["times"]},
)  # fmt: skip
LEAF, SPLIT = {"use?": [AMOUNT], "pack?": str}, {"table": AMOUNT, "use?": [AMOUNT]}
NODE = (LEAF, {"options": [[AMOUNT]], **SPLIT}, {"machines": [[AMOUNT]], **SPLIT})
TREE = {"version": range(3, 4), "nodes": [NODE]}
CERTIFICATE = (
    {"kind": {"bound"}, "target": int, "vectors": [[(*ROWS, *COSTS)]], **TREE},
    {"kind": {"infeasible"}, "vectors": [[ROWS]], **TREE},
)

MOST_COMBINED, MOST_STEPS = 2**12, 10**8  # by one node that packs

#: An option by its position in its table, and its home; None: none, or none that matters.
Choice = namedtuple("Choice", "position home option floor peak")


class Vector:
    """Rows that are added up: ``limit`` is the right-hand side, :meth:`price` what a choice adds.

    ``covers`` has the multipliers of largest-shard rows by machine (-1: all ranks) and coordinate,
    ``own`` the same by table as well.
    """

    def __init__(self, instance: Instance, rows: list[dict[str, Any]], top: int) -> None:
        self.instance, self.moved, zeros = instance, 0, [0] * len(instance.at)
        self.covers: dict[int, list[int]] = defaultdict(zeros.copy)
        self.own: dict[tuple[int, int], list[int]] = defaultdict(zeros.copy)
        self.fused, levels = Counter[Any](), defaultdict[Any, Counter[int]](Counter)
        self._least = cache(self._block)  # of blocks that options share
        limits, factors = zeros.copy(), [[0] * (len(held) + 1) for held in instance.capacities]
        for row in rows:
            kind, name, times, at = row["row"], row.get("of"), row["times"], row.get("at")
            table, machine = row.get("table", -1), row.get("machine", -1)
            k: Any = instance.names[kind].get(name)
            sizes = len(instance.tables), len(instance.machines), len(instance.capacities[k or 0])
            good = k is not None and all(map(lt, (table, machine, at or 0), sizes))
            need(good, f"a vector has a row of what is not there: {row!a:.90}")
            if kind == "moved_tables":
                self.moved += times
                limits[k] += times * instance.limits[kind]
            elif kind == "fusion":
                self.fused[table, (name, row["level"])] += times
                levels[name][row["level"]] += times
            elif "table" in row:
                self.covers[machine][k] += times
                self.own[table, machine][k] += times
                ranks = instance.machines[machine] if machine >= 0 else instance.ranks
                limits[k] += times * max([instance.capacities[k][rank] for rank in ranks])
            else:
                for place in range(sizes[2]) if at is None else [at]:
                    factors[k][place] += times
                    limits[k] += times * instance.capacities[k][place]
        costs = len(instance.phases) + 1
        self.limit = top * max(limits[:costs]) + sum(limits[costs:])
        self.limit += sum([max(group.values()) for group in levels.values()])
        columns = [[f[p] for p in at] for f, at in zip(factors, instance.at, strict=True)]
        weights = list(zip(*columns, strict=True))
        self._rows = cache(lambda ranks: Counter([weights[rank] for rank in ranks]))

    def price(self, table: int, choice: Choice) -> int:
        """What the choice adds at least to the left-hand side."""
        home, option = choice.home, choice.option
        price = self.moved * option.moves + self.fused[table, option.fusion]
        for position, block in enumerate(option.blocks):
            price += self._least(block, home if position == option.home else None)
        price += sum(map(mul, self.own.get((table, -1), ()), option.excess))
        return price + sum(map(mul, self.own.get((table, home), ()), option.first))

    def _block(self, block: Block, home: int | None) -> int:
        """The least that a block adds, with its first shard at home."""
        least = min([self._site(block, *site) for site in block.sites.items()])
        if home is None:
            return block.copies * least
        parts = block.sites.get(home)
        if parts is None:  # any_rank
            one, *rest = block.sites[-1]
            near = tuple([r for r in one.ranks if self.instance.machine_of[r] == home])
            parts = (one._replace(times=1, ranks=near), one._replace(times=one.times - 1), *rest)
        return (block.copies - 1) * least + self._site(block, home, parts)

    def _site(self, block: Block, machine: int, parts: tuple[Part, ...]) -> int:
        price = 0
        for times, shard, ranks, free in parts:
            rows = self._rows(ranks).items()
            each = [(sum(map(mul, row, shard.amounts)), n) for row, n in rows]
            price += times * min(each)[0] if free else sum([one * n for one, n in each])
        for q, row in self.covers.items():
            here = q == machine or len(self.instance.machines) == 1
            if block.where == "every_rank" or (block.where == "one_machine" and here):
                inside = set(self.instance.ranks if q < 0 else self.instance.machines[q])
                values = [p.shard.amounts for p in parts if not inside.isdisjoint(p.ranks)]
                price += sum(map(mul, row, map(min, zip(*values, strict=True))))
        return price


class Proof:
    """A certificate on its instance, read strictly."""

    def __init__(self, instance: Instance, document: Any) -> None:
        need(fits(document, CERTIFICATE), "the certificate is not as its page says")
        self.instance, self.nodes, self.target = instance, document["nodes"], document.get("target")
        top = (self.target or 0) - 1
        self.vectors = [Vector(instance, rows, top) for rows in document["vectors"]]
        # what one rank may bear at most, and the coordinates that it is a sum over
        names, self.sums = instance.names, [[k] for k in instance.names["largest_use"].values()]
        self.most, loads = (
            [max(instance.capacities[k]) for [k] in self.sums],
            [*names["largest_use"]],
        )
        if self.target is not None and instance.objective != "total":
            loads.append(instance.objective)
            self.sums.append(list(names["cost"].values()))
            self.most.append(top)
        self.loads, self.steps = {name: i for i, name in enumerate(loads)}, 0
        self.lists = [self._lists(node) for node in self.nodes]
        need(len(self.nodes) == 1 + sum(map(len, self.lists)), "every node but one must be a case")

    def _lists(self, node: dict[str, Any]) -> list[list[int]]:
        """The cases of a split, none at a leaf; what the node names must be there."""
        use, lists = node.get("use", []), node.get("options", node.get("machines", []))
        tables = list(self.instance.tables.values())
        good = max(use, default=-1) < len(self.vectors) and node.get("table", -1) < len(tables)
        good = good and node.get("pack") in {None, *self.loads}
        need(good, "there is no such vector or table, or it cannot be packed")
        if "table" in node:
            end = len(tables[node["table"]] if "options" in node else self.instance.machines)
            good = lists and all(i < end for items in lists for i in items)
            need(good, "a split has no case, or one that is not there")
        return lists

    def open_case(self) -> str | None:
        """The first node that is not closed, in a sentence; None: the claim is proved."""
        homes = any("machines" in node for node in self.nodes)
        homes = homes or any(q >= 0 for vector in self.vectors for q in vector.covers)
        states: list[Any] = [[self._choices(table, homes) for table in self.instance.tables]]
        for position, (node, lists) in enumerate(zip(self.nodes, self.lists, strict=True)):
            need(position < len(states), "a node comes before the split that it is a case of")
            state, states[position] = states[position], None
            closed = state is None or not (self._bare(state) and self._apply(node, state))
            if closed or ("pack" in node and not self._packs(self.loads[node["pack"]], state)):
                states += [None] * len(lists)  # below a node that is closed
                continue
            if not lists:
                return f"node {position} is open"
            table, key = node["table"], "position" if "options" in node else "home"
            cases = [{None, *items} for items in lists]  # None: without a home
            left = [(getattr(choice, key), choice) for choice in state[table]]
            if not {case for case, _ in left} <= set().union(*cases):
                return f"node {position} is open: its split leaves a case out"
            for case in cases:
                kept = [choice for one, choice in left if one in case]
                states.append([*state[:table], kept, *state[table + 1 :]])
        return None

    def _choices(self, table: str, homes: bool) -> list[Choice]:
        """Those at the root: of no option that is barred or has a block without a place."""
        found = []
        for position, option in enumerate(self.instance.tables[table]):
            allowed = (table, option.name) in self.instance.allowed
            if allowed and all(block.sites for block in option.blocks):
                floor = [sum([option.floor[k] for k in ks]) for ks in self.sums]
                peak = [sum([option.floor[k] + option.excess[k] for k in ks]) for ks in self.sums]
                places = option.homes if homes else {None}
                found += [Choice(position, place, option, floor, peak) for place in places]
        return found

    def _bare(self, state: list[list[Choice]]) -> bool:
        """Remove what cannot stand beside all floors; False: a table has nothing left."""
        while all(state):
            floors = [list(map(min, zip(*[c.floor for c in left], strict=True))) for left in state]
            room = list(map(sub, self.most, map(sum, zip(*floors, strict=True))))
            count = sum(map(len, state))
            for t, floor in enumerate(floors):
                most = list(map(add, room, floor))
                state[t] = [choice for choice in state[t] if all(map(le, choice.peak, most))]
            if count == sum(map(len, state)):
                return True
        return False

    def _apply(self, node: dict[str, Any], state: list[list[Choice]]) -> bool:
        """Remove what sums of rows rule out, each time with the bare rule; False: nothing left."""
        for vector in [self.vectors[v] for v in node.get("use", [])]:
            prices = [[vector.price(t, choice) for choice in left] for t, left in enumerate(state)]
            slack = vector.limit - sum(map(min, prices))
            for t, row in enumerate(prices):
                most, pairs = slack + min(row), zip(state[t], row, strict=True)
                state[t] = [choice for choice, price in pairs if price <= most]
            if slack < 0 or not self._bare(state):
                return False
        return True

    def _packs(self, f: int, state: list[list[Choice]]) -> bool:
        """Whether some combination of choices fits: its items into bins, beside its floors."""
        bins, self.steps = len(self.instance.ranks), 0
        tables = [{self._load(choice, f) for choice in left} for left in state]
        rest = sum([min(loads)[0] for loads in tables])
        combined = {(0, 0, ())}  # loads of the tables so far; the rest is the least of the others
        for loads in tables:
            before, combined, rest = combined, set(), rest - min(loads)[0]
            for load, floor, items in before:
                for more, base, others in loads:
                    if load + more + rest <= bins * self.most[f]:
                        self._step(len(items) + len(others))
                        both = tuple(sorted(items + others, reverse=True))
                        combined.add((load + more, floor + base, both))
                        need(len(combined) <= MOST_COMBINED, "there is too much to pack")
        return any(self._fit(items, bins, self.most[f] - floor) for _, floor, items in combined)

    def _load(self, choice: Choice, f: int) -> tuple[int, int, tuple[int, ...]]:
        """What a choice adds to all ranks together; of it the floor of each, and the items."""
        items, floor = list[int](), choice.floor[f]
        for block in choice.option.blocks:
            if block.where in {"any_rank", "any_rank_of_one_machine"}:
                for part in next(iter(block.sites.values())):
                    size = sum([part.shard.amounts[k] for k in self.sums[f]])
                    self._step(part.times if size else 0)
                    items += [size] * (part.times if size else 0)
        load = floor * len(self.instance.ranks) + sum(items)
        return load, floor, tuple(sorted(items))

    def _fit(self, items: tuple[int, ...], bins: int, room: int) -> bool:
        """Whether items, from the largest down, can be put into bins.

        A bin gets the largest item left, then any number of each size. It leaves a gap that is
        no larger than what the bins have to spare, and smaller than every item passed over.
        """
        seen, stack = set(), [(bins, 0, 0, (), items)]
        while stack:
            bins, free, gap, sizes, left = stack.pop()
            if sizes:
                size, many = sizes[0], sizes.count(sizes[0])
                smaller = sizes[many:]
                for n in range(free == room, min(many, free // size) + 1):
                    self._step(len(sizes) + len(left))
                    after, tight = free - n * size, gap if n == many else min(gap, size - 1)
                    if after - sum(smaller) <= tight:
                        stack.append((bins, after, tight, smaller, left + sizes[n:many]))
            elif (spare := bins * room - sum(left)) >= 0 and (bins, left) not in seen:
                if not left:
                    return True
                seen.add((bins, left))
                stack.append((bins - 1, room, spare, left, ()))
        return False

    def _step(self, many: int) -> None:
        """Count what packing one node takes."""
        self.steps += many
        need(self.steps <= MOST_STEPS, "packing takes too long")


# The outcome
PACKED = {"encoding": {"json+gzip+base64"}, "data": str}
VALUE = (range(-(2**63), 2**63), type(None))
OUTCOME = {
    "status": {"optimal", "feasible", "infeasible", "unknown"}, "objective": VALUE, "bound": VALUE,
    "objective_kind": str, "objectives": {None: VALUE}, "tables": (dict, type(None)),
    "bound_source": ({"method": str, "exact": bool}, type(None)), "certified_bound": VALUE,
    "certificate": (dict, type(None)),
}  # fmt: skip


def check(document: Any, outcome: Any) -> Iterator[str]:
    """What holds of an outcome, line by line, the verdict last; or an exception."""
    need(type(outcome) is dict, "the outcome is no object")
    claims = {key: item for key, item in outcome.items() if key in OUTCOME}
    need(fits(claims, OUTCOME), "the outcome is not as its page says")
    instance, found, proof = Instance(document), dict[str, int](), None
    if claims["tables"] is not None:
        found = check_plan(instance, claims["tables"])
    for name, value in [*claims["objectives"].items(), (instance.objective, claims["objective"])]:
        sentence = f"{name!a:.60} is {found.get(name)}, the outcome says {value}"
        need(found.get(name) == value, sentence, Refuted)
    if found:
        yield f"plan: complete, every constraint holds; {instance.objective} {claims['objective']}"
    if claims["certificate"] is not None:
        proof = Proof(instance, claims["certificate"])
        case, target = proof.open_case(), proof.target
        need(case is None, f"the certificate does not close: {case}", Refuted)
        says = "there is no plan" if target is None else f"no plan costs less than {target}"
        yield f"certificate: {says}"
    need(claims["objective_kind"] == instance.objective, "it is about another objective", Refuted)
    yield f"verdict: {verdict(claims, bool(found), proof)}"


def verdict(claims: dict[str, Any], planned: bool, proof: Proof | None) -> str:
    """What is certified and what is a solver's word, if the claims follow from plan and proof."""
    objective, bound, status = claims["objective"], claims["bound"], claims["status"]
    proved, source = proof.target if proof else None, claims["bound_source"] or {}
    impossible = proof is not None and proved is None
    closed = bound == objective and (bound == proved or source.get("exact"))
    right = ["optimal" if closed else "feasible"] if planned else ["infeasible", "unknown"]
    right = ["infeasible"] if impossible else right
    need(claims["certified_bound"] == proved, f"the certificate proves {proved}", Refuted)
    above = proved is None or (bound is not None and bound >= proved)
    need(above, f"bound is {bound}, below certified_bound", Refuted)
    need(not planned or bound is None or bound <= objective, "bound is above the plan", Refuted)
    need(status in right, f"status is {status}, which does not follow", Refuted)
    if impossible or (status == "optimal" and proved == objective):
        return f"certified {status}"
    by = f" by {source.get('method')!a:.60}" if status in {"optimal", "infeasible"} else ""
    text = "nothing certified" if proved is None else f"certified from {proved} on"
    if planned and proved is not None:
        parts = -(-10000 * (objective - proved) // max(1, abs(objective)))  # rounded up
        text = f"certified to {parts // 100}.{parts % 100:02d}%"
    return f"{status}{by}, {text}"


def main(paths: list[str]) -> int:
    """Check files; 0: a verdict, 1: a claim is refuted, 2: unreadable."""
    gc.disable()  # nothing here is cyclic, and there are millions of objects
    try:
        need(len(paths) in (1, 2), "give plan.json, or an outcome and its instance")
        files = [parse(Path(path), f"{path!a:.60}") for path in paths]
        if len(paths) == 1:
            good = type(files[0]) is dict and files[0].get("format") == "milp-planner-plan/1"
            need(good, "this is no plan.json; an outcome needs its instance as well")
            files = [files[0].get("outcome"), files[0].get("instance")]
        parts = [parse(file["data"], "a part") if fits(file, PACKED) else file for file in files]
        for line in check(parts[1], parts[0]):
            print(line)
    except (Refuted, Unreadable) as error:
        print(f"{type(error).__name__.lower()}: {error}", file=sys.stderr)
        return 1 if isinstance(error, Refuted) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
