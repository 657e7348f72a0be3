"""Check a plan and its proof: one file, Python's standard library only, no solver.

    python checker.py plan.json
    python checker.py outcome.json instance.json.gz

Names and rules are those of docs/instance-format.md, docs/outcome.md and docs/proof.md.
"""

from __future__ import annotations

import gc
import gzip
import io
import json
import re
import sys
import zlib
from base64 import b64decode
from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache
from hashlib import sha256
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod
from operator import add, le, lt, mul, sub
from pathlib import Path
from typing import Any

MAX_BYTES = 256 * 2**20  # of a file, also after decompression
#: Control characters, lone surrogates, line separators and characters that change the direction.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]")


class Unreadable(Exception):
    """The input does not have the documented format; its claims were not judged."""


class Refuted(Exception):
    """A claim of the outcome is false."""


class NotChecked(Exception):
    """The certificate needs more steps than the checker allows; it may be right or wrong."""


def need(good: object, sentence: str, error: type[Exception] = Unreadable) -> None:
    """Raise an error unless a condition holds."""
    if not good:
        raise error(sentence)


def shaped(shape: Any) -> Callable[[Any], bool]:
    """A function that says whether a value has a shape.

    A shape is a range, a type, a set of texts, a tuple of alternatives, [the shape of the items],
    {None: the shape of the values} or {key: its shape}, where a key with ? may be missing.
    """
    if (kind := type(shape)) is range or kind is set:
        plain = int if kind is range else str
        return lambda value: type(value) is plain and value in shape
    if kind is tuple:
        alternatives = list(map(shaped, shape))
        return lambda value: any([good(value) for good in alternatives])
    if kind is list:
        each = shaped(shape[0])
        return lambda value: type(value) is list and all(map(each, value))
    if shape is str:
        return lambda value: type(value) is str and not UNPRINTABLE.search(value)
    if kind is type:
        return lambda value: type(value) is shape
    if None in shape:
        each = shaped(shape[None])
        return lambda value: type(value) is dict and all(map(each, value.values()))
    known = {key.rstrip("?"): shaped(inner) for key, inner in shape.items()}
    needed = known.keys() & shape.keys()

    def keyed(value: Any) -> bool:
        good = type(value) is dict and needed <= value.keys() <= known.keys()
        return good and all([known[key](item) for key, item in value.items()])

    return keyed


