"""Check a plan and its proof: one file, Python's standard library only, no solver.

    python checker.py plan.json
    python checker.py outcome.json --instance instance.json.gz

Written from docs/instance-format.md, docs/outcome.md and docs/proof.md; names and rules are theirs.
All sums are integers of any size. It exits with 0 and a verdict, with 1 where a claim of the
outcome is refuted, and with 2 where the input cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import gc
import gzip
import io
import json
import stat
import sys
import zlib
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator
from operator import add, le, mul, sub
from pathlib import Path
from typing import Any

#: Most bytes that are read or unpacked.
MAX_BYTES = 256 * 2**20

Numbers = tuple[int, ...]


class Unreadable(Exception):
    """The input is not what the pages describe; nothing is said about its claims."""


class Refuted(Exception):
    """A claim of the outcome is not so."""


def need(good: object, sentence: str, error: type[Exception] = Unreadable) -> None:
    """Refuse to go on."""
    if not good:
        raise error(sentence)


def shown(value: Any) -> str:
    """A found value in a sentence: short, in printable ASCII."""
    return ascii(value)[:60]


def no_number(constant: str) -> None:
    """Refuse NaN and infinity."""
    raise Unreadable(f"{constant} is no number")


class Fields:
    """The shape of an object: the keys it must have, and those it may have."""

    def __init__(self, needed: dict[str, Any], **more: Any) -> None:
        self.needed, self.shapes = needed.keys(), needed | more


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape.

    A shape is a range, a type, a set of texts, a tuple of alternatives, [the shape of items],
    {None: the shape of an object's values}, or Fields.
    """
    kind = type(shape)
    if kind is range:
        return type(value) is int and value in shape
    if kind is list:
        return type(value) is list and all([fits(item, shape[0]) for item in value])
    if kind is Fields:
        good = type(value) is dict and shape.needed <= value.keys() <= shape.shapes.keys()
        return good and all([fits(item, shape.shapes[key]) for key, item in value.items()])
    if kind is dict:
        return type(value) is dict and all([fits(item, shape[None]) for item in value.values()])
    if kind is tuple:
        return any(fits(value, one) for one in shape)
    return type(value) is str and value in shape if kind is set else type(value) is shape