def parse(source: Path | str, what: str) -> Any:
    """Parse JSON in UTF-8, without NaN and duplicate keys.

    A path names a file, gzipped or not; a text is gzipped and encoded in base64.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(found := dict(pairs)) == len(pairs), f"{what} has a key twice in an object")
        return found

    def finite(text: str) -> float:
        need(abs(number := float(text)) < float("inf"), f"{what} has {text:.20}")
        return number

    try:
        if isinstance(source, Path):
            good = source.is_file() and source.stat().st_size <= MAX_BYTES
            need(good, f"{what} is no regular file of at most {MAX_BYTES} bytes")
        data = b64decode(source, validate=True) if isinstance(source, str) else source.read_bytes()
        if isinstance(source, str) or data.startswith(b"\x1f\x8b"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        need(len(data) <= MAX_BYTES, f"{what} has more than {MAX_BYTES} bytes")
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=finite,
                          parse_float=finite)  # fmt: skip
    except (OSError, EOFError, RecursionError, ValueError, zlib.error) as error:
        raise Unreadable(f"{what} cannot be read: {str(error)!a:.60}") from error


MOST_STEPS, STEPS_PER_OPTION = 5 * 10**7, 100  # of a certificate; about 3 microseconds each
READ_STEPS = 5 * 10**7  # of reading an instance and judging a plan on it; of what must move


class Meter:
    """Counts the steps left to what is named, which bounds time and memory: they are taken before
    what they pay for."""

    def __init__(self, left: int, what: str) -> None:
        self.left, self.what = left, what

    def take(self, many: int) -> None:
        """Count steps."""
        self.left -= many
        need(self.left >= 0, f"{self.what} takes too long", NotChecked)


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
BY_PHASE = {"step_time", "pipelined_step"}  # objectives with a cost for each phase
INSTANCE = shaped({
    "format": {"milp-planner-instance/1"}, "ranks": COUNT, "machines": [[AMOUNT]], "phases": [str],
    "objective": {"total", "busiest_rank", *BY_PHASE}, "resources": [RESOURCE], "hidden?": [AMOUNT],
    "tables": [{"name": str, "options": [OPTION]}], "forbidden?": [CHOSEN],
    "pins?": [{**CHOSEN, "ranks?": [[AMOUNT]]}], "current?": {None: PLACED},
    "max_moved_tables?": AMOUNT, "max_moved_bytes?": AMOUNT,
    "name?": str, "source?": str, "time_unit?": str, "reference?": list,
})  # fmt: skip

MOVED = {"moved_tables": -2, "moved_bytes": -1}  # limits on moves, with their coordinates
#: ``amounts`` by *coordinate*: the cost of each phase, the sum for a rank of those of which nothing
#: is hidden, the sum of all for the cluster, the uses, 0 for moved tables, and the moved bytes if
#: the option moves its table; ``kinds`` of ranks that have room for it. A shard on no rank has
#: amounts of the cluster only.
Shard = namedtuple("Shard", "amounts move_bytes kinds")
#: ``times`` equal shards on any of the ranks, or one on each if their block is not ``free``.
Part = namedtuple("Part", "times shard ranks")
#: An option of a table: ``home`` is its home block, or None, ``homes`` that block's machines.
Option = namedtuple("Option", "name fusion moves blocks home homes first floor excess")


class Block:
    """Shards placed together, on ``copies`` of the ``sites``, whose keys are machines, or -1 if the
    block does not choose a machine."""

    def __init__(self, instance: Instance, entry: Any, named: Any, moves: bool) -> None:
        where, self.count = entry["where"], entry.get("count", 1)
        instance.meter.take(instance.steps(entry))
        shards = merged(entry["shards"], instance.names["capacity"].keys())
        self.where, placed = "list" if type(where) is list else where, where != "cluster"
        self.runs = [(n, instance.shard(c, u, m, moves, placed)) for n, c, u, m in shards]
        self.free = self.where in {"cluster", "any_rank", "any_rank_of_one_machine"}
        self.copies = self.count if where == "one_machine" else 1
        self.distinct = placed and entry.get("distinct", where == "one_machine")
        whole = self.where in ON_MACHINES
        many = len(instance.machines if whole else instance.ranks)
        places = where if self.where == "list" else entry.get("among", range(many))
        good = len(set(places)) == len(places) > 0 and max(places) < many
        need(good, "ranks or machines must be different ones in range")
        regions = {q: instance.regions[q] for q in places} if whole else {-1: tuple(places)}
        sizes = {self.count} if self.free else set(map(len, regions.values()))
        every = len(places) if self.where == "list" else self.count
        every *= len(instance.ranks) if self.where in {"every_rank", "one_machine"} else 1
        times = [run * self.copies for run, _ in self.runs] if len(shards) > 1 else [every]
        sums = [(sum(map(abs, cost)), sum(use)) for _, cost, use, _ in shards]
        self.activity = [sum(map(mul, times, each)) for each in zip(*sums, strict=True)]
        total = sum([length for length, _ in self.runs])
        need(total == 1 or sizes == {total}, "give one shard for all positions, or one a position")
        each = [length for length, _ in self.runs] if len(self.runs) > 1 else [min(sizes)]
        self.numbers = [placed * self.copies * n for n in each]  # shards of each run
        once = self.distinct or self.where in {"every_rank", "list"}
        self.most = 1 if once else max(self.count, 1)  # shards on one rank
        named = named if placed else instance.ranks
        sites = {q: parts for q, r in regions.items() if (parts := self._parts(instance, r, named))}
        self.sites = sites if len(sites) >= self.copies or not self.distinct else {}
        values = list(zip(*[shard.amounts for _, shard in self.runs], strict=True))
        covers = not self.free and set(instance.ranks) in map(set, regions.values())
        self.least = [covers * min(value) for value in values]  # of each shard, on every rank
        self.floor = [self.copies * least for least in self.least]
        self.excess = [max(value) - covers * min(value) for value in values]

    def _parts(self, instance: Instance, ranks: tuple[int, ...], named: Any) -> tuple[Part, ...]:
        """The shards, each with the ranks that it may take or does take; () if one has none."""
        parts, start, total = list[Part](), 0, self.count if self.free else len(ranks)
        for length, shard in self.runs if len(self.runs) > 1 else [(total, self.runs[0][1])]:
            piece, start = ranks if self.free else ranks[start : start + length], start + length
            left, held = piece, instance.held
            if named is not instance.ranks or len(shard.kinds) < len(instance.kinds):
                left = tuple([r for r in piece if r in named and held[r] in shard.kinds])
            parts.append(Part(length, shard, left))
            if not left or not (self.free or left == piece):
                return ()
        seen = {r for p in parts for r in p.ranks} if self.distinct and self.free else range(total)
        return tuple(parts) if len(seen) >= total else ()

    def assignment(self, instance: Instance, ranks: list[int]) -> Iterator[tuple[int, Shard, int]]:
        """Number, shard and rank of all shards; :class:`Refuted` if the block cannot lie there."""
        wrong, rest = f"ranks {ranks!a:.60} are no place", ranks
        need(not self.distinct or len(set(ranks)) == len(ranks), wrong, Refuted)
        for _ in range(self.copies):
            machine = instance.machine_of.get(rest[0]) if rest else None
            parts = self.sites.get(-1, self.sites.get(machine, ()))
            need(parts, wrong, Refuted)
            for times, shard, places in parts:
                if self.where == "cluster":
                    yield times, shard, places[0]
                    continue
                instance.meter.take(1 + (len(places) + len(rest)) // 10)
                piece, rest = rest[:times], rest[times:]
                good = set(piece) <= set(places) if self.free else tuple(piece) == places
                need(good and len(piece) == times, wrong, Refuted)
                yield from ((1, shard, rank) for rank in piece)
        need(not rest, wrong, Refuted)


class Instance:
    """An instance file, read strictly."""

    def __init__(self, document: Any) -> None:
        need(INSTANCE(document), "the instance is not as its page says")
        self.meter = Meter(READ_STEPS, "reading the instance, or judging a plan on it,")
        self.machines = [tuple(ranks) for ranks in document["machines"]]
        self.machine_of = {rank: q for q, ranks in enumerate(self.machines) for rank in ranks}
        self.ranks = range(sum(map(len, self.machines)))
        good = sorted(self.machine_of) == list(self.ranks) and document["ranks"] == len(self.ranks)
        need(good and all(self.machines), "machines must part the ranks")
        self.regions = {-1: tuple(self.ranks), **dict(enumerate(self.machines))}
        self.phases, self.objective = document["phases"], document["objective"]
        need(len(set(self.phases)) == len(self.phases) > 0, "phases must be different names")
        self.hidden = document.get("hidden", [0] * len(self.phases))
        good = len(self.hidden) == len(self.phases)
        good = good and ("hidden" in document) == (self.objective == "pipelined_step")
        need(good, "hidden is one time a phase, for pipelined_step alone")
        self.limits = {key: document[f"max_{key}"] for key in MOVED if f"max_{key}" in document}
        self._read_places(document["resources"])
        tables, self.current = document["tables"], document.get("current", {})
        need(self.current or not self.limits, "limits on moves need 'current'")
        pins, forbidden = document.get("pins", []), document.get("forbidden", [])
        pinned, barred = [{(e["table"], e["option"]) for e in part} for part in (pins, forbidden)]
        self.pins = {(e["table"], e["option"]): e["ranks"] for e in pins if "ranks" in e}
        self.restrictions = [f"max_{key} is {most}" for key, most in self.limits.items()]
        for what, named in (("pinned", pins), ("forbidden", forbidden)):
            some = ", ".join([f"{e['table']!a:.40}: {e['option']!a:.40}" for e in named[:3]])
            more = ", …" if len(named) > 3 else ""
            self.restrictions += [f"{len(named)} {what} ({some}{more})"] if named else []
        alone = {e["table"] for e in [*pins, *forbidden]} | self.current.keys()
        read, self.blocks = dict[bytes, list[Option]](), dict[tuple[int, bool], Block]()
        self.tables = {t["name"]: self._options(t, alone, read) for t in tables}
        known = {(t, o.name): o for t, options in self.tables.items() for o in options}
        for k, what in enumerate(("costs", "uses")):
            each = [[sum([b.activity[k] for b in o.blocks]) for o in options if o.blocks]
                    for options in self.tables.values()]  # fmt: skip
            most = len(self.ranks) * sum(self.hidden) if what == "costs" else 0
            good = sum([max(sums, default=0) for sums in each]) + most < 2**62
            need(good, f"the {what} add up to 2^62 or more")
        there = pinned | barred <= known.keys() and self.current.keys() <= self.tables.keys()
        need(there, "pins, forbidden or current name what is not there")
        sizes, fixed = (len(tables), len(pins), sum(map(len, self.tables.values()))), dict(pinned)
        once = sizes == (len(self.tables), len(fixed), len(known))
        need(once and all(self.tables.values()), "each table needs options, and nothing is twice")
        barred |= {(t, name) for t, name in known if fixed.get(t, name) != name}
        self.allowed = {key: option for key, option in known.items() if key not in barred}
        self.names["fusion"] = {o.fusion[0]: 0 for o in known.values() if o.fusion}
        self.fingerprint = digest(identity(document, self.meter))
        self.document = document

    def _read_places(self, resources: list[Any]) -> None:
        """Read names, places and capacities by coordinate, and what each rank can hold."""
        at: dict[str, Any] = {"rank": self.ranks, "cluster": [0] * len(self.ranks)}
        at["machine"] = [self.machine_of[rank] for rank in self.ranks]
        first = len(self.phases) + 2  # coordinate of the first resource
        items = [("rank", 1)] * (first - 1) + [("cluster", 1)]
        items += [(item["scope"], item["capacity"]) for item in resources]
        items += [("cluster", self.limits.get(key, 0)) for key in MOVED]
        self.meter.take(len(items) * (1 + len(self.ranks) // 10))
        self.at, self.capacities = [at[scope] for scope, _ in items], list[Any]()
        for places, (_, amounts) in zip(self.at, items, strict=True):
            size = len(set(places))
            self.capacities.append(amounts if type(amounts) is list else [amounts] * size)
            need(len(self.capacities[-1]) == size, "a resource has one capacity a place")
        uses = {item["name"]: k for k, item in enumerate(resources, first)}
        need(len(uses) == len(resources), "a resource is named twice")
        self.local = [k for k in uses.values() if self.at[k] is not at["cluster"]]
        full = [[self.capacities[k][place] for place in self.at[k]] for k in self.local]
        self.held = [tuple([row[rank] for row in full]) for rank in self.ranks]
        self.kinds = set(self.held)
        ranked = {name: k for name, k in uses.items() if self.at[k] is self.ranks}
        costs = {phase: k for k, phase in enumerate(self.phases)}
        if self.objective not in BY_PHASE:
            costs = {self.objective: first - 1 if self.objective == "total" else first - 2}
        # the costs that a rank may have no more of, together, than the objective
        self.summed = [k for k in costs.values() if k >= len(self.hidden) or not self.hidden[k]]
        self.names: dict[str, dict[Any, int]] = {
            **{key: {None: k} if key in self.limits else {} for key, k in MOVED.items()},
            "cost": costs, "largest_cost": {} if self.objective == "total" else costs,
            "capacity": uses, "largest_use": ranked,
        }  # fmt: skip

    def _options(
        self, table: dict[str, Any], alone: set[str], read: dict[bytes, list[Option]]
    ) -> list[Option]:
        """The options of a table; ``read`` caches those of other tables with equal text."""
        if table["name"] in alone:
            return [self._option(table, entry) for entry in table["options"]]
        alike = sha256(str(table["options"]).encode("utf-8", "surrogatepass")).digest()
        if alike not in read:
            read[alike] = [self._option(table, entry) for entry in table["options"]]
        return read[alike]

    def _option(self, table: dict[str, Any], entry: dict[str, Any]) -> Option:
        name, fusion, blocks = entry["name"], entry.get("fusion"), entry["blocks"]
        moves = self.current.get(table["name"], {"option": name})["option"] != name
        named = self.pins.get((table["name"], name), [self.ranks] * len(blocks))
        good = len(named) == len(blocks) > 0 and set().union(*named) <= self.machine_of.keys()
        need(good, "an option needs blocks, and a pin that names ranks has some for each")
        found = [self._block(b, r, moves) for b, r in zip(blocks, named, strict=True)]
        home = next((block for block in found if block.where in FREE), None)
        firsts = [parts[0] for parts in home.sites.values()] if home else []
        homes = {self.machine_of[rank] for part in firsts for rank in part.ranks}
        first = home.runs[0][1].amounts if home and home.free else ()
        floor = list(map(sum, zip(*[block.floor for block in found], strict=True)))
        excess = list(map(max, zip(*[block.excess for block in found], strict=True)))
        fused = (fusion["group"], fusion["level"]) if fusion else None
        return Option(name, fused, moves, found, home, homes, first, floor, excess)

    def _block(self, entry: Any, named: Any, moves: bool) -> Block:
        """A block; one entry that several options have, as in ways to lie, is one block."""
        if named is not self.ranks:
            return Block(self, entry, named, moves)
        if (key := (id(entry), moves)) not in self.blocks:
            self.blocks[key] = Block(self, entry, named, moves)
        return self.blocks[key]

    def steps(self, block: Any) -> int:
        """Of reading a block: 10 numbers of a shard, or 10 ranks, take one, and so does a kind of
        ranks that a shard is compared with."""
        numbers = len(self.at) + len(self.kinds) * (1 + len(self.local))
        return 1 + len(self.ranks) // 10 + len(block["shards"]) * (1 + numbers // 10)

    def shard(self, costs: Any, uses: Any, moved: int, moves: bool, placed: bool) -> Shard:
        """One shard; ``moves``: its option moves its table; ``placed``: it is on a rank."""
        need(len(costs) == len(self.phases), "a shard has one cost a phase")
        need(self.objective == "total" or min(costs) >= 0, "a cost is below 0")
        there = [cost * placed for cost in costs]
        bare = sum([cost for cost, hidden in zip(there, self.hidden, strict=True) if not hidden])
        amounts = (*there, bare, sum(costs), *uses, 0, moves * moved)
        local = [amounts[k] for k in self.local]
        need(placed or not any(local), "on no rank, it may not use that")
        return Shard(amounts, moved, frozenset([k for k in self.kinds if all(map(le, local, k))]))


# The fingerprint of an instance
def merged(shards: list[Any], resources: Set[str]) -> list[list[Any]]:
    """Runs of equal shards: length, costs, use of each resource, bytes that move."""
    runs = list[list[Any]]()
    for e in shards:
        use, repeat = e.get("use", {}), e.get("repeat", 1)
        need(use.keys() <= resources, "a shard uses an unknown resource")
        row = [e["cost"], [use.get(name, 0) for name in resources], e.get("move_bytes", 0)]
        if runs and runs[-1][1:] == row:
            runs[-1][0] += repeat
        else:
            runs.append([repeat, *row])
    return runs


def identity(document: Any, meter: Meter) -> Iterator[list[Any]]:
    """Canonical form of everything that decides the answer; the fingerprint is derived from it."""
    machines, tables, resources = document["machines"], document["tables"], dict[str, Any]()
    sizes = {"rank": document["ranks"], "machine": len(machines), "cluster": 1}
    for r in document["resources"]:
        scope, full = r["scope"], r["capacity"]
        full = full if type(full) is list else [full] * sizes[scope]
        resources[r["name"]] = [r["name"], scope, full]
    places = [machines, document["phases"], list(resources.values())]
    hidden = [document["hidden"]] if "hidden" in document else []
    yield [document["format"], document["objective"], *places, *hidden]
    for table in tables:
        found = list[list[Any]]()
        for o in table["options"]:
            blocks, fusion = list[list[Any]](), o.get("fusion")
            for b in o["blocks"]:
                meter.take(1 + len(b["shards"]) * (1 + len(resources) // 10))
                runs, where = merged(b["shards"], resources.keys()), b["where"]
                runs = runs if len(runs) > 1 else [[1, *runs[0][1:]]]
                distinct = b.get("distinct", where == "one_machine")
                blocks.append([where, b.get("count", 1), distinct, b.get("among"), runs])
            found.append([o["name"], fusion and [fusion["group"], fusion["level"]], blocks])
        yield [table["name"], found]
    current, now = document.get("current", {}), list[list[Any]]()
    for table in [t for t in tables if t["name"] in current]:
        entry, known = current[table["name"]], {o["name"] for o in table["options"]}
        option = entry["option"] if entry["option"] in known else None
        now.append([table["name"], option, entry["ranks"]])
    pins = [[p["table"], p["option"], p.get("ranks")] for p in document.get("pins", [])]
    barred = [[f["table"], f["option"]] for f in document.get("forbidden", [])]
    limits = [document.get(f"max_{key}") for key in MOVED]
    yield [pins, barred, now, *limits]


def digest(lines: Iterable[Any]) -> str:
    """SHA-256 of values as JSON, one on each line."""
    found = sha256()
    try:
        for number, line in enumerate(lines):
            text = json.dumps(line, sort_keys=True, separators=(",", ":"))
            found.update(b"\n" * (number > 0) + text.encode())
    except RecursionError as error:
        raise Unreadable("a part is nested too deeply") from error
    return found.hexdigest()


# A plan on an instance
def check_plan(instance: Instance, tables: Any) -> dict[str, int]:
    """The objectives of a plan; :class:`Refuted` names a constraint that it violates."""
    need(tables.keys() == instance.tables.keys(), "a table is only in one of both", Refuted)
    meter, wide = instance.meter, 1 + len(instance.at) // 10
    meter.take(len(instance.ranks) * wide)
    loads = [[0] * len(instance.at) for _ in instance.ranks]
    moved, levels = dict.fromkeys(MOVED, 0), dict[str, int]()
    for table, entry in tables.items():
        ranks, what = entry["ranks"], f"table {table!a:.60}"
        option: Any = instance.allowed.get((table, entry["option"]))
        need(option, f"{what} may not have the option {entry['option']!a:.60}", Refuted)
        need(len(ranks) == len(option.blocks), f"{what} needs ranks for each block", Refuted)
        pinned = instance.pins.get((table, option.name), ranks)
        now = instance.current.get(table, entry)["ranks"]
        spread, pinned, now = [list(map(sorted, lists)) for lists in (ranks, pinned, now)]
        need(spread == pinned, f"{what} is not on the ranks of its pin", Refuted)
        moves = option.moves or spread != now
        fused = option.fusion is None or levels.setdefault(*option.fusion) == option.fusion[1]
        need(fused, f"fusion group {option.fusion!a:.60} is at two levels", Refuted)
        moved["moved_tables"] += moves
        for block, taken in zip(option.blocks, ranks, strict=True):
            for times, shard, rank in block.assignment(instance, taken):
                meter.take(wide)
                moved["moved_bytes"] += moves * times * shard.move_bytes
                loads[rank] = list(map(add, loads[rank], [times * a for a in shard.amounts]))
    columns, phases = list(zip(*loads, strict=True)), len(instance.phases)
    for name, k in instance.names["capacity"].items():
        used = [0] * len(instance.capacities[k])
        for place, load in zip(instance.at[k], columns[k], strict=True):
            used[place] += load
        need(all(map(le, used, instance.capacities[k])), f"{name!a:.60} is exceeded", Refuted)
    for key, most in instance.limits.items():
        need(moved[key] <= most, f"max_{key} is exceeded: {moved[key]}", Refuted)
    *peaks, busiest = map(max, columns[: phases + 1])
    if instance.objective == "pipelined_step":
        return {"pipelined_step": sum([max(0, n) for n in map(sub, peaks, instance.hidden)])}
    return {"total": sum(columns[phases + 1]), "busiest_rank": busiest, "step_time": sum(peaks)}


# What must move from the plan in production
MUST = {"counted": {"tables", "bytes"}, "least": COUNT, "tables": [AMOUNT],
        "apart": (bool, [AMOUNT]), "certificate": str}  # fmt: skip
MUST_MOVE = shaped([MUST])


def leaving(
    document: Any, counted: str, tables: list[int], apart: bool | list[int]
) -> dict[str, Any]:
    """The instance of what must move (docs/proof.md): no plan moves less than its least cost.

    ``apart``: an option of every table, or of these, is as many options as there are ways to lie,
    where these are few.
    """
    meter = Meter(READ_STEPS, "what must move")
    current = document.get("current", {})
    pinned = {pin["table"]: pin for pin in document.get("pins", [])}
    barred = {(entry["table"], entry["option"]) for entry in document.get("forbidden", [])}
    told = set(apart if type(apart) is list else tables if apart else ())
    found, known = list[dict[str, Any]](), dict[tuple[int, bool], tuple[Any, Any]]()
    for t, table in [(t, document["tables"][t]) for t in tables]:
        name, now, pin = table["name"], current.get(table["name"]), pinned.get(table["name"], {})
        still, ways = list[dict[str, Any]](), list[dict[str, Any]]()
        for option in table["options"]:
            own, blocks, fixed = option["name"], option["blocks"], False
            shards = sum([len(block["shards"]) for block in blocks])
            meter.take(1 + len(blocks) + shards)
            if (name, own) in barred or pin.get("option", own) != own:
                continue
            here = now is not None and now["option"] == own
            places = spread(document, blocks, meter) if t in told else None
            if places is not None:
                there = now["ranks"] if here else None
                named, there = [n and list(map(sorted, n)) for n in (pin.get("ranks"), there)]
                for ranks, lists in [way for way in places if named in (None, way[0])]:
                    kept, cost = there == ranks, counted if now and there != ranks else None
                    (still if kept else ways).append({**option, "blocks": goes(lists, cost, known)})
                continue
            meter.take(here * (1 + len(blocks)) * (1 + document["ranks"]))
            meter.take(here * shards * (1 + len(document["resources"])))
            if here and lies(document, blocks, now["ranks"]):
                pairs = zip(blocks, now["ranks"], strict=True)
                each = [part for block, ranks in pairs for part in stands(block, ranks, known)]
                still.append({**option, "blocks": each})
                fixed = all(kind(block) not in FREE for block in blocks)
            if not fixed:
                ways.append({**option, "blocks": goes(blocks, counted if now else None, known)})
        nowhere = [{"blocks": [{"where": "cluster", "shards": [{"cost": [0]}]}]}]
        ways = [{**way, "name": str(k)} for k, way in enumerate(still + ways or nowhere)]
        found.append({"name": name, "options": ways})
    kept = {key: document[key] for key in ("format", "ranks", "machines", "resources")}
    return {**kept, "phases": ["moved"], "objective": "total", "tables": found}


def kind(block: Any) -> str:
    """Where the shards of a block may be, in a word."""
    return "list" if type(block["where"]) is list else block["where"]


MOST_WAYS = 10_000  # of an option to lie, up to which each is an option of its own
MOST_SHARDS = 64  # of a block that chooses, likewise


def spread(document: Any, blocks: Any, meter: Meter) -> list[tuple[Any, list[Any]]] | None:
    """Every way of an option to lie: its ranks, sorted for each block, and its blocks on lists of
    them; None where these are many."""
    meter.take(len(blocks) * (1 + document["ranks"]))
    sizes = [choices(document, block) for block in blocks]
    many = prod([number for number, _ in sizes])
    if not many:
        return []
    if many > MOST_WAYS:
        return None
    meter.take((1 + many) * (1 + sum([size for _, size in sizes])))
    each = [list(sites(document, block)) for block in blocks]
    found = list[tuple[Any, list[Any]]]()
    for way in product(*each):
        ranks = [sorted(ranks) for ranks, _ in way]
        found.append((ranks, [part for _, parts in way for part in parts]))
    return found


def groups(document: Any, block: Any) -> tuple[list[Any], list[int], bool]:
    """Sets of places for all shards of a block that chooses them, or its machines; the numbers of
    equal shards in each; and whether they are on different places."""
    where, machines, count = kind(block), document["machines"], block.get("count", 1)
    once = block.get("distinct", where == "one_machine")
    places = block.get("among", range(len(machines) if where in ON_MACHINES else document["ranks"]))
    sets = [machines[q] for q in places] if where == "any_rank_of_one_machine" else [places]
    runs = [shard.get("repeat", 1) for shard in block["shards"]]
    return sets, runs if len(runs) > 1 and where != "one_machine" else [count], once


def choices(document: Any, block: Any) -> tuple[int, int]:
    """In how many ways a block may lie, and how large one is."""
    if kind(block) not in FREE:
        return 1, 1 + document["ranks"]
    sets, runs, once = groups(document, block)
    if sum(runs) > MOST_SHARDS:
        return MOST_WAYS + 1, 0
    number = 0
    for places in sets:
        left, times = len(places), 1
        for run in runs:
            times *= comb(left if once else left + run - 1, run)
            left = max(0, left - once * run)
        number += times
    return number, sum(runs) * (document["ranks"] if kind(block) == "one_machine" else 1)


def sites(document: Any, block: Any) -> Iterator[tuple[list[int], list[Any]]]:
    """Every way of a block to lie: the ranks of its shards, and blocks on lists of them."""
    if kind(block) not in FREE:
        every = {"every_rank": list(range(document["ranks"])), "cluster": []}
        yield every.get(kind(block), block["where"]), [block]
        return
    sets, runs, once = groups(document, block)
    shards = block["shards"] if len(runs) > 1 else block["shards"][:1]
    alone = [[{**shard, "repeat": 1}] for shard in shards]
    numbers = [number for number, times in enumerate(runs) for _ in range(times)]
    made = dict[tuple[int, int], dict[str, Any]]()  # one shard on one rank, which ways share
    for places in sets:
        for taken in picked(list(places), runs, once):
            if kind(block) == "one_machine":
                lists = [document["machines"][q] for q in taken]
                parts = [{"where": own, "shards": block["shards"]} for own in lists]
                yield [rank for own in lists for rank in own], parts
                continue
            each = list(zip(numbers, taken, strict=True))
            for number, rank in each:
                made.setdefault((number, rank), {"where": [rank], "shards": alone[number]})
            yield list(taken), [made[one] for one in each]


def picked(places: list[int], runs: list[int], once: bool) -> Iterator[tuple[int, ...]]:
    """Every choice of places for runs of equal things."""
    for first in (combinations if once else combinations_with_replacement)(places, runs[0]):
        if len(runs) == 1:
            yield first
            continue
        gone = set(first) if once else ()
        for rest in picked([place for place in places if place not in gone], runs[1:], once):
            yield first + rest


ONE = {"where": "cluster", "shards": [{"cost": [1]}]}  # of a table that moves


def goes(old: Any, counted: str | None, known: dict[Any, Any]) -> list[dict[str, Any]]:
    """Blocks that a table takes anew; each shard costs its bytes, or the table one, or nothing.

    Ways to lie have blocks in common, which are ``known``, by what they are made of.
    """
    blocks, paid = list[dict[str, Any]](), counted == "bytes"
    for block in old:
        if (key := (id(block), paid)) not in known:
            shards = [{**s, "cost": [paid * s.get("move_bytes", 0)]} for s in block["shards"]]
            known[key] = block, {**block, "shards": shards}  # which keeps the block and its id
        blocks.append(known[key][1])
    return blocks + [ONE] * (counted == "tables")


def stands(block: Any, ranks: list[int], known: dict[Any, Any]) -> list[dict[str, Any]]:
    """Blocks for one that stays: where its shards choose ranks, each uses what the least does."""
    if kind(block) not in FREE:
        return goes([block], None, known)
    uses = [s.get("use", {}) for s in block["shards"]]
    least = {name: min([use.get(name, 0) for use in uses]) for name in uses[0]}
    return [{"where": [rank], "shards": [{"cost": [0], "use": least}]} for rank in ranks]


def lies(document: Any, blocks: Any, there: Any) -> bool:
    """Whether an option's blocks may lie on some ranks, in any order."""
    home = {rank: q for q, ranks in enumerate(document["machines"]) for rank in ranks}
    fits = len(blocks) == len(there) and set().union(*there) <= home.keys()
    for block, taken in zip(blocks, there, strict=True) if fits else ():
        where, ranks = kind(block), sorted(taken)
        chosen = ranks
        if where == "one_machine":
            times = Counter(ranks)
            chosen = [q for q, own in enumerate(document["machines"]) for _ in range(times[own[0]])]
            fits = fits and sum([len(document["machines"][q]) for q in chosen]) == len(ranks)
            fits = fits and sorted([r for q in chosen for r in document["machines"][q]]) == ranks
        if where in FREE:
            one = where == "any_rank_of_one_machine"
            sites = {home[rank] for rank in ranks} if one else set(chosen)
            fits = fits and len(chosen) == block.get("count", 1) and (not one or len(sites) == 1)
            fits = fits and sites <= set(block.get("among", sites))
            once = len(set(chosen)) == len(chosen)
            fits = fits and (once or not block.get("distinct", where == "one_machine"))
        else:
            every = {"every_rank": range(document["ranks"]), "cluster": ()}
            fits = fits and ranks == sorted(every.get(where, block["where"]))
    return fits


# The certificate
OF = {"of": str, "times": range(10**4300)}
HEIGHT = range(2**62)
FUNCTION = {"name": {"steps", "threshold", "halves"}, "parameter": COUNT, "times": OF["times"],
            "first": AMOUNT, "second": AMOUNT, "uses": {None: AMOUNT}}  # fmt: skip
ROW = (
    {"row": {"cost", "capacity"}, "at?": AMOUNT, **OF},
    {"row": {"largest_cost", "largest_use"}, "table": AMOUNT, "machine?": AMOUNT, **OF},
    {"row": {"fusion"}, "table": AMOUNT, "level": SIGNED, **OF},
    {"row": {"moved_tables", "moved_bytes"}, "times": OF["times"]},
    {"row": {"pattern"}, "most": range(2**20), "weights": [[AMOUNT]], **OF},
    {"row": {"peaks"}, "most": range(2**20), "weights": [[AMOUNT]], "times": OF["times"],
     "first": [str], "second": [str], "step": COUNT, "each": OF["times"], "loads?": [OF["times"]]},
    {"row": {"functions"}, "first": [str], "second": [str], "bins": [HEIGHT], "each": [OF["times"]],
     "functions": [FUNCTION], "times": OF["times"]},
)  # fmt: skip
LEAF, SPLIT = {"use?": [AMOUNT], "pack?": str}, {"table": AMOUNT, "use?": [AMOUNT]}
PEAK = {"peak": [str], "cuts": [HEIGHT], "use?": [AMOUNT]}
COUNTED = {"tables": [AMOUNT], "counted": [AMOUNT], "most": AMOUNT, "use?": [AMOUNT]}
NODE = (LEAF, {"options": [[AMOUNT]], **SPLIT}, {"machines": [[AMOUNT]], **SPLIT}, COUNTED, PEAK)
TREE = {"version": range(3, 4), "vectors": [[ROW]], "nodes": [NODE]}
BOUND, NO_PLAN = {"kind": {"bound"}, "target": int, **TREE}, {"kind": {"infeasible"}, **TREE}
CERTIFICATE = shaped((BOUND, NO_PLAN))