def parse(data: bytes | str, what: str) -> Any:
    """JSON in UTF-8, gzipped or not, without NaN and with no key twice; text is base64 of it."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(found := dict(pairs)) == len(pairs), f"{what} has a key twice in an object")
        return found

    try:
        data = data if isinstance(data, bytes) else base64.b64decode(data, validate=True)
        if data.startswith(b"\x1f\x8b"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        need(len(data) <= MAX_BYTES, f"{what} has more than {MAX_BYTES} bytes")
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=no_number)
    except (OSError, EOFError, RecursionError, ValueError, zlib.error) as error:
        raise Unreadable(f"{what} is no JSON: {shown(str(error))}") from error


# The instance
AMOUNT, COUNT, SIGNED = range(2**53), range(1, 2**53), range(1 - 2**53, 2**53)
PLACED = Fields({"option": str, "ranks": [[AMOUNT]]})
ON_MACHINES = {"any_rank_of_one_machine", "one_machine"}
FREE = {"any_rank", *ON_MACHINES}
SHARD = Fields({"cost": [SIGNED]}, use={None: AMOUNT}, repeat=COUNT, move_bytes=AMOUNT)
BLOCK = {"where": ({"every_rank", "cluster", *FREE}, [AMOUNT]), "shards": [SHARD]}
OPTION = {"name": str, "blocks": [Fields(BLOCK, count=COUNT, distinct=bool, among=[AMOUNT])]}
FUSION = Fields({"group": str, "level": SIGNED})
RESOURCE = {"scope": {"rank", "machine", "cluster"}, "capacity": (AMOUNT, [AMOUNT]), "name": str}
CHOSEN = {"table": str, "option": str}
TABLE = Fields({"name": str, "options": [Fields(OPTION, fusion=FUSION)]})
INSTANCE = Fields(
    {
        "format": {"milp-planner-instance/1"}, "ranks": COUNT, "machines": [[AMOUNT]],
        "phases": [str], "objective": {"total", "busiest_rank", "step_time"},
        "resources": [Fields(RESOURCE)], "tables": list,
    },
    name=str, source=str, time_unit=str, reference=list, forbidden=[Fields(CHOSEN)],
    pins=[Fields(CHOSEN, ranks=[[AMOUNT]])], current={None: PLACED}, max_moved_tables=AMOUNT,
    max_moved_bytes=AMOUNT,
)  # fmt: skip


#: ``weights``, by *coordinate*: costs, resources, and the bytes that move with the option.
Shard = namedtuple("Shard", "weights uses costs move_bytes")
#: Shards alike: so many, on any of the ranks, or if not ``free`` one on each; or on no rank.
Part = namedtuple("Part", "times shard ranks free")
#: An option of a table; ``home`` is the position of its home block, or -1.
Option = namedtuple("Option", "name fusion moves blocks home")


class Block:
    """Shards that are placed together; ``runs`` says how many of each.

    ``sites`` maps the machine of a block (-1 if it is about none) to what goes where; a block takes
    ``copies`` of them. No site: no place. Sites of ``even`` blocks are alike but for the ranks.
    """

    def __init__(
        self, instance: Instance, where: str, count: int, distinct: bool, *sets: Any
    ) -> None:
        among, listed, named, runs = sets
        self.where, self.distinct, self.runs = where, distinct, runs
        self.copies = count if where == "one_machine" else 1
        self.roomy = all(instance.open_to(s, instance.ranks) is instance.ranks for _, s in runs)
        self.even = self.roomy and named is None
        regions = {-1: (among or instance.ranks) if where in FREE else listed}
        if where in ON_MACHINES:
            regions = {q: instance.machines[q] for q in among or range(len(instance.machines))}
        self.sites: dict[int, tuple[Part, ...]] = {}
        for machine, ranks in regions.items():
            left = ranks
            if named is not None and where in FREE:
                left = tuple([rank for rank in ranks if rank in named])
            parts = self._parts(instance, count, ranks if where == "one_machine" else left)
            if parts and (left or where not in FREE):
                self.sites[machine] = parts
        if where == "one_machine" and distinct and len(self.sites) < count:
            self.sites = {}
        values = list(zip(*[shard.weights for _, shard in runs], strict=True))
        least, most = list(map(min, values)), list(map(max, values))
        covers = where == "every_rank" or (where == "one_machine" and len(instance.machines) == 1)
        self.floor = [covers * self.copies * value for value in least]
        self.excess = list(map(sub, most, least)) if covers else most
        if where == "cluster":
            self.excess = self.floor

    def _parts(self, instance: Instance, count: int, ranks: Numbers) -> tuple[Part, ...]:
        """The shards with the ranks they may take of these, or take; () if one has none."""
        free, parts, start = self.where.startswith("any_rank"), [], 0
        total = count if free or self.where == "cluster" else len(ranks)
        for length, shard in self.runs if len(self.runs) > 1 else [(total, self.runs[0][1])]:
            piece = ranks if free else ranks[start : start + length]
            fits = piece if self.roomy else instance.open_to(shard, piece)
            start += length
            enough = count if self.distinct and len(self.runs) == 1 else 1
            if len(fits) < (enough if free else len(piece)):
                return ()
            parts.append(Part(length, shard, fits, free))
        return tuple(parts)

    def at_home(self, instance: Instance, home: int) -> tuple[Part, ...]:
        """A site with the first shard on that machine."""
        if home in self.sites:
            return self.sites[home]
        first, *rest = self.sites[-1]
        near = tuple([rank for rank in first.ranks if instance.machine_of[rank] == home])
        return (first._replace(times=1, ranks=near), first._replace(times=first.times - 1), *rest)

    def seat(self, instance: Instance, ranks: list[int]) -> Iterator[tuple[Part, list[int]]]:
        """Each part with the ranks it has of these; :class:`Refuted`: they are no places of it."""
        sites, start = [], 0
        for _ in range(self.copies):
            machine = instance.machine_of.get(ranks[start], -1) if start < len(ranks) else -1
            sites.append(-1 if -1 in self.sites else machine)
            need(sites[-1] in self.sites, f"ranks {shown(ranks)} are no place", Refuted)
            for part in self.sites[sites[-1]]:
                times = part.times if part.ranks else 0
                piece, start = ranks[start : start + times], start + times
                good = set(piece) <= set(part.ranks) if part.free else tuple(piece) == part.ranks
                need(good and len(piece) == times, f"ranks {shown(ranks)} are no place", Refuted)
                yield part, piece
        places = sites if self.where == "one_machine" else ranks
        apart = len(set(places)) == len(places) or not self.distinct
        need(apart and start == len(ranks), f"ranks {shown(ranks)} are too many or alike", Refuted)


class Instance:
    """An instance file, read strictly; :class:`Unreadable` says what is wrong with it."""

    def __init__(self, document: Any) -> None:
        need(fits(document, INSTANCE), "the instance is not as its page says")
        for t, table in enumerate(document["tables"]):
            need(fits(table, TABLE), f"table {t} of the instance is not as its page says")
        self.machines = [tuple(ranks) for ranks in document["machines"]]
        self.machine_of = {rank: q for q, ranks in enumerate(self.machines) for rank in ranks}
        self.ranks = tuple(range(sum(map(len, self.machines))))
        good = sorted(self.machine_of) == list(self.ranks) and document["ranks"] == len(self.ranks)
        need(good and all(self.machines), "machines must part the ranks")
        self.phases, self.objective = document["phases"], document["objective"]
        need(len(set(self.phases)) == len(self.phases) > 0, "phases must be different names")
        self.costs = self.phases if self.objective == "step_time" else [self.objective]
        self._read_resources(document["resources"])
        self.current, pins = document.get("current", {}), document.get("pins", [])
        self.limits = {key: document.get(f"max_{key}") for key in ("moved_tables", "moved_bytes")}
        need(self.current or set(self.limits.values()) == {None}, "limits on moves need 'current'")
        self.pins = {pin["table"]: pin for pin in pins}
        self.barred = {(entry["table"], entry["option"]) for entry in document.get("forbidden", [])}
        wished = self.barred | {(pin["table"], pin["option"]) for pin in pins}
        self._blocks: dict[Any, Block] = {}
        self.tables = {table["name"]: self._options(table) for table in document["tables"]}
        known = {(name, option.name) for name, options in self.tables.items() for option in options}
        missing = wished - known or self.current.keys() - self.tables.keys()
        need(not missing, "pins, forbidden or current name what is not there")
        sizes = len(document["tables"]), len(pins), sum(map(len, self.tables.values()))
        once = sizes == (len(self.tables), len(self.pins), len(known))
        need(once and all(self.tables.values()), "each table needs options, and nothing is twice")
        self.barred |= {(t, o) for t, o in known if self.pins.get(t, {}).get("option", o) != o}
        self.groups = {o.fusion[0] for options in self.tables.values() for o in options if o.fusion}

    def _read_resources(self, resources: list[Any]) -> None:
        """Scopes and places by coordinate; capacities by resource."""
        self.resources = [item["name"] for item in resources]
        self._known = set(self.resources)
        need(len(self._known) == len(resources), "a resource is named twice")
        cost = "cluster" if self.objective == "total" else "rank"
        self.scopes = [cost] * len(self.costs) + [item["scope"] for item in resources] + ["cluster"]
        places = {"rank": self.ranks, "cluster": (0,) * len(self.ranks)}
        places["machine"] = tuple([self.machine_of[rank] for rank in self.ranks])
        self.at = [places[scope] for scope in self.scopes]  # by coordinate: each rank's place
        self.capacities: list[list[int]] = []
        held: list[Numbers] = [()] * len(self.ranks)
        for item in resources:
            amounts, at = item["capacity"], places[item["scope"]]
            amounts = amounts if type(amounts) is list else [amounts] * (max(at) + 1)
            need(len(amounts) == max(at) + 1, "a resource has one capacity a place")
            self.capacities.append(amounts)
            most = [2**53] if item["scope"] == "cluster" else amounts
            held = [(*row, most[place]) for row, place in zip(held, at, strict=True)]
        self._kinds = sorted(set(held))  # of ranks, by what they and their machines hold
        self._kind = [self._kinds.index(row) for row in held]

    def open_to(self, shard: Shard, ranks: Numbers) -> Numbers:
        """Those of the ranks whose capacities, and whose machine's, the shard does not exceed."""
        good = [all(map(le, shard.uses, kind)) for kind in self._kinds]
        return ranks if all(good) else tuple([rank for rank in ranks if good[self._kind[rank]]])

    def _options(self, table: dict[str, Any]) -> list[Option]:
        pin, now = self.pins.get(table["name"], {}), self.current.get(table["name"])
        options = []
        for entry in table["options"]:
            name, blocks, fusion = entry["name"], entry["blocks"], entry.get("fusion")
            moves = now is not None and now["option"] != name
            named = pin.get("ranks") if pin.get("option") == name else None
            named = [None] * len(blocks) if named is None else named
            need(len(named) == len(blocks) > 0, "each block needs ranks in a pin, an option blocks")
            pairs = zip(blocks, named, strict=True)
            found = tuple([self._block(block, ranks, moves) for block, ranks in pairs])
            home = next((i for i, block in enumerate(found) if block.where in FREE), -1)
            fused = (fusion["group"], fusion["level"]) if fusion else None
            options.append(Option(name, fused, moves, found, home))
        return options

    def _block(self, entry: dict[str, Any], named: list[int] | None, moves: bool) -> Block:
        where, count, among = entry["where"], entry.get("count", 1), entry.get("among")
        listed = self.ranks if where == "every_rank" else ()
        if type(where) is list:
            where, listed = "list", tuple(entry["where"])
        end = len(self.machines if where in ON_MACHINES else self.ranks)
        for places in ([None] if where != "list" else [listed]) + [among]:
            good = places is None or (len(set(places)) == len(places) > 0 and max(places) < end)
            need(good, "ranks or machines must be different ones in range")
        need(among is None or where in FREE, "among has no meaning here")
        need(not listed or count == 1, "count must be 1 where every rank is given")
        need(max(named or [0]) < len(self.ranks), "ranks of a pin must be in range")
        runs = self._runs(entry["shards"], moves)
        total, sizes = sum([length for length, _ in runs]), {len(listed) or count}
        if where == "one_machine":
            sizes = {len(self.machines[q]) for q in among or range(len(self.machines))}
        need(total == 1 or sizes == {total}, "give one shard for all positions, or one a position")
        for _, shard in runs if where == "cluster" else ():
            pairs = zip(shard.uses, self.scopes[len(self.costs) :], strict=False)
            need(all(s == "cluster" for u, s in pairs if u), "on no rank, it may not use that")
        distinct = entry.get("distinct", where == "one_machine")
        among, only = among and tuple(among), None if named is None else tuple(named)
        key = (where, count, distinct, among, listed, only, runs)
        if key not in self._blocks:
            self._blocks[key] = Block(self, *key)
        return self._blocks[key]

    def _runs(self, entries: list[Any], moves: bool) -> tuple[tuple[int, Any], ...]:
        """Shards and how often; neighbours that are equal are one run."""
        runs: list[tuple[int, Any]] = []
        for entry in entries:
            costs, use = tuple(entry["cost"]), entry.get("use", {})
            need(len(costs) == len(self.phases), "a shard has one cost a phase")
            need(self.objective == "total" or min(costs) >= 0, "a cost is below 0")
            need(use.keys() <= self._known, "a shard uses an unknown resource")
            uses = tuple([use.get(name, 0) for name in self.resources])
            moved, length = entry.get("move_bytes", 0), entry.get("repeat", 1)
            lifted = costs if self.objective == "step_time" else (sum(costs),)
            shard = Shard((*lifted, *uses, moved if moves else 0), uses, costs, moved)
            if runs and runs[-1][1] == shard:
                length += runs.pop()[0]
            runs.append((length, shard))
        need(runs, "a block needs a shard")
        return tuple(runs)


# The plan


def check_plan(instance: Instance, tables: Any) -> dict[str, int]:
    """The three objectives of a plan; :class:`Refuted` says which constraint it does not keep."""
    need(fits(tables, {None: PLACED}), "tables of the outcome are not as the page says")
    odd = shown(sorted(tables.keys() ^ instance.tables.keys())[:1])
    need(odd == "[]", f"a table is only in one of instance and plan: {odd}", Refuted)
    loads = [[0] * len(instance.phases) for _ in instance.ranks]
    used = [[0] * len(amounts) for amounts in instance.capacities]
    total, moved, levels = 0, {"moved_tables": 0, "moved_bytes": 0}, dict[str, int]()
    for name in instance.tables:
        option, ranks, moves = _chosen(instance, name, tables[name])
        fused = option.fusion is None or levels.setdefault(*option.fusion) == option.fusion[1]
        need(fused, f"fusion group {shown(option.fusion)} is at two levels", Refuted)
        moved["moved_tables"] += moves
        pairs = zip(option.blocks, ranks, strict=True)
        for (times, shard, _, _), taken in [s for b, r in pairs for s in b.seat(instance, r)]:
            total += times * sum(shard.costs)
            moved["moved_bytes"] += moves * times * shard.move_bytes
            for rank in taken:
                loads[rank] = list(map(add, loads[rank], shard.costs))
            for k, use in enumerate(shard.uses):
                at = instance.at[len(instance.costs) + k]
                for place in [at[rank] for rank in taken] if use else []:
                    used[k][place] += use
                if use and not taken:
                    used[k][0] += times * use
    for name, amounts, most in zip(instance.resources, used, instance.capacities, strict=True):
        need(all(map(le, amounts, most)), f"a capacity of {shown(name)} is exceeded", Refuted)
    for key, most in instance.limits.items():
        need(most is None or moved[key] <= most, f"max_{key} is exceeded: {moved[key]}", Refuted)
    peaks = map(max, zip(*loads, strict=True))
    return {"total": total, "busiest_rank": max(map(sum, loads)), "step_time": sum(peaks)}