MOST_COMBINED, MOST_SIZES = 2**14, 2**9  # limits of packing
MOST_KEPT = 2**20  # things in one set: what one rank may hold, or what filling a bin may leave
MOST_COST = 2**62  # above what any rank carries; limits beyond it need not be compared with
INF = float("inf")
Items = tuple[int, ...]
Phases = tuple[int, ...]  # coordinates of a set of phases, ascending
Held = tuple[int, ...]  # of one rank: load in the first set of phases, steps in the second, weight
Heights = dict[Phases, tuple[int, int]]  # least and largest height that a case leaves to a set
#: Position of an option in its table, and its home machine (None: none, or it does not matter).
Choice = namedtuple("Choice", "position home option floor peak")


class Vector:
    """A weighted sum of rows. ``limit`` is its right-hand side, :meth:`price` the least that a
    choice adds to the left; ``covers`` and ``own`` are multipliers of largest-shard rows."""

    def __init__(
        self, instance: Instance, rows: list[dict[str, Any]], target: int | None, meter: Meter
    ) -> None:
        self.instance, self.meter, zeros = instance, meter, [0] * len(instance.at)
        longest = max([row["times"].bit_length() for row in rows], default=0)
        self.size = 1 + longest // 512 + len(instance.at) // 32  # steps of a sum over coordinates
        meter.take(len(rows) + len(instance.at) * (1 + len(instance.ranks) // 10))
        self.covers: dict[int, list[int]] = defaultdict(zeros.copy)  # by machine; -1: all ranks
        self.own: dict[tuple[int, int], list[int]] = defaultdict(zeros.copy)  # by table as well
        self.fused, levels = Counter[Any](), defaultdict[Any, Counter[int]](Counter)
        self.weights, self.held = Counter[tuple[int, int]](), 0  # by option; of all ranks
        self.boxed, self.floors = list[Boxed](), 0  # rows about heights, their multipliers' sum
        self._least = cache(self._block)  # because choices share blocks
        limits, factors = zeros.copy(), [[0] * len(each) for each in instance.capacities]
        marks = defaultdict[int, list[Any]](list)  # what tells a table's prices from another's
        for number, row in enumerate(rows):
            kind, name, times, at = row["row"], row.get("of"), row["times"], row.get("at")
            if kind == "pattern" or kind in BOXED:
                if kind == "pattern":
                    self._weigh(row, target)
                else:
                    self.boxed.append(BOXED[kind](instance, row, target, meter))
                    self.floors += times
                for table, *weight in row.get("weights", []):
                    marks[table].append((number, *weight))
                continue
            level = row.get("level")
            marks[row.get("table", -1)].append((kind, name, level, row.get("machine"), times))
            table, machine = row.get("table", -1), row.get("machine", -1)
            k: Any = None if target is None and "cost" in kind else instance.names[kind].get(name)
            full = instance.capacities[k or 0]
            meter.take(1 if at is not None else 1 + len(full) // 10 + len(zeros) * ("table" in row))
            sizes = len(instance.tables), len(instance.machines), len(full)
            good = k is not None and all(map(lt, (table, machine, at or 0), sizes))
            need(good, f"a vector has a row of what is not there: {row!a:.90}")
            if kind == "fusion":
                self.fused[table, (name, row["level"])] += times
                levels[name][row["level"]] += times
            elif "table" in row:
                self.covers[machine][k] += times
                self.own[table, machine][k] += times
                limits[k] += times * max(full[rank] for rank in instance.regions[machine])
            else:
                for place in range(sizes[2]) if at is None else [at]:
                    factors[k][place] += times
                    limits[k] += times * full[place]
        costs = len(instance.phases) + 2
        self.limit = ((target or 0) - 1) * max(limits[:costs]) + sum(limits[costs:])
        self.limit += sum(map(mul, limits, instance.hidden))
        self.limit += sum([max(group.values()) for group in levels.values()]) + self.held
        self.moved_tables = factors[MOVED["moved_tables"]][0]
        columns = [[f[p] for p in at] for f, at in zip(factors, instance.at, strict=True)]
        weights = list(zip(*columns, strict=True))
        numbers = dict[tuple[Any, ...], int]()
        self.marks = {t: numbers.setdefault((*m,), len(numbers)) for t, m in marks.items()}
        self.rows = cache(lambda ranks: Counter([weights[rank] for rank in ranks]))

    def right(self, state: list[list[Choice]], heights: Heights) -> int | float:
        """The right-hand side in a case."""
        most = [row.most(state, heights) for row in self.boxed]
        endless = [value for value in (-INF, INF) if value in most]
        return endless[0] if endless else self.limit + sum(most)

    def price(self, table: int, choice: Choice) -> int:
        """The least that a choice adds to the left-hand side."""
        home, option = choice.home, choice.option
        price = self.moved_tables * option.moves + self.fused[table, option.fusion]
        price += self.weights[table, choice.position]
        if self.boxed:
            price += self.floors * choice.floor[-1]
            price += sum([row.price(table, choice) for row in self.boxed])
        for block in option.blocks:
            price += self._least(block, home if block is option.home else None)
        price += sum(map(mul, self.own.get((table, -1), ()), option.excess))
        return price + sum(map(mul, self.own.get((table, home), ()), option.first))

    def _weigh(self, row: dict[str, Any], target: int | None) -> None:
        """Add a knapsack row: weights of options, and the most that the ranks hold. ``least[w]`` is
        the least cost of shards that weigh w or more, of one option of each table."""
        instance, times = self.instance, row["times"]
        limit = max(-1, min((target or 0) - 1, MOST_COST))
        self.meter.take(1 + len(row["weights"]) + row["most"] // 10)
        weights = {tuple(item[:3]): item[3] for item in row["weights"] if len(item) == 4}
        good = target is not None and row["of"] == instance.objective != "total"
        need(good and len(weights) == len(row["weights"]), "a pattern is not as its page says")
        least, added = [0] + [limit + 1] * (row["most"] + 1), Counter[tuple[int, int]]()
        for table, options in enumerate(instance.tables.values()):
            best = least
            for position, option in enumerate(options):
                held, first = least, 0
                for block in option.blocks:
                    self.meter.take(1 + len(block.runs) // 10)
                    keys = [(table, position, first + i) for i in range(len(block.runs))]
                    each = [weights.pop(key, 0) for key in keys]
                    first += len(each)
                    added[table, position] += times * sum(map(mul, each, block.numbers))
                    held = self._held(held, block, each) if any(each) else held
                best = best if held is least else list(map(min, best, held))
            least = best
        need(not weights, "a pattern weighs what is not there")
        if least[-1] > limit:  # else a rank may hold more than the row says: ignore the row
            most = sum([cost <= limit for cost in least]) - 1
            self.held += times * len(instance.ranks) * max(0, most)
            self.weights.update(added)

    def _held(self, least: list[int], block: Block, weights: list[int]) -> list[int]:
        """``least`` with the shards of one more block, as many as a rank may hold."""
        best, k = least, len(self.instance.phases)
        for weight, number, (_, shard) in zip(weights, block.numbers, block.runs, strict=True):
            for _ in range(min(block.most, number) if weight else 0):
                self.meter.take(1 + len(least) // 10)
                base = least if block.most == 1 else best
                moved = [base[max(0, w - weight)] + shard.amounts[k] for w in range(len(least))]
                best = list(map(min, best, moved))
        return best

    def _block(self, block: Block, home: int | None) -> int:
        """The least that a block adds, with its first shard on the home machine."""
        least = min([self._site(block, parts) for parts in block.sites.values()])
        if home is None:
            return block.copies * least
        parts = block.sites.get(home)
        if parts is None:  # any_rank
            one, *rest = block.sites[-1]
            near = tuple([r for r in one.ranks if self.instance.machine_of[r] == home])
            parts = (one._replace(times=1, ranks=near), one._replace(times=one.times - 1), *rest)
        return (block.copies - 1) * least + self._site(block, parts)

    def _site(self, block: Block, parts: tuple[Part, ...]) -> int:
        price, covered = 0, sum([len(self.instance.regions[q]) for q in self.covers])
        looked = covered + sum([len(part.ranks) for part in parts])
        self.meter.take(self.size * looked // 100)
        for times, shard, ranks in parts:
            self.meter.take(self.size * len(self.rows(ranks)))
            each = [(sum(map(mul, row, shard.amounts)), n) for row, n in self.rows(ranks).items()]
            price += times * min(each)[0] if block.free else sum([one * n for one, n in each])
        taken = set() if block.free else {rank for part in parts for rank in part.ranks}
        for q, row in self.covers.items():
            inside = self.instance.regions[q]
            if taken.issuperset(inside):
                values = [p.shard.amounts for p in parts if not set(p.ranks).isdisjoint(inside)]
                price += sum(map(mul, row, map(min, zip(*values, strict=True))))
        return price


def phases_of(instance: Instance, names: list[str]) -> Phases:
    """The coordinates of a set of phases that a certificate names."""
    found = {name: instance.names["cost"].get(name, -1) for name in names}
    good = len(found) == len(names) and instance.objective != "total"
    good = good and set(found.values()) <= set(instance.summed)
    need(good, "peaks are those of different phases of which nothing is hidden")
    return tuple(sorted(found.values()))


class Boxed:
    """A row about what ranks hold above the floors in two sets of phases."""

    def __init__(
        self, instance: Instance, row: dict[str, Any], target: int | None, meter: Meter
    ) -> None:
        self.instance, self.meter, self.limit = instance, meter, (target or 0) - 1
        self.first, self.second = [phases_of(instance, row[key]) for key in ("first", "second")]
        self.times = row["times"]
        meter.take(len(row["first"]) + len(row["second"]))
        good = target is not None and self.first and set(self.first).isdisjoint(self.second)
        need(good, f"a row of {row['row']} is not as its page says")

    def box(self, state: list[list[Choice]], heights: Heights) -> tuple[int, ...]:
        """The room for both heights, and the interval of each in a case."""
        kinds = {id(left): left for left in state}
        self.meter.take(1 + len(state) + sum(map(len, kinds.values())))
        least = {kind: min([c.floor[-1] for c in left]) for kind, left in kinds.items()}
        room = self.limit - sum([least[id(left)] for left in state])
        low, high = heights.get(self.first, (0, room))
        base, top = heights.get(self.second, (0, room if self.second else 0))
        return room, low, min(high, room - base), base, min(top, room - low)

    def loads(self, block: Block, shard: Shard) -> list[int]:
        """The load of a shard in both sets, above the floor of its block."""
        above = list(map(sub, shard.amounts, block.least))
        return [sum([above[k] for k in ks]) for ks in (self.first, self.second)]

    def price(self, table: int, choice: Choice) -> int:
        """What a choice adds to the left-hand side, beside its floors."""
        raise NotImplementedError

    def fits(self, option: Option) -> bool:
        """Whether an option can be in a plan for which the row counts."""
        return True

    def most(self, state: list[list[Choice]], heights: Heights) -> int | float:
        """The right-hand side in a case: infinite if the row does not count, minus infinite if no
        plan has such heights."""
        raise NotImplementedError


class Functions(Boxed):
    """A row of dual-feasible functions of shards."""

    def __init__(
        self, instance: Instance, row: dict[str, Any], target: int | None, meter: Meter
    ) -> None:
        super().__init__(instance, row, target, meter)
        self.bins, self.each, names = row["bins"], row["each"], instance.names["largest_use"]
        self.ranks, self.functions = len(instance.ranks), list[Any]()
        numbers = [self.times, *self.each, *[item["times"] for item in row["functions"]]]
        many = sum([1 + len(item["uses"]) for item in row["functions"]])
        self.size = (1 + many) * (1 + max(map(int.bit_length, numbers)) // 512)  # steps of a price
        meter.take(self.size + many * len(instance.ranks) // 10)
        good = len(self.bins) == len(self.each) == 2
        need(good, "a row of functions has two bins and two multipliers of loads")
        for item in row["functions"]:
            need(item["uses"].keys() <= names.keys(), "a function is of what is not there")
            uses = [(names[name], times) for name, times in item["uses"].items()]
            full = item["first"] * self.bins[0] + item["second"] * self.bins[1]
            full += sum([times * max(instance.capacities[k]) for k, times in uses])
            small, function = item["parameter"], FUNCTIONS[item["name"]]
            need(function is not threshold or 2 * small <= full, "a threshold is above a half")
            self.functions.append((function, small, full, item, uses))
        self._block = cache(self._priced)

    def price(self, table: int, choice: Choice) -> int:
        """What a choice adds to the left-hand side, beside its floors."""
        return sum([self._block(block) or 0 for block in choice.option.blocks])

    def fits(self, option: Option) -> bool:
        """Whether no shard of the option is larger than a bin."""
        return all([self._block(block) is not None for block in option.blocks])

    def most(self, state: list[list[Choice]], heights: Heights) -> int | float:
        """The right-hand side in a case: infinite if it may have heights above the bins, minus
        infinite if no plan has such heights."""
        room, low, high, base, top = self.box(state, heights)
        if low > high or base > top:
            return -INF
        if high > self.bins[0] or top > self.bins[1]:
            return INF
        self.meter.take(self.size)
        held = sum([item["times"] * function(full, full, small)
                    for function, small, full, item, _ in self.functions])  # fmt: skip
        first, second = [self.ranks * each - self.times for each in self.each]
        corners = [(low, base), (high, base), (low, top)]
        corners += [(high, min(top, room - high)), (min(high, room - top), top)]
        best = max([first * a + second * b for a, b in corners])
        return self.times * self.limit + self.ranks * held + best

    def _priced(self, block: Block) -> int | None:
        """What the shards of a block add; None if one is larger than a bin."""
        price = 0
        for number, (_, shard) in zip(block.numbers, block.runs, strict=True):
            self.meter.take(self.size)
            first, second = self.loads(block, shard) if number else (0, 0)
            if first > self.bins[0] or second > self.bins[1]:
                return None
            one = self.each[0] * first + self.each[1] * second
            for function, small, full, item, uses in self.functions:
                size = item["first"] * first + item["second"] * second
                size += sum([times * shard.amounts[k] for k, times in uses])
                one += item["times"] * function(size, full, small)
            price += number * one
        return price


def steps(size: int, full: int, number: int) -> int:
    """Whole steps of which a bin is just too small for so many."""
    return number * size // (full + 1)


def threshold(size: int, full: int, small: int) -> int:
    """The size without what is small; all of the bin where only small shards fit beside it."""
    return full if size > full - small else size * (size >= small)


def halves(size: int, full: int, small: int) -> int:
    """How many shards that are not small go into the bin at most, or fewer for one above half."""
    return full // small - (full - size) // small if 2 * size > full else int(size >= small)


FUNCTIONS: dict[str, Callable[[int, int, int], int]] = {
    "steps": steps, "threshold": threshold, "halves": halves,
}  # fmt: skip


class Peaks(Boxed):
    """A row about two sets of phases: what the ranks hold, and how high it makes both peaks."""

    def __init__(
        self, instance: Instance, row: dict[str, Any], target: int | None, meter: Meter
    ) -> None:
        super().__init__(instance, row, target, meter)
        self.step, self.each, self.size = row["step"], row["each"], row["most"] + 2
        self.rates = row.get("loads", [0, 0, 0])
        meter.take(len(row["weights"]) + len(self.rates))
        need(len(self.rates) == 3, "a row of peaks has three prices of loads")
        self.weights = {tuple(item[:3]): item[3] for item in row["weights"] if len(item) == 4}
        need(len(self.weights) == len(row["weights"]), "a row of peaks is not as its page says")
        self.added = self._added()
        self._block = cache(self._priced)

    def price(self, table: int, choice: Choice) -> int:
        """What a choice adds to the left-hand side, beside its floors."""
        weighed = self.added[table, choice.position]
        return weighed + sum([self._block(block) for block in choice.option.blocks])

    def _priced(self, block: Block) -> int:
        """What the loads of a block's shards add, without their weights."""
        price = 0
        for number, (_, shard) in zip(block.numbers, block.runs, strict=True):
            self.meter.take(1)
            first, second = self.loads(block, shard) if number else (0, 0)
            loads = first, second, second // self.step
            price += number * sum(map(mul, self.rates, loads))
        return price

    def _added(self) -> Counter[tuple[int, int]]:
        """What the weights of an option's shards add to its price, by table and position."""
        self.meter.take(len(self.instance.tables) // 10)
        found, tables = Counter[tuple[int, int]](), list(self.instance.tables.values())
        numbers = dict[tuple[int, int], list[int]]()  # of each option's entries
        for (t, o, i), weight in self.weights.items():
            if (t, o) not in numbers:
                known = t < len(tables) and o < len(tables[t])
                blocks = tables[t][o].blocks if known else []
                self.meter.take(1 + len(blocks) + sum([len(block.numbers) for block in blocks]))
                numbers[t, o] = [number for block in blocks for number in block.numbers]
            need(i < len(numbers[t, o]), "a row of peaks weighs what is not there")
            found[t, o] += self.each * numbers[t, o][i] * weight
        return found

    def most(self, state: list[list[Choice]], heights: Heights) -> int | float:
        """The right-hand side in a case: infinite if a rank may hold more than the row says, minus
        infinite if no plan has such heights."""
        room, low, high, base, top = self.box(state, heights)
        if low > high or base > top:
            return -INF
        high, units = min(high, MOST_COST), top // self.step
        self.meter.take((1 + self.size // 10) * (units + 1))
        least = self._least(state, high, units)
        if min([row[-1] for row in least]) <= high:
            return INF
        ranks, best = len(self.instance.ranks), -INF
        first, second, whole = [ranks * rate for rate in self.rates]
        gains = [first - self.times, second - self.times]
        for units, row in enumerate(least):
            start, end = max(base, units * self.step), min(top, (units + 1) * self.step - 1)
            for weight, load in enumerate(row):
                one = max(low, load)
                if load > high or start > end or one + start > room:
                    continue
                # both heights, the one that pays more first
                most, two = [high, end], [one, start]
                for i in sorted([i for i in (0, 1) if gains[i] > 0], key=lambda i: -gains[i]):
                    two[i] = min(most[i], room - two[1 - i])
                worth = sum(map(mul, gains, two)) + whole * units + ranks * self.each * weight
                best = max(best, worth)
        return self.times * self.limit + best

    def _least(self, state: list[list[Choice]], high: int, units: int) -> list[list[int]]:
        """By steps in the second set of phases and by weight: the least load in the first of shards
        of one rank that take so many steps at most and weigh as much or more."""
        alike = Counter[tuple[Held, ...]]()
        for table, left in enumerate(state):
            options = {choice.position: choice.option for choice in left}
            found = set[Held]().union(
                *[self._option(table, *o, high, units) for o in options.items()]
            )
            alike[tuple(self._undominated(found))] += 1
        least = [[0] + [MOST_COST + 1] * (self.size - 1)] * (units + 1)
        for one, tables in self._worthwhile(alike, high, units).items():
            for held in self._lists(one, tables, high, units):
                best = least
                for load, steps, weight in held:
                    self.meter.take((1 + self.size // 10) * (units + 1 - steps) + steps // 10)
                    moved = [[load] * weight + [x + load for x in row[: self.size - weight]]
                             for row in least[: units + 1 - steps]]  # fmt: skip
                    better = [list(map(min, *r)) for r in zip(best[steps:], moved, strict=True)]
                    best = best[:steps] + better
                least = best
        return least

    def _worthwhile(
        self, alike: Counter[tuple[Held, ...]], high: int, units: int
    ) -> Counter[tuple[Held, ...]]:
        """What tables hold, and how many do, without what is no heavier than some number of
        something else that takes no more of both, of which there are always more."""
        enough = dict[Held, tuple[Held, ...]]()  # and who has it first
        for one, tables in alike.items():
            if one and tables >= self._times(_smallest(one), high, units):
                enough = {held: one for held in one} | enough
        left = Counter[tuple[Held, ...]]()
        for one, tables in alike.items():
            self.meter.take(1 + len(one) * (1 + len(enough) // 5))
            own = [held for held in one if enough.get(held, one) == one]
            own = [h for h in own if not any([self._replaces(e, h) for e in enough])]
            left[tuple(own)] += tables
        return left

    def _replaces(self, other: Held, held: Held) -> bool:
        """Whether some number of one thing weighs as much as another and takes no more."""
        times = self.size - 1 if held[0] or held[1] else 1
        for own, whole in zip(other[:2], held[:2], strict=True):
            times = min(times, whole // own) if own else times
        return other != held and times * other[2] >= held[2]

    def _lists(
        self, held: tuple[Held, ...], tables: int, high: int, units: int
    ) -> list[tuple[Held, ...]]:
        """What one rank may hold of tables that may each hold the same, as lists to take at most
        one of. Where no more fit than there are tables, each counts by itself: 1, 2, 4, … times."""
        self.meter.take(1 + tables // 10 + 64 * len(held))
        most = self._times(_smallest(held), high, units) if held else 0
        if tables < most and len(held) > 1:
            return [held] * tables
        found = list[tuple[Held, ...]]()
        for load, steps, weight in held:
            left, n = min(tables, self._times((load, steps, weight), high, units)), 1
            while left > 0:
                n = min(n, left)
                found.append(((n * load, n * steps, min(n * weight, self.size - 1)),))
                left, n = left - n, 2 * n
        most = min(tables, most)
        return found if len(found) < most * len(held) else [held] * most

    def _times(self, held: Held, high: int, units: int) -> int:
        """How often something fits, or until it weighs more than is told apart."""
        load, steps, weight = held
        times = -(-(self.size - 1) // weight)
        times = min(times, high // load) if load else times
        return min(times, units // steps) if steps else times

    def _option(
        self, table: int, position: int, option: Option, high: int, units: int
    ) -> set[Held]:
        """What one rank may hold of an option."""
        self.meter.take(len(option.blocks) + sum([len(block.runs) for block in option.blocks]))
        held, first = {(0, 0, 0)}, 0
        for block in option.blocks:
            before = held
            for i, (number, (_, shard)) in enumerate(zip(block.numbers, block.runs, strict=True)):
                weight = self.weights.get((table, position, first + i), 0)
                base = before if block.most == 1 else held
                load, steps = self.loads(block, shard)
                one = load, steps // self.step, weight
                for times in range(1, 1 + min(block.most, number) if weight else 0):
                    many = [times * n for n in one]
                    if many[0] > high or many[1] > units:
                        break
                    self.meter.take(len(base) + len(held) // 10)
                    good = len(base) + len(held) <= MOST_KEPT
                    need(good, "there is too much to hold", NotChecked)
                    held = held | {tuple(map(add, many, other)) for other in base}
            first += len(block.runs)
        return {(a, b, min(w, self.size - 1)) for a, b, w in held if a <= high and b <= units}

    def _undominated(self, found: set[Held]) -> list[Held]:
        """Without what is no heavier than something that takes no more of both."""
        kept = list[Held]()
        for one in sorted(found, key=lambda held: (held[0], held[1], -held[2])):
            self.meter.take(1 + len(kept) // 10)
            if one[2] and not any([k[1] <= one[1] and k[2] >= one[2] for k in kept]):
                kept.append(one)
        return kept


def _smallest(held: tuple[Held, ...]) -> Held:
    """The least of each number of some things."""
    first, second, third = map(min, zip(*held, strict=True))
    return first, second, third


BOXED: dict[str, type[Boxed]] = {"functions": Functions, "peaks": Peaks}


class Proof:
    """A certificate on its instance, read strictly."""

    def __init__(self, instance: Instance, document: Any) -> None:
        need(CERTIFICATE(document), "the certificate is not as its page says")
        self.instance, self.nodes, self.target = instance, document["nodes"], document.get("target")
        most = MOST_STEPS + STEPS_PER_OPTION * len(instance.allowed)
        self.meter = meter = Meter(most, "the certificate")
        self.vectors = [Vector(instance, rows, self.target, meter) for rows in document["vectors"]]
        # the most that one rank may carry, and the coordinates that are summed for it
        uses = instance.names["largest_use"]
        bars = [(name, [k], max(instance.capacities[k])) for name, k in uses.items()]
        if self.target is not None and instance.objective != "total":
            bars.append((instance.objective, instance.summed, self.target - 1))
        self.sums, self.most = [ks for _, ks, _ in bars], [most for _, _, most in bars]
        self.packed = {name: i for i, (name, _, _) in enumerate(bars)}
        self.lists: list[list[Any]] = []  # cases of each node's split; empty at a leaf
        known = 1  # nodes so far that are the root or a case of an earlier node
        tables = list(instance.tables.values())
        for position, node in enumerate(self.nodes):
            need(position < known, "a node comes before the split that it is a case of")
            lists = node.get("options", node.get("machines", []))
            lists = [node["counted"]] * 2 if "counted" in node else lists
            if "cuts" in node:
                lists = self._intervals(node)
            table = max(node.get("tables", [node.get("table", -1)]), default=-1)
            good = max(node.get("use", []), default=-1) < len(self.vectors) and table < len(tables)
            good = good and node.get("pack") in {None, *self.packed} and node.get("tables") != []
            need(good, "there is no such vector or table, or it cannot be packed")
            there = node.keys() & {"options", "counted"}
            end = len(tables[table] if there else instance.machines)
            good = table < 0 or (lists and all(i < end for items in lists for i in items))
            need(good, "a split has no case, or one that is not there")
            self.lists.append(lists)
            known += len(lists)
        need(len(self.nodes) == known, "every node but one must be a case")
        plain = all(v.marks.keys() <= {-1} and not v.boxed for v in self.vectors)
        self.plain = plain and not any(node.keys() & {"pack", "machines"} for node in self.nodes)
        rows = [vector.rows(instance.regions[-1]) for vector in self.vectors if self.plain]
        self._least = [tuple(map(min, zip(*each, strict=True))) for each in rows]
        self._live = sorted({k for row in self._least for k, times in enumerate(row) if times})
        self._near = cache(self._cheapest)

    def _intervals(self, node: dict[str, Any]) -> list[tuple[int, int]]:
        """The least and the largest height in each case of a split by a peak."""
        cuts, phases = node["cuts"], phases_of(self.instance, node["peak"])
        good = cuts and phases and sorted(set(cuts)) == cuts and self.target is not None
        need(good, "a split by a peak is not as its page says")
        return list(zip([0, *[cut + 1 for cut in cuts]], [*cuts, 2**62], strict=True))

    def open_case(self) -> str | None:
        """A sentence about the first node that is not closed; None if the claim is proved."""
        nothing = self.target is not None and self.target <= 0
        if nothing and self.instance.objective == "pipelined_step":
            return None  # no plan costs less than 0
        every = self._root(merged=False)
        if self.plain:
            some = self._root(merged=True)
            few, many = [sum(map(len, {id(left): left for left in state}.values()))
                         for state in (some, every)]  # fmt: skip
            if 2 * few <= many and self._open_below(some) is None:
                return None
        return self._open_below(every)  # floors and peaks of single options may close it

    def _root(self, merged: bool) -> list[list[Choice]]:
        """The choices of each table at the root; ``merged``: but those that others stand for."""
        homes = any("machines" in node for node in self.nodes)
        homes = homes or any(q >= 0 for vector in self.vectors for q in vector.covers)
        tables, told = [*self.instance.tables.values()], defaultdict[int, set[frozenset[int]]](set)
        for node, lists in zip(self.nodes, self.lists, strict=True):
            if node.keys() & {"options", "counted"}:
                table = node["tables"][0] if "counted" in node else node["table"]
                told[id(tables[table])] |= set(map(frozenset, lists))
        kinds = {id(options): table for table, options in self.instance.tables.items()}
        first = {kind: self._choices(table, homes, told[kind] if merged else None)
                 for kind, table in kinds.items()}  # fmt: skip
        return [first[id(options)] for options in tables]

    def _open_below(self, state: list[list[Choice]]) -> str | None:
        """The same of the tree below a state, which changes."""
        cases: list[Any] = [(state, Heights())]  # None: below a closed node
        for position, (node, lists) in enumerate(zip(self.nodes, self.lists, strict=True)):
            case, cases[position] = cases[position], None
            closed = case is None or not (self._bare(case[0]) and self._apply(node, *case))
            if closed or ("pack" in node and not self._packs(self.packed[node["pack"]], case[0])):
                cases += [None] * len(lists)
                continue
            if not lists:
                return f"node {position} is open"
            found = self._by_count if "counted" in node else self._by_table
            found = self._by_peak if "cuts" in node else found
            if not (children := found(node, lists, *case)):
                return f"node {position} is open: its split leaves a case out"
            cases += children
        return None

    def _by_table(
        self, node: dict[str, Any], lists: list[Any], state: list[list[Choice]], heights: Heights
    ) -> list[Any]:
        """The cases of a split by options or homes; none if it leaves one out."""
        table, key = node["table"], "position" if "options" in node else "home"
        cases, found = [{None, *items} for items in lists], []  # None: choices without a home
        left = [(getattr(choice, key), choice) for choice in state[table]]
        if not {case for case, _ in left} <= set().union(*cases):
            return []
        for case in cases:
            self.meter.take(len(left) + len(state))
            kept = [choice for one, choice in left if one in case]
            found.append(([*state[:table], kept, *state[table + 1 :]], heights))
        return found

    def _by_count(
        self, node: dict[str, Any], lists: list[Any], state: list[list[Choice]], heights: Heights
    ) -> list[Any]:
        """The cases of a split by how many of some tables take some options; none if it may be no
        more than the first says, or a table is not alike. Of tables that are alike, and have the
        same choices left, it may be the first that take them."""
        tables, most, some = node["tables"], node["most"], set(lists[0])
        self.meter.take(len(some) + 2 * len(state) + sum([2 * len(state[t]) for t in tables]))
        options, few, many = list(self.instance.tables.values()), [*state], [*state]
        alike = [options[t] is options[tables[0]] and state[t] == state[tables[0]] for t in tables]
        if not all(alike) or len(set(tables)) < len(tables) or most >= len(tables):
            return []
        every = state[tables[0]]
        without = [choice for choice in every if choice.position not in some]
        taken = [choice for choice in every if choice.position in some]
        for t in tables[most:]:
            few[t] = without
        for t in tables[: most + 1]:
            many[t] = taken
        return [(few, heights), (many, heights)]

    def _by_peak(
        self, node: dict[str, Any], lists: list[Any], state: list[list[Choice]], heights: Heights
    ) -> list[Any]:
        """The cases of a split by a peak, which always covers every plan."""
        phases, limit = phases_of(self.instance, node["peak"]), (self.target or 0) - 1
        low, high = heights.get(phases, (0, limit))
        self.meter.take(len(lists) * (1 + len(state) + len(heights)))
        left = [(max(low, a), min(high, b)) for a, b in lists]
        return [([*state], {**heights, phases: (a, b)}) if a <= b else None for a, b in left]

    def _choices(
        self, table: str, homes: bool, told: Set[frozenset[int]] | None = None
    ) -> list[Choice]:
        """The choices at the root: allowed options all of whose blocks have a place. Where it is
        said what splits tell apart, one at the cheapest ranks stands for those that no vector
        prices lower, with the least of their floors and peaks."""
        kept, found = list[Choice](), defaultdict[Any, list[tuple[list[int], bool, Choice]]](list)
        for position, option in enumerate(self.instance.tables[table]):
            allowed = (table, option.name) in self.instance.allowed
            if allowed and all(block.sites for block in option.blocks):
                floor = [sum([option.floor[k] for k in ks]) for ks in self.sums]
                peak = [sum([option.floor[k] + option.excess[k] for k in ks]) for ks in self.sums]
                places = option.homes if homes and option.homes else {None}
                self.meter.take(len(places))
                choices = [Choice(position, place, option, floor, peak) for place in places]
                if told is None:
                    kept += choices
                    continue
                self.meter.take(len(told))
                split = [position in case for case in told]
                found[option.moves, *split].append((*self._priced(option), choices[0]))
        for some in found.values():
            front = list[tuple[list[int], int]]()
            for sums, near, choice in sorted(some, key=lambda item: (item[0], not item[1])):
                self.meter.take(1 + len(front))
                over = [at for other, at in front if all(map(le, other, sums))]
                for at in over[:1]:
                    one = kept[at]
                    low, high = map(min, one.floor, choice.floor), map(min, one.peak, choice.peak)
                    kept[at] = one._replace(floor=list(low), peak=list(high))
                if not over:
                    front += [(sums, len(kept))] * near
                    kept.append(choice)
        return kept

    def _priced(self, option: Option) -> tuple[list[int], bool]:
        """What an option has at least of what every rank has a multiplier for, and whether that is
        its price by every vector."""
        sums, near = [0] * len(self._live), True
        for block in option.blocks:
            each = list[list[int]]()
            for parts in block.sites.values():
                looked = sum([len(part.ranks) for part in parts])
                self.meter.take(len(parts) * (1 + len(self._live) // 10) + looked // 10)
                taken = [(part.times, part.shard.amounts) for part in parts]
                each.append([sum([n * own[k] for n, own in taken]) for k in self._live])
            sites = [tuple([part.ranks for part in parts]) for parts in block.sites.values()]
            near = near and each.count(each[0]) == len(each)
            near = near and self._near(tuple(sites), block.free)
            least = map(min, zip(*each, strict=True))
            sums = [have + block.copies * own for have, own in zip(sums, least, strict=True)]
        return sums, near

    def _cheapest(self, sites: tuple[tuple[tuple[int, ...], ...], ...], free: bool) -> bool:
        """Whether all shards of a block may lie on ranks of the least multipliers, for each
        vector."""
        for vector, least in zip(self.vectors, self._least, strict=True):
            self.meter.take(vector.size * sum([1 + len(r) // 10 for site in sites for r in site]))
            each = [[vector.rows(ranks) for ranks in site] for site in sites]
            near = [[least in own and (free or len(own) == 1) for own in site] for site in each]
            if not any(map(all, near)):
                return False
        return True

    def _bare(self, state: list[list[Choice]]) -> bool:
        """Remove choices that exceed a limit together with the floors of all other tables.

        False if a table has no choice left.
        """
        while all(state):
            kinds = {id(left): left for left in state}  # tables that are alike share their choices
            choices = sum(map(len, kinds.values()))
            self.meter.take((len(state) + choices) * (1 + len(self.sums) // 8))
            floors = {kind: list(map(min, zip(*[c.floor for c in left], strict=True)))
                      for kind, left in kinds.items()}  # fmt: skip
            every = zip(*[floors[id(left)] for left in state], strict=True)
            room, fit = list(map(sub, self.most, map(sum, every))), dict[int, list[Choice]]()
            for kind, left in kinds.items():
                most = list(map(add, room, floors[kind]))
                fit[kind] = [choice for choice in left if all(map(le, choice.peak, most))]
            state[:] = [fit[id(left)] for left in state]
            if choices == sum(map(len, fit.values())):
                return True
        return False

    def _apply(self, node: dict[str, Any], state: list[list[Choice]], heights: Heights) -> bool:
        """Remove choices that a sum of rows excludes, then apply the bare rule, for each vector.

        False if a table has no choice left.
        """
        for vector in [self.vectors[v] for v in node.get("use", [])]:
            kinds = [(id(left), vector.marks.get(t)) for t, left in enumerate(state)]
            first = {kind: t for t, kind in reversed([*enumerate(kinds)])}
            blocks = sum([len(choice.option.blocks) for t in first.values() for choice in state[t]])
            self.meter.take(1 + len(state) + blocks * (vector.size + len(vector.boxed)))
            if (right := vector.right(state, heights)) == INF:
                continue
            left = {kind: [choice for choice in state[t]
                           if all([row.fits(choice.option) for row in vector.boxed])]
                    for kind, t in first.items()}  # fmt: skip
            if not all(left.values()):
                return False
            prices = {kind: [vector.price(t, choice) for choice in left[kind]]
                      for kind, t in first.items()}  # fmt: skip
            least = {kind: min(row) for kind, row in prices.items()}
            slack = right - sum([least[kind] for kind in kinds]) if right != -INF else -1
            for kind, row in prices.items():
                most, pairs = slack + least[kind], zip(left[kind], row, strict=True)
                left[kind] = [choice for choice, price in pairs if price <= most]
            state[:] = [left[kind] for kind in kinds]
            if slack < 0 or not self._bare(state):
                return False
        return True

    def _packs(self, f: int, state: list[list[Choice]]) -> bool:
        """Whether the items of some combination of choices can be packed into the ranks."""
        combined = {(self.most[f], Items())}
        for loads in [{self._load(choice, f) for choice in left} for left in state]:
            many = len(combined) * len(loads)
            need(many <= MOST_COMBINED, "there is too much to pack", NotChecked)
            self.meter.take(many + sum([len(a) + len(b) for _, a in combined for _, b in loads]))
            combined = {(r - n, tuple(sorted(a + b))) for r, a in combined for n, b in loads}
        for room, items in combined:
            need(len(set(items)) <= MOST_SIZES, "there is too much to pack", NotChecked)
            states = {items[::-1]}
            for bins in range(len(self.instance.ranks), 0, -1):
                gaps = {left: gap for left in states if (gap := bins * room - sum(left)) >= 0}
                states = set()
                for left, gap in gaps.items():
                    for rest in self._fill(left, room, gap, 1):
                        self.meter.take(1 + len(rest))  # because it is stored
                        need(len(states) < MOST_KEPT, "there is too much to pack", NotChecked)
                        states.add(rest)
                if not states:
                    break
            if () in states:
                return True
        return False

    def _load(self, choice: Choice, f: int) -> tuple[int, Items]:
        """The load that a choice adds to every rank, and its items."""
        items = list[int]()
        for block in choice.option.blocks:
            for part in next(iter(block.sites.values())) if block.free else ():
                if size := sum([part.shard.amounts[k] for k in self.sums[f]]):
                    self.meter.take(part.times)
                    items += [size] * part.times
        return choice.floor[f], tuple(sorted(items))

    def _fill(self, items: Items, free: int, gap: int, first: int) -> Iterator[Items]:
        """Every list of items that filling a bin may leave. The bin gets the first item and any
        number of every other size; its gap is at most what the bins have to spare together, and
        smaller than every item left."""
        if not items:
            yield ()
            return
        size, many = items[0], items.count(items[0])
        small = items[many:]
        for n in range(first, min(many, free // size) + 1):
            self.meter.take(len(items))
            after, tight = free - n * size, gap if n == many else min(gap, size - 1)
            for rest in self._fill(small, after, tight, 0) if after - sum(small) <= tight else ():
                yield items[n:many] + rest


# The outcome
VALUE, NUMBER = (range(1 - 2**63, 2**63), type(None)), (range(2**63), float)
GOALS = {"host_memory", "even_memory", "shards", "total", "moves", "moved_bytes", "stashed"}
GOAL = {"goal": GOALS, "scope": str, "value": VALUE[0], "bound": VALUE, "met": bool}
STANDS = {"option": str, "ranks": [[SIGNED]]}
OUTCOME = shaped({
    "status": {"optimal", "feasible", "infeasible", "unknown"}, "objective": VALUE, "bound": VALUE,
    "stopped_by": {"proof", "time_limit", "work_limit", "exhausted", "interrupted", "gap"},
    "objective_kind": str, "certified_bound": VALUE, "gap": (*NUMBER, *VALUE),
    "objectives": {f"{name}?": VALUE for name in ("total", "busiest_rank", *BY_PHASE)},
    "tables": ({None: STANDS}, type(None)), "certificate": (dict, type(None)),
    "bound_source": ({"method": str, "exact": bool}, type(None)), "before_goals?": VALUE,
    "trace": [[(*NUMBER, *VALUE, str)]], "seconds": NUMBER, "goals?": [GOAL], "instance": str,
    "formulation": str, "solver?": str, "version?": str, "note?": str, "settings?": dict,
    "detail?": dict,
})  # fmt: skip
POINT = [shaped(shape) for shape in (NUMBER, VALUE, VALUE, str)]  # of the trace
ROUNDED = 0.01  # seconds of the trace and of the outcome


def well_formed(outcome: Any) -> None:
    """Raise :class:`Unreadable` if an outcome does not have the documented format."""
    need(OUTCOME(outcome), "the outcome is not as its page says")
    ours = [item for key, item in outcome.items() if key not in {"certificate", "settings"}]
    while ours:
        if type(item := ours.pop()) in (dict, list):
            ours += item.values() if type(item) is dict else item
        good = type(item) not in (int, float) or abs(item) < 2**63
        need(good, "the outcome has a number of 2^63 or more")
    points = [len(point) == 4 and all(g(x) for g, x in zip(POINT, point, strict=True))
              for point in outcome["trace"]]  # fmt: skip
    need(all(points), "a point of the trace is not [seconds, objective, bound, source]")
    need(all(p[0] >= 0 for p in outcome["trace"]) and outcome["seconds"] >= 0, "a time is < 0")
    best, bound, gap = outcome["objective"], outcome["bound"], outcome["gap"]
    known = best is not None and bound is not None
    right = (best - bound) / max(1, abs(best)) if known else None
    good = gap is right if right is None or gap is None else abs(gap - right) <= 1e-12
    need(good, f"gap is {gap}, objective and bound give {right}")


class Case:
    """An outcome and its instance, read strictly; the methods judge its claims."""

    def __init__(self, instance: Instance, outcome: Any) -> None:
        well_formed(outcome)
        self.instance, self.claims, tables = instance, outcome, outcome["tables"]
        other = f"the fingerprint of its instance is {outcome['instance']!a:.70}, this one's is "
        need(outcome["instance"] == instance.fingerprint, other + instance.fingerprint)
        kind = outcome["objective_kind"]
        need(kind == instance.objective, "the outcome is about another objective")
        there = {table: {o.name for o in options} for table, options in instance.tables.items()}
        same = tables is None or tables.keys() == there.keys()
        need(same, "a table is only in one of outcome and instance")
        named = all(entry["option"] in there[table] for table, entry in (tables or {}).items())
        need(named, "a table has an option that the instance does not have")
        self.must_move = outcome.get("detail", {}).get("must_move", [])
        good = MUST_MOVE(self.must_move)
        good = good and len({must["counted"] for must in self.must_move}) == len(self.must_move)
        need(good, "what must move is not as its page says")
        self.proof, self.late, certificate = None, None, outcome["certificate"]
        self.forced = list[Proof]()  # of what must move
        try:
            self.proof = None if certificate is None else Proof(instance, certificate)
            self.forced = list(map(self._forced, self.must_move))
        except NotChecked as error:
            self.late = error

    def _forced(self, must: Any) -> Proof:
        """The proof of what must move at least."""
        tables, many = must["tables"], len(self.instance.tables)
        good = tables == sorted({*tables}) and max(tables, default=many) < many
        need(good, "what must move names tables that are not there, or not in order")
        apart, document = must["apart"], self.instance.document
        question = Instance(leaving(document, must["counted"], tables, apart))
        return Proof(question, parse(must["certificate"], "the certificate of what must move"))

    def unproved(self) -> Iterator[tuple[Any, str | None]]:
        """What must move, as claimed, and why that is not proved, or None."""
        if self.late:
            raise self.late
        for must, proof in zip(self.must_move, self.forced, strict=True):
            other = f"its certificate is for {proof.target!a:.40}"
            yield must, proof.open_case() if proof.target == must["least"] else other

    def too_little(self) -> bool:
        """Whether less may move than must, as claimed."""
        limits = self.instance.limits
        return any(m["least"] > limits.get(f"moved_{m['counted']}", INF) for m in self.must_move)

    def follows(self) -> str:
        """The verdict, which holds if the certificate closes; :class:`Refuted` if plan, certificate
        and claims contradict each other."""
        claims, instance = self.claims, self.instance
        found = {} if claims["tables"] is None else check_plan(instance, claims["tables"])
        told = [*claims["objectives"].items(), (instance.objective, claims["objective"])]
        for name, value in told:
            said = f"{name!a:.60} is {found.get(name)}, not {value}"
            need(found.get(name) == value, said, Refuted)
        says = verdict(claims, bool(found), self.too_little())
        searched(claims)
        return says

    def closes(self) -> None:
        """Raise :class:`Refuted` if the certificate leaves a case open, or :class:`NotChecked`."""
        if self.late:
            raise self.late
        case = self.proof.open_case() if self.proof else None
        need(case is None, f"the certificate does not close: {case}", Refuted)
        for must, case in self.unproved():
            what = f"{must['least']} {must['counted']} must move"
            need(case is None, f"that {what} is not certified: {case}", Refuted)


def check(document: Any, outcome: Any) -> Iterator[str]:
    """Lines that say what was checked, the verdict last; raises if a claim is false."""
    case = Case(Instance(document), outcome)
    for text in case.instance.restrictions:
        yield f"restricted: {text}"
    says = case.follows()
    if outcome["tables"] is not None:
        best = f"{outcome['objective_kind']} {outcome['objective']}"
        yield f"plan: complete, every constraint holds; {best}"
    case.closes()
    if case.proof:
        target = case.proof.target
        none = "there is no plan" if target is None else f"no plan costs less than {target}"
        yield f"certificate: {none}"
    for must in case.must_move:
        yield f"moves: at least {must['least']} {must['counted']} must move"
    yield f"verdict: {says}"


def searched(claims: dict[str, Any]) -> None:
    """Refute what the outcome reports about the search if it contradicts the result."""
    status, trace, settings = claims["status"], claims["trace"], claims.get("settings", {})
    good = (claims["stopped_by"] == "proof") == (status in {"optimal", "infeasible"})
    need(good, f"stopped_by is {claims['stopped_by']}, status {status}", Refuted)
    given, gap = claims.get("before_goals"), settings.get("gap")
    best = claims["objective"] if given is None else given
    if claims["stopped_by"] == "gap":
        ends = best, claims["certified_bound"]
        known = type(gap) in {int, float} and None not in ends
        good = known and (ends[0] - ends[1]) / max(1, abs(best)) <= gap
        need(good, "stopped_by is gap, but what is certified is not that near", Refuted)
    moments, plans, bounds = [[p[i] for p in trace if p[i] is not None] for i in range(3)]
    counted = settings.get("work_limit") is not None  # then times are in units of work
    late = moments and not counted and moments[-1] > claims["seconds"] + ROUNDED
    need(moments == sorted(moments) and not late, "the trace's moments are not in order", Refuted)
    need(not plans or min(plans) == best, "the trace reports another best plan", Refuted)
    high = max(bounds, default=None) if status != "infeasible" else None
    good = high is None or (claims["bound"] is not None and high <= claims["bound"])
    need(good, "the trace reports a higher bound", Refuted)


def verdict(claims: dict[str, Any], planned: bool, too_little: bool = False) -> str:
    """The verdict in words, if the claims follow from plan and certificate; ``too_little``: less
    may move than must."""
    objective, bound, status = claims["objective"], claims["bound"], claims["status"]
    certificate, source = claims["certificate"], claims["bound_source"] or {}
    proved = (certificate or {}).get("target")
    impossible = too_little or (certificate is not None and proved is None)
    closed = bound == objective and (bound == proved or source.get("exact"))
    right = {"optimal" if closed else "feasible"} if planned else {"infeasible", "unknown"}
    need(claims["certified_bound"] == proved, f"the certificate proves {proved}", Refuted)
    above = proved is None or (bound is not None and bound >= proved)
    need(above, f"bound is {bound}, below certified_bound", Refuted)
    need(not planned or bound is None or bound <= objective, "bound is above the plan", Refuted)
    named = bound is None or (bound == proved) or claims["bound_source"] is not None
    need(named, f"bound is {bound}, by nobody", Refuted)
    good = status in right and (status == "infeasible" or not impossible)
    need(good, f"status is {status}, which does not follow", Refuted)
    if impossible or (status == "optimal" and proved == objective):
        return f"certified {status}"
    by = f" by {source.get('method')!a:.60}" if status in {"optimal", "infeasible"} else ""
    text = "nothing certified" if proved is None else f"certified from {proved} on"
    if planned and proved is not None:
        parts = -(-10000 * (objective - proved) // max(1, abs(objective)))  # rounded up
        text = f"certified to {parts // 100}.{parts % 100:02d}%"
    return f"{status}{by}, {text}"


PACKED = shaped({"encoding": {"json+gzip+base64"}, "data": str})
PARTS = ("model", "cluster", "profile", "instance", "outcome")
PLAN = shaped({
    "format": {"milp-planner-plan/1"}, "version?": str, "tables": list,
    "ledger?": (list, dict, type(None)), "moves?": dict, "moving?": dict,
    "origins?": dict, "executable?": str,
    "divisions?": {"asked": dict, "others": [(
        {"two_d": dict, "instance": dict, "outcome": dict}, {"two_d": dict, "refused": str})]},
    "fingerprints": dict.fromkeys(PARTS[:4], str), **dict.fromkeys(PARTS, dict),
})  # fmt: skip
WORDS = {Refuted: ("refuted", 1), Unreadable: ("unreadable", 2), NotChecked: ("not checked", 3)}


def opened(document: Any, what: str) -> Any:
    """A plan.json with its parts unpacked and their fingerprints checked; others unchanged."""
    if type(document) is not dict or document.get("format") != "milp-planner-plan/1":
        return document
    need(PLAN(document), f"{what} is not as the page of plan.json says")
    others = [o for o in document.get("divisions", {"others": []})["others"] if "outcome" in o]
    for holder, names in ((document, PARTS), *((other, PARTS[3:]) for other in others)):
        for name in names:
            if "encoding" in (part := holder[name]):
                need(PACKED(part), f"{what}: {name} is not packed as its page says")
                part = parse(part["data"], f"{what}: {name}")
                need(type(part) is dict, f"{what}: {name} is no object")
            holder[name] = part
    made = {name: digest([document[name]]) for name in PARTS[:3]}
    made["instance"] = document["outcome"].get("instance")  # compared with the instance by Case
    wrong = [name for name in made if document["fingerprints"][name] != made[name]]
    need(not wrong, f"{what}: {', '.join(wrong)} does not match its fingerprint")
    return document


def elsewhere(plan: dict[str, Any]) -> Iterator[str]:
    """Check the other divisions of the cluster, which have the same objective: their certificates
    must close. The line says below which cost none of them has a plan."""
    own, others = plan["outcome"], plan["divisions"]["others"]
    best = own["objective"] if own.get("before_goals") is None else own["before_goals"]
    proved: list[int | None] = []
    for number, other in enumerate(others):
        if "outcome" not in other:
            continue
        case, told = Case(Instance(other["instance"]), other["outcome"]), f"division {number}"
        same = case.claims["objective_kind"] == own["objective_kind"]
        need(same, f"{told} has another objective", Refuted)
        says, costs = case.follows(), case.claims["objective"]
        case.closes()
        worse = costs is None or (best is not None and costs >= best)
        need(worse, f"{told} has a plan of {costs}, which is better", Refuted)
        if says != "certified infeasible":
            proved.append(case.claims["certified_bound"])
    left = f"; {proved.count(None)} have no certificate" if None in proved else ""
    least = min((bound for bound in proved if bound is not None), default=None)
    none = "none has a plan" if least is None else f"none has a plan below {least}"
    priced = sum("outcome" in other for other in others)
    yield f"divisions: of {priced} others {none}{left}"


def main(paths: list[str]) -> int:
    """Check files. Exit codes: 0 a verdict, 1 a claim is refuted, 2 the input cannot be read,
    3 not checked, because it takes too long or too much memory."""
    gc.disable()  # there are millions of objects and no cycles
    try:
        need(len(paths) in (1, 2), "give plan.json, or an outcome and its instance")
        files = [parse(Path(path), f"{path!a:.60}") for path in paths]
        lines: Iterator[str] = iter(())
        if len(paths) == 1:
            plan = opened(files[0], f"{paths[0]!a:.60}")
            good = type(plan) is dict and plan.get("format") == "milp-planner-plan/1"
            need(good, "this is no plan.json; an outcome needs its instance as well")
            files = [plan["outcome"], plan["instance"]]
            print("prices: those of the file, not derived from its model, cluster and profile")
            if "divisions" in plan:
                lines = elsewhere(plan)
        for line in (*check(files[1], files[0]), *lines):
            print(line)
    except (Refuted, Unreadable, NotChecked) as error:
        print(f"{WORDS[type(error)][0]}: {error}", file=sys.stderr)
        return WORDS[type(error)][1]
    except MemoryError:
        print("not checked: the memory does not suffice", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