def _chosen(instance: Instance, table: str, entry: dict[str, Any]) -> tuple[Option, Any, bool]:
    """The option of a table, its ranks, and whether the table moves."""
    name, ranks, where = entry["option"], entry["ranks"], f"table {shown(table)}"
    option = next((option for option in instance.tables[table] if option.name == name), None)
    if option is None or (table, name) in instance.barred:
        raise Refuted(f"{where} may not have the option {shown(name)}")
    need(len(ranks) == len(option.blocks), f"{where} has not one list of ranks a block", Refuted)
    spread, now = list(map(sorted, ranks)), instance.current.get(table)
    pinned = instance.pins.get(table, {}).get("ranks", ranks)
    need(spread == list(map(sorted, pinned)), f"{where} is not on the ranks of its pin", Refuted)
    return option, ranks, bool(now and (option.moves or spread != list(map(sorted, now["ranks"]))))


# The certificate: vectors and prices
FACTORS, ROWS = {None: (int, [int])}, {None: [[int]]}
VECTOR = Fields(
    {}, cost=FACTORS, capacity=FACTORS, largest_cost=ROWS, largest_use=ROWS, fusion=ROWS,
    moved_tables=int, moved_bytes=int,
)  # fmt: skip


class Choice:
    """An option, its position in its table, and its home; None: none, or none that matters."""

    def __init__(self, position: int, home: int | None, option: Option) -> None:
        self.position, self.home, self.option = position, home, option
        self.floor = list(map(sum, zip(*[block.floor for block in option.blocks], strict=True)))
        self.excess = list(map(max, zip(*[block.excess for block in option.blocks], strict=True)))
        self.peak = list(map(add, self.floor, self.excess))


def dot(one: Iterable[int], other: Iterable[int]) -> int:
    """The sum of the products."""
    return sum(map(mul, one, other))


class Vector:
    """Multipliers of rows: ``limit`` is their right-hand side, :meth:`price` what a choice adds.

    ``weights`` has the multipliers by rank and coordinate, ``covers`` those of largest-shard rows
    by machine (-1: all ranks) and coordinate, ``own`` the same by table.
    """

    def __init__(self, instance: Instance, rows: dict[str, Any], capacities: list[Any]) -> None:
        self.instance, self.rows, zeros = instance, rows, [0] * len(instance.scopes)
        self.weights = [zeros.copy() for _ in instance.ranks]
        self.covers: dict[int, list[int]] = {}
        self.own: dict[tuple[int, int], list[int]] = {}
        self.fused: Counter[tuple[int, str, int]] = Counter()
        self._known: dict[Any, Any] = {}
        limits = zeros.copy()
        for k, numbers in self._named("cost", "capacity"):
            at, wide = instance.at[k], type(numbers) is list and instance.scopes[k] != "cluster"
            factors = numbers if wide else [numbers] * (max(at) + 1)
            good = len(factors) == max(at) + 1 and all(type(f) is int and f >= 0 for f in factors)
            need(good, "a vector has a number >= 0, or one a rank or machine")
            for weights, place in zip(self.weights, at, strict=True):
                weights[k] += factors[place]
            limits[k] += dot(factors, capacities[k])
        for k, entries in self._named("largest_cost", "largest_use"):
            need(instance.scopes[k] == "rank", "a vector has largest shards of ranks only")
            for table, factor, machine in self._entries(entries, 2):
                need(-1 <= machine < len(instance.machines), "a vector has an unknown machine")
                self.covers.setdefault(machine, zeros.copy())[k] += factor
                self.own.setdefault((table, machine), zeros.copy())[k] += factor
                ranks = instance.ranks if machine < 0 else instance.machines[machine]
                limits[k] += factor * max([capacities[k][rank] for rank in ranks])
        self.limit = max(limits[: len(instance.costs)]) + sum(limits[len(instance.costs) :])
        for group, entries in rows.get("fusion", {}).items():
            need(group in instance.groups, f"a vector has an unknown group {shown(group)}")
            levels: Counter[int] = Counter()
            for table, level, factor in self._entries(entries, 3):
                levels[level] += factor
                self.fused[table, group, level] += factor
            self.limit += max(levels.values(), default=0)
        for key in instance.limits.keys() & rows.keys():
            good = rows[key] >= 0 and instance.limits[key] is not None
            need(good, f"a vector has {key}, of which there is no limit, or below 0")
            self.limit += rows[key] * instance.limits[key]
        for weights in self.weights:
            weights[-1] = rows.get("moved_bytes", 0)
        seen: dict[Any, int] = {}
        self._like = {-1: -1}  # the first machine with the same multipliers, by machine
        for q, ranks in enumerate(instance.machines):
            look = (*[tuple(self.weights[rank]) for rank in ranks], *self.covers.get(q, ()))
            self._like[q] = seen.setdefault(look, q)

    def _named(self, of_costs: str, of_resources: str) -> Iterator[tuple[int, Any]]:
        """Coordinate and multipliers of what two keys of the vector name."""
        costs, resources = self.instance.costs, self.instance.resources
        for key, names, first in (of_costs, costs, 0), (of_resources, resources, len(costs)):
            for name, numbers in self.rows.get(key, {}).items():
                need(name in names, f"a vector has an unknown {key}: {shown(name)}")
                yield first + names.index(name), numbers

    def _entries(self, entries: list[list[int]], least: int) -> Iterator[list[int]]:
        """Rows about tables, with machine -1 where none is named."""
        for entry in entries:
            good = least <= len(entry) <= 3 and 0 <= entry[0] < len(self.instance.tables)
            good = good and entry[-1] >= 0 and (least == 3 or entry[1] >= 0)
            need(good, f"a vector has a row {shown(entry)}")
            yield [*entry, -1][:3]

    def price(self, table: int, choice: Choice) -> int:
        """What the choice adds at least to the left-hand side."""
        option, home = choice.option, choice.home
        price = self.rows.get("moved_tables", 0) if option.moves else 0
        if option.fusion and self.fused:
            price += self.fused[(table, *option.fusion)]
        for position, block in enumerate(option.blocks):
            key = (block, home if position == option.home else None)
            if key not in self._known:
                self._known[key] = self._block(*key)
            price += self._known[key]
        price += dot(self.own.get((table, -1), ()), choice.excess)
        if home is not None and option.blocks[option.home].where != "one_machine":
            first = option.blocks[option.home].runs[0][1]
            price += dot(self.own.get((table, home), ()), first.weights)
        return price

    def _block(self, block: Block, home: int | None) -> int:
        """The least that a block adds, with its first shard at home."""
        sites = {self._like[q]: q for q in block.sites}.values() if block.even else block.sites
        least = min([self._site(block, q, block.sites[q]) for q in sites])
        if home is None:
            return block.copies * least
        site = self._site(block, home, block.at_home(self.instance, home))
        return (block.copies - 1) * least + site

    def _site(self, block: Block, machine: int, parts: tuple[Part, ...]) -> int:
        price = sum([self._part(part) for part in parts])
        alone = len(self.instance.machines) == 1
        for q, row in self.covers.items():
            here = block.where == "one_machine" and (alone or q == machine)
            if here or block.where == "every_rank":
                inside = set(self.instance.ranks if q < 0 else self.instance.machines[q])
                values = [p.shard.weights for p in parts if not inside.isdisjoint(p.ranks)]
                price += dot(row, map(min, zip(*values, strict=True)))
        return price

    def _part(self, part: Part) -> int:
        times, shard, ranks, free = part
        if not ranks:
            scopes = zip(self.weights[0], self.instance.scopes, strict=True)
            nowhere = [weight if scope == "cluster" else 0 for weight, scope in scopes]
            return times * dot(nowhere, shard.weights)
        if (free, ranks) not in self._known:
            rows = [self.weights[rank] for rank in ranks]
            columns = [list(map(sum, zip(*rows, strict=True)))]
            self._known[free, ranks] = list(map(list, set(map(tuple, rows)))) if free else columns
        least = min([dot(row, shard.weights) for row in self._known[free, ranks]])
        return times * least if free else least


# The certificate: the tree
LISTS = [[AMOUNT]]
NODE = Fields({}, use=[AMOUNT], table=AMOUNT, options=LISTS, machines=LISTS, nodes=[AMOUNT])
TREE = {"version": range(2, 3), "kind": {"bound", "infeasible"}, "vectors": list, "nodes": list}
CERTIFICATE = Fields(TREE, target=int)


class Left:
    """The choices that a table has left, with least floor and largest peak by coordinate."""

    def __init__(self, choices: list[Choice]) -> None:
        self.choices = choices
        self.floor = list(map(min, zip(*[choice.floor for choice in choices], strict=True)))
        self.peak = list(map(max, zip(*[choice.peak for choice in choices], strict=True)))


class Proof:
    """A certificate on its instance, read strictly."""

    def __init__(self, instance: Instance, document: Any) -> None:
        need(fits(document, CERTIFICATE), "the certificate is not as its page says")
        for key, shape in ("vector", VECTOR), ("node", NODE):
            for i, item in enumerate(document[f"{key}s"]):
                need(fits(item, shape), f"{key} {i} of the certificate is not as its page says")
        self.instance, self.nodes, self.tables = instance, document["nodes"], list(instance.tables)
        self.target, vectors = document.get("target"), document["vectors"]
        good = (document["kind"] == "bound") == ("target" in document)
        need(good, "a bound has a target, and nothing else has")
        self.top = None if self.target is None else self.target - 1
        costly = any({"cost", "largest_cost"} & rows.keys() for rows in vectors)
        need(good and not (costly and self.top is None), "a vector has costs, which have no limit")
        costs = [[self.top or 0] * len(instance.ranks) for _ in instance.costs]
        self.vectors = [Vector(instance, rows, costs + instance.capacities) for rows in vectors]
        parents = {c: i for i, node in enumerate(self.nodes) for c in self._children(node)}
        good = sorted(parents) == list(range(1, len(self.nodes)))
        count = sum(len(node.get("nodes", [])) for node in self.nodes)
        good = good and count == len(parents) and all(i < child for child, i in parents.items())
        need(good and self.nodes, "each node but the first needs one parent, before it")
        held = enumerate(instance.capacities, len(costs))
        self.most = [(k, max(held)) for k, held in held if instance.scopes[k] == "rank"]
        self.costs = len(costs) if self.target is not None and instance.objective != "total" else 0

    def _children(self, node: dict[str, Any]) -> list[int]:
        """The positions of a node's children; what it names must be there."""
        need(all(use < len(self.vectors) for use in node.get("use", [])), "there is no such vector")
        kinds, rest = node.keys() & {"options", "machines"}, node.keys() & {"table", "nodes"}
        need(
            len(kinds) < 2 and len(rest) == 2 * len(kinds), "a split has one kind, table and nodes"
        )
        for kind in kinds:
            need(node["table"] < len(self.tables), "there is no such table")
            options = self.instance.tables[self.tables[node["table"]]]
            end = len(options if kind == "options" else self.instance.machines)
            need(all(i < end for items in node[kind] for i in items), "a split names no such")
            need(len(node[kind]) == len(node["nodes"]) > 0, "a split needs one child a list")
        return list(node.get("nodes", []))

    def open_case(self) -> str | None:
        """The first node that is not closed, in a sentence; None: the claim is proved."""
        homes = any("machines" in node for node in self.nodes)
        homes = homes or any(q >= 0 for vector in self.vectors for q in vector.covers)
        waiting = [(0, [Left(self._choices(table, homes)) for table in self.tables])]
        while waiting:
            position, state = waiting.pop()
            node, table = self.nodes[position], self.nodes[position].get("table")
            if self._closed(node.get("use", []), state):
                continue
            if table is None:
                return f"node {position} is open"
            by_option, free = "options" in node, {None}
            lists = [
                set(items) if by_option else free.union(items)
                for items in node.get("options", node.get("machines"))
            ]
            spots = {c: c.position if by_option else c.home for c in state[table].choices}
            if not set(spots.values()) <= set().union(*lists):
                return f"node {position} is open: its split leaves a case out"
            for child, items in reversed(list(zip(node["nodes"], lists, strict=True))):
                kept = Left([choice for choice, spot in spots.items() if spot in items])
                waiting.append((child, [*state[:table], kept, *state[table + 1 :]]))
        return None

    def _choices(self, table: str, homes: bool) -> list[Choice]:
        """Those at the root: of no option that is barred or has a block without a place."""
        found, of = [], self.instance.machine_of
        for position, option in enumerate(self.instance.tables[table]):
            places: Iterable[int | None] = [None]
            if homes and option.home >= 0:
                places = sites = option.blocks[option.home].sites
                places = {of[rank] for rank in sites[-1][0].ranks} if -1 in sites else sites
            if (table, option.name) not in self.instance.barred and all(
                b.sites for b in option.blocks
            ):
                found += [Choice(position, place, option) for place in places]
        return found

    def _closed(self, use: list[int], state: list[Left]) -> bool:
        """Apply the bare rule and vectors to the state; whether nothing is left."""
        if not self._bare(state):
            return True
        return any(not (self._apply(self.vectors[v], state) and self._bare(state)) for v in use)

    def _bare(self, state: list[Left]) -> bool:
        """Remove what cannot stand beside all floors; False: a table has nothing left."""
        again = True
        while again and all(left.choices for left in state):
            again = False
            floors = list(map(sum, zip(*[left.floor for left in state], strict=True)))
            for t, left in enumerate(state):
                others = list(map(sub, floors, left.floor))
                if not self._fits(others, left.peak):
                    kept = [choice for choice in left.choices if self._fits(others, choice.peak)]
                    again = again or len(kept) < len(left.choices)
                    state[t] = Left(kept)
        return all(left.choices for left in state)

    def _fits(self, others: list[int], peak: list[int]) -> bool:
        loads = list(map(add, others, peak))
        good = self.top is None or not self.costs or sum(loads[: self.costs]) <= self.top
        return good and all(loads[k] <= most for k, most in self.most)

    def _apply(self, vector: Vector, state: list[Left]) -> bool:
        """Remove what the sum of rows rules out; False: nothing is possible."""
        prices = [[vector.price(t, c) for c in left.choices] for t, left in enumerate(state)]
        slack = vector.limit - sum(map(min, prices))
        for t, row in enumerate(prices) if slack >= 0 else ():
            if max(row) > (most := slack + min(row)):
                pairs = zip(state[t].choices, row, strict=True)
                state[t] = Left([choice for choice, price in pairs if price <= most])
        return slack >= 0


def check_certificate(document: Any, certificate: Any) -> str | None:
    """The case that a certificate leaves open, in a sentence; None: it proves its claim."""
    return Proof(Instance(document), certificate).open_case()


# The claims of an outcome
NULL = type(None)
VALUE = (range(-(2**63), 2**63), NULL)
OUTCOME = Fields({
    "status": {"optimal", "feasible", "infeasible", "unknown"}, "objective": VALUE, "bound": VALUE,
    "objective_kind": str, "objectives": {None: VALUE}, "tables": (dict, NULL),
    "bound_source": (Fields({"method": str, "exact": bool}), NULL), "certified_bound": VALUE,
    "certificate": (dict, NULL),
})  # fmt: skip


def check(document: Any, outcome: Any) -> Iterator[str]:
    """What holds of an outcome, line by line, the verdict last; or an exception."""
    need(type(outcome) is dict and OUTCOME.needed <= outcome.keys(), "the outcome lacks a key")
    claims = {key: outcome[key] for key in OUTCOME.needed}
    need(fits(claims, OUTCOME), "the outcome is not as its page says")
    instance, found, proof = Instance(document), dict[str, int](), None
    if claims["tables"] is not None:
        found = check_plan(instance, claims["tables"])
        yield "plan: complete; every shard is where it may be, every constraint holds"
    for name, value in [*claims["objectives"].items(), (instance.objective, claims["objective"])]:
        good, here = found.get(name) == value, f"{shown(name)} is {found.get(name)}"
        need(good, f"{here}, the outcome says {value}", Refuted)
    if found:
        yield f"objective: {instance.objective} {claims['objective']}, recomputed"
    if claims["certificate"] is not None:
        proof = Proof(instance, claims["certificate"])
        case, target = proof.open_case(), proof.target
        need(case is None, f"the certificate does not close: {case}", Refuted)
        says = "there is no plan" if target is None else f"no plan costs less than {target}"
        yield f"certificate: {says}"
    good = claims["objective_kind"] == instance.objective
    need(good, "the outcome is about another objective", Refuted)
    yield f"verdict: {verdict(claims, bool(found), proof)}"


def verdict(claims: dict[str, Any], planned: bool, proof: Proof | None) -> str:
    """What is certified and what is a solver's word, if the claims follow from plan and proof."""
    objective, bound, status = claims["objective"], claims["bound"], claims["status"]
    proved, source = proof.target if proof else None, claims["bound_source"] or {}
    impossible, word = proof is not None and proved is None, shown(source.get("method"))
    right = ["infeasible"] if impossible else ["infeasible", "unknown"]
    if planned:
        exact = bound == objective and (bound == proved or source.get("exact") is True)
        right = [] if impossible else ["optimal" if exact else "feasible"]
    below = proved is not None and (bound is None or bound < proved)
    for wrong, sentence in [
        (claims["certified_bound"] != proved, f"the certificate proves {proved}"),
        (below, f"bound is {bound}, below certified_bound"),
        (planned and bound is not None and bound > objective, f"bound {bound} is above the plan"),
        (status not in right, f"status is {status}, which does not follow"),
    ]:
        need(not wrong, sentence, Refuted)
    if impossible or (status == "optimal" and proved == objective):
        return f"certified {status}"
    text = "nothing certified" if proved is None else f"certified from {proved} on"
    if planned and proved is not None:
        parts = -(-10000 * (objective - proved) // max(1, abs(objective)))  # rounded up
        text = f"certified to {parts // 100}.{parts % 100:02d}%"
    words = {"optimal": f"; optimal is the word of {word}"}
    known = f"{status}, {text}" + words.get(status, "")
    return f"infeasible, the word of {word}" if status == "infeasible" else known


def read(path: str) -> Any:
    """Read a JSON file."""
    try:
        need(stat.S_ISREG(Path(path).stat().st_mode), f"{shown(path)} is no regular file")
        with open(path, "rb") as file:
            return parse(file.read(MAX_BYTES + 1), shown(path))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{shown(path)} cannot be read: {shown(str(error))}") from error


def main(arguments: list[str] | None = None) -> int:
    """Check files; 0: a verdict, 1: a claim is refuted, 2: unreadable."""
    parser = argparse.ArgumentParser(description="Check a plan and its proof.")
    parser.add_argument("file", help="plan.json, or an outcome beside --instance")
    parser.add_argument("--instance", help="the instance that the outcome answers")
    options = parser.parse_args(arguments)
    gc.disable()  # nothing here is cyclic, and there are millions of objects
    packed = Fields({"encoding": {"json+gzip+base64"}, "data": str})
    try:
        outcome = read(options.file)
        if type(outcome) is dict and outcome.get("format") == "milp-planner-plan/1":
            parts = [outcome.get("instance"), outcome.get("outcome")]
            parts = [parse(p["data"], "a part") if p and fits(p, packed) else p for p in parts]
        else:
            need(options.instance, "an outcome needs --instance")
            parts = [read(options.instance), outcome]
        for line in check(*parts):
            print(line)
    except Refuted as error:
        print(f"refuted: {error}")
        return 1
    except Unreadable as error:
        print(f"unreadable: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
