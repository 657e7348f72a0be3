"""Check a plan, and the proof that none is better, from the files alone.

    python checker.py plan.json
    python checker.py outcome.json --instance instance.json.gz

Reads an Instance (docs/instance-format.md) and an outcome (docs/outcome.md) and believes nothing in
them: the plan is checked, its objectives are recomputed, and the certificate is judged by
docs/proof.md, whose sections stand in [brackets] below. Python's standard library and integers
only, and no line shared with the solvers and the prover.

Exit status: 0 every claim that can be checked holds; 1 one is refuted; 2 the input cannot be read.
"""
# ruff: noqa: B905 (zip and map stop at the shorter)

from __future__ import annotations

import argparse
import base64
import gzip
import io
import json
import sys
import zlib
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, cycle, repeat
from operator import add, gt, mul, sub
from typing import Any

MAX_BYTES = 2**29  # longest text that is read or unpacked


class Unreadable(Exception):
    """The input is malformed; the text says what and where."""


class Refuted(Exception):
    """A claim does not hold; the text says which and why."""


def need(holds: object, sentence: str) -> None:
    """Refuse malformed input."""
    if not holds:
        raise Unreadable(sentence)


def refute(wrong: object, sentence: str) -> None:
    """Refuse a claim."""
    if wrong:
        raise Refuted(sentence)


def shown(value: Any) -> str:
    """A found value in a sentence: short, and harmless on any terminal."""
    found = f"a {type(value).__name__}" if isinstance(value, (dict, list)) else ascii(value)
    return found if len(found) <= 60 else found[:57] + "..."


# --- Forms of the files: a range is an integer, a set a word, a tuple alternatives, "*" any key ---

AMOUNT, SIGNED, COUNT = range(2**53), range(1 - 2**53, 2**53), range(1, 2**53)
FACTOR, VALUE = range(1 << 20_000), range(-(1 << 20_000), 1 << 20_000)  # of any size
RANKS, OBJECTIVES = [[AMOUNT]], {"total", "busiest_rank", "step_time"}
BY_MACHINE = {"one_machine", "any_rank_of_one_machine"}
FREE = {"any_rank"} | BY_MACHINE  # kinds of place that leave a choice
STANDING = {"every_rank", "list", "one_machine"}  # a shard on each rank of a way
SHARD = {"cost": [SIGNED], "use?": {"*": AMOUNT}, "repeat?": COUNT, "move_bytes?": AMOUNT}
BLOCK: dict[str, Any] = {"where": ({"every_rank", "cluster"} | FREE, [AMOUNT]), "shards": [SHARD]}
BLOCK |= {"count?": COUNT, "distinct?": bool, "among?": [AMOUNT]}
OPTION = {"name": str, "fusion?": {"group": str, "level": SIGNED}, "blocks": [BLOCK]}
RESOURCE = {"name": str, "scope": {"rank", "machine", "cluster"}, "capacity": (AMOUNT, [AMOUNT])}
NAMED = {"table": str, "option": str}
INSTANCE = {"format": {"milp-planner-instance/1"}, "name?": str, "source?": str}
INSTANCE |= {"reference?": list, "ranks": COUNT, "machines": RANKS, "phases": [str]}
INSTANCE |= {"time_unit?": str, "objective": OBJECTIVES, "resources": [RESOURCE]}
INSTANCE |= {"tables": [{"name": str, "options": [OPTION]}], "forbidden?": [NAMED]}
INSTANCE |= {"pins?": [NAMED | {"ranks?": RANKS}], "max_moved_tables?": AMOUNT}
INSTANCE |= {"current?": {"*": {"option": str, "ranks": RANKS}}, "max_moved_bytes?": AMOUNT}
OUTCOME = {"status": {"optimal", "feasible", "infeasible", "unknown"}, "*": object}
OUTCOME |= {"objective_kind": OBJECTIVES, "objective": (VALUE, None), "bound": (VALUE, None)}
OUTCOME |= {"certified_bound": (VALUE, None), "objectives?": {"*": (VALUE, None)}}
OUTCOME |= {"tables": (None, {"*": {"option": str, "ranks": RANKS}})}
OUTCOME |= {"certificate": (None, {"*": object})}
SPREAD, LARGEST = {"*": (FACTOR, [FACTOR])}, {"*": [[FACTOR]]}
VECTOR = {"cost?": SPREAD, "capacity?": SPREAD, "largest_cost?": LARGEST, "largest_use?": LARGEST}
VECTOR |= {"moved_tables?": FACTOR, "moved_bytes?": FACTOR, "fusion?": {"*": [[VALUE]]}}
NODE = {"use?": [AMOUNT], "nodes?": [AMOUNT], "table?": AMOUNT, "options?": RANKS}
NODE |= {"machines?": RANKS}
CERTIFICATE = {"version": range(2, 3), "kind": {"bound", "infeasible"}, "target?": VALUE}
CERTIFICATE |= {"vectors": [VECTOR], "nodes": [NODE]}


def fit(value: Any, form: Any, what: str) -> None:
    """Refuse a value that has not the form: an unknown key, 1.0 or true for 1, and so on."""
    found = fault(value, form)
    need(found is None, f"{what}{found}")


def fault(value: Any, form: Any) -> str | None:
    """Where and how a value has not the form; None where it has."""
    if isinstance(form, tuple):
        kinds = (list, dict, type(None))
        alike = (f for f in form if all(isinstance(f, k) == isinstance(value, k) for k in kinds))
        form = next(alike, form[0])
    if isinstance(form, dict) and isinstance(value, dict):
        for key in (key for key in form if key[-1] not in "?*" and key not in value):
            return f": the field {key!r} is missing"
        for key, entry in value.items():
            inner = form.get(key, form.get(key + "?", form.get("*")))
            found = ": unknown" if inner is None or key[-1:] == "?" else fault(entry, inner)
            if found is not None:
                return f".{shown(key)[1:-1]}{found}"
        return None
    if isinstance(form, list) and isinstance(value, list):
        inside = ((i, fault(entry, form[0])) for i, entry in enumerate(value))
        return next((f"[{i}]{found}" for i, found in inside if found is not None), None)
    if isinstance(form, range):
        right = type(value) is int and value in form
    elif isinstance(form, set):
        right = isinstance(value, str) and value in form
    else:
        right = isinstance(value, form) if isinstance(form, type) else value is form is None
    return None if right else f" is {shown(value)}: of another type, or not allowed there"


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON without duplicate keys."""
    need(len(dict(pairs)) == len(pairs), "a key appears twice in one object")
    return dict(pairs)


def read(data: bytes | str, what: str) -> Any:
    """JSON, gzipped (as text: and in base64) or not; no duplicate keys, NaN, bottomless nesting."""
    try:
        data = base64.b64decode(data, validate=True) if isinstance(data, str) else data
        if data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        need(len(data) <= MAX_BYTES, f"{what}: longer than {MAX_BYTES} bytes")
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=int)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Unreadable(f"{what}: not valid JSON ({str(error)[:90]!a})") from None


def read_file(path: str) -> Any:
    """A JSON file, gzipped or not."""
    with open(path, "rb") as file:
        return read(file.read(MAX_BYTES + 1), ascii(path))


def part(plan: Any, key: str) -> Any:
    """A part of plan.json, unpacked when it is packed."""
    value = plan.get(key)
    if not isinstance(value, dict) or "encoding" not in value:
        return value
    fit(value, {"encoding": {"json+gzip+base64"}, "data": str}, key)
    return read(value["data"], key)


# --- The Instance ---------------------------------------------------------------------------------

# A set of ranks is the bits of an integer; the bit after the last rank is for shards on no rank.
# cost: one a phase; values: one a column; move: bytes that move with it
Shard = namedtuple("Shard", "cost values move")
# runs: the shards in order, each with how often it comes in a row
Block = namedtuple("Block", "where count distinct ways runs")
# A way to place a block: its ranks, and the sets of ranks (a machine, None for all) that it covers
Way = namedtuple("Way", "ranks covers")
# home: index of its home block [Splits]; floor, excess and peak: one a column [The bare rule]
Option = namedtuple("Option", "name group level blocks home floor excess peak")


@cache
def mask_of(ranks: Sequence[int]) -> int:
    """A set of ranks, from a tuple or range of them."""
    return sum(1 << r for r in set(ranks))


def different(values: Iterable[Any], what: str, below: int = 0) -> tuple[Any, ...]:
    """A non-empty list without repeats; with ``below``, of places."""
    found = tuple(values)
    need(0 < len(found) == len(set(found)), f"{what}: none, or one twice")
    need(not below or max(found) < below, f"{what}: a place must be below {below}")
    return found


class Instance:
    """An Instance file. Its columns: the objective's costs, then the resources."""

    def __init__(self, raw: Any) -> None:
        fit(raw, INSTANCE, "instance")
        self.objective, self.ranks = raw["objective"], raw["ranks"]
        self.machines = [different(m, "machines", self.ranks) for m in raw["machines"]]
        self.machine_of = {r: q for q, m in enumerate(self.machines) for r in m}
        parted = sum(map(len, self.machines)) == self.ranks == len(self.machine_of)
        need(parted, "machines must partition the ranks")
        self.sets: dict[Any, int] = {q: mask_of(tuple(m)) for q, m in enumerate(self.machines)}
        self.sets[None] = mask_of(range(self.ranks))
        self.phases = different(raw["phases"], "phases")
        costs = self.phases if self.objective == "step_time" else (self.objective,)
        scope = "cluster" if self.objective == "total" else "rank"
        self.columns = [(scope, [0] * self.size(scope))] * len(costs)  # a cost's limit is L
        for resource in raw["resources"]:
            given, size = resource["capacity"], self.size(resource["scope"])
            given = given if isinstance(given, list) else [given] * size
            need(len(given) == size, f"a resource of this scope needs {size} capacities")
            self.columns.append((resource["scope"], given))
        self.names = tuple(r["name"] for r in raw["resources"])
        need(len(self.names) == len(set(self.names)), "resources: a name appears twice")
        names = chain(zip(repeat("cost"), costs), zip(repeat("use"), self.names))
        self.column, self.costs = {name: f for f, name in enumerate(names)}, len(costs)
        self.table = {t["name"]: i for i, t in enumerate(raw["tables"])}
        need(len(self.table) == len(raw["tables"]), "tables: a name appears twice")
        self.tables = []
        for t in raw["tables"]:
            what = f"table {shown(t['name'])}"
            different((o["name"] for o in t["options"]), f"{what}: options")
            self.tables.append([self._option(o, what) for o in t["options"]])
        self.limits = {k: raw[k] for k in ("max_moved_tables", "max_moved_bytes") if k in raw}
        self.forbidden = {self._named(f, "forbidden") for f in raw.get("forbidden", [])}
        self.current = {}  # an option that is gone is None
        for name, now in raw.get("current", {}).items():
            t, o = self._named({"table": name, **now}, "current")
            self.current[t] = o, now["ranks"]
        self.pins: dict[int, Any] = {}
        for pin in raw.get("pins", []):
            t, o = self._named(pin, "pins")
            need(t not in self.pins and o is not None, "pins: a table twice, or no such option")
            blocks, ranks = self.tables[t][o].blocks, pin.get("ranks")
            known = not ranks or max(chain([0], *ranks)) < self.ranks
            right = known and (ranks is None or len(ranks) == len(blocks))
            need(right, "pins: not one list of ranks a block")
            self.pins[t] = o, ranks

    def size(self, scope: str) -> int:
        """How many places a scope has."""
        return {"rank": self.ranks, "machine": len(self.machines)}.get(scope, 1)

    def place(self, scope: str, rank: int) -> int:
        """The place of a scope that a rank belongs to."""
        return {"rank": rank, "machine": self.machine_of.get(rank, 0)}.get(scope, 0)

    def _named(self, raw: Any, what: str) -> tuple[int, Any]:
        need(raw["table"] in self.table, f"{what}: there is no table {shown(raw['table'])}")
        t = self.table[raw["table"]]
        return t, next((o for o, x in enumerate(self.tables[t]) if x.name == raw["option"]), None)

    def _option(self, raw: Any, what: str) -> Option:
        what += f", option {shown(raw['name'])}"
        blocks = [self._block(b, what) for b in raw["blocks"]]
        need(blocks, f"{what}: a block is needed")
        floor, excess = [0] * len(self.columns), [0] * len(self.columns)
        for block in (b for b in blocks if b.where != "cluster"):
            for f, values in enumerate(zip(*(shard.values for shard, _ in block.runs))):
                low = min(values) if None in block.ways[0].covers else 0
                floor[f] += low * block.count
                excess[f] = max(excess[f], max(values) - low)
        group, level = (raw.get("fusion", {}).get(k) for k in ("group", "level"))
        home = next((i for i, b in enumerate(blocks) if b.where in FREE), None)
        peak = [*map(add, floor, excess)]
        return Option(raw["name"], group, level, blocks, home, floor, excess, peak)

    def _block(self, raw: Any, what: str) -> Block:
        where, count = raw["where"], raw.get("count", 1)
        where, given = ("list", where) if isinstance(where, list) else (where, raw.get("among"))
        single = where in ("list", "every_rank")
        need(where in FREE or "among" not in raw, f"{what}: 'among' has no meaning here")
        need(not single or count == 1, f"{what}: 'count' has no meaning here")
        below = self.size("machine" if where in BY_MACHINE else "rank")
        places = different(range(below) if given is None else given, what, below)
        ways = [Way(places, tuple(self.sets) * (where == "every_rank"))]
        if where in BY_MACHINE:
            covers = (None,) if below == 1 else ()
            ways = [Way(self.machines[q], (q, *covers) * (where == "one_machine")) for q in places]
        elif where == "cluster":
            ways = [Way((self.ranks,), ())]
        whole = single or where == "one_machine"
        wanted = {len(way.ranks) for way in ways} if whole else {count}
        runs: list[tuple[Shard, int]] = []
        for entry in raw["shards"]:
            shard = self._shard(entry, where == "cluster", what)
            before = runs.pop()[1] if runs and runs[-1][0] == shard else 0
            runs.append((shard, before + entry.get("repeat", 1)))
        number = sum(n for _, n in runs)
        need({number} in ({1}, wanted), f"{what}: {number} shards, needed: {wanted}")
        runs = [(runs[0][0], max(wanted))] if len(runs) == 1 else runs
        return Block(where, count, raw.get("distinct", where == "one_machine"), ways, runs)

    def _shard(self, raw: Any, free: bool, what: str) -> Shard:
        cost, use = tuple(raw["cost"]), raw.get("use", {})
        known = len(cost) == len(self.phases) and use.keys() <= set(self.names)
        need(known, f"{what}: not one cost a phase, or an unknown resource")
        need(self.objective == "total" or min(cost) >= 0, f"{what}: a cost is below 0")
        values = cost if self.objective == "step_time" else (sum(cost),)
        values += tuple(use.get(name, 0) for name in self.names)
        uses = [*zip(values, self.columns)][self.costs :]
        wrong = free and any(u and scope != "cluster" for u, (scope, _) in uses)
        need(not wrong, f"{what}: a cluster block may use cluster resources only")
        return Shard(cost, values, raw.get("move_bytes", 0))


# --- The plan -------------------------------------------------------------------------------------

Placed = list[tuple[Option, list[list[int]]]]  # of every table: its option, the ranks of blocks


def check_plan(instance: Instance, raw: Any) -> dict[str, int]:
    """The objectives of a plan that keeps every rule of the Instance; else Refuted."""
    placed: Placed = []
    for called in raw.keys() ^ instance.table.keys():
        refute(True, f"table {shown(called)} is only in one of plan and instance")
    for called, t in instance.table.items():
        what, ranks = f"table {shown(called)}", raw[called]["ranks"]
        found = [o for o in instance.tables[t] if o.name == raw[called]["option"]]
        refute(not found, f"{what} has no such option")
        refute(len(ranks) != len(found[0].blocks), f"{what}: not one list of ranks a block")
        for block, where in zip(found[0].blocks, ranks):
            there = may_stand(block, where)
            refute(not there, f"{what}: a block ({block.where}) stands where it may not")
        placed.append((found[0], ranks))
    check_choices(instance, placed)
    sums = [[0] * len(caps) for _, caps in instance.columns]
    cost = [[0] * len(instance.phases) for _ in range(instance.ranks + 1)]
    for rank, shard, times in seats(instance, placed):
        cost[rank] = [c + times * own for c, own in zip(cost[rank], shard.cost)]
        for used, value, (scope, _) in zip(sums, shard.values, instance.columns):
            if rank < instance.ranks or scope == "cluster":
                used[instance.place(scope, rank)] += times * value
    for name, used, (_, caps) in [*zip(instance.column, sums, instance.columns)][instance.costs :]:
        for place, (u, c) in enumerate(zip(used, caps)):
            refute(u > c, f"{shown(name[1])} at place {place}: {u} are used, {c} are there")
    rows, step = [*map(sum, cost)], sum(map(max, zip(*cost[:-1])))
    return {"total": sum(rows), "busiest_rank": max(rows[:-1]), "step_time": step}


def may_stand(block: Block, ranks: list[int]) -> bool:
    """Whether these are places of the block: where, among, count, distinct."""
    if block.where == "cluster":
        return not ranks
    taken: list[Any] = ranks
    there = True
    if block.where.startswith("any"):
        there = any(set(ranks) <= set(way.ranks) for way in block.ways)
    else:  # one way after the other
        ways, taken, left = {way.ranks[0]: way.ranks for way in block.ways}, [], [*ranks]
        while left and left[0] in ways:
            taken.append(ways[left[0]])
            there = left[: len(taken[-1])] == [*taken[-1]] and there
            del left[: len(taken[-1])]
        there = there and not left
    apart = not block.distinct or len(set(taken)) == len(taken)
    return there and apart and len(taken) == block.count


def seats(instance: Instance, placed: Placed) -> Iterator[tuple[int, Shard, int]]:
    """Every shard with its rank, once; beyond the last rank with how often it is there."""
    for option, ranks in placed:
        for block, where in zip(option.blocks, ranks):
            if block.where == "cluster":
                yield from ((instance.ranks, shard, n) for shard, n in block.runs)
            else:  # one_machine takes machine after machine
                shards = chain.from_iterable(repeat(shard, n) for shard, n in block.runs)
                yield from ((rank, shard, 1) for rank, shard in zip(where, cycle(shards)))


def check_choices(instance: Instance, placed: Placed) -> None:
    """Fusion, forbidden options, pins and moves."""
    levels: dict[Any, Any] = {}
    moved: Placed = []
    for t, (option, ranks) in enumerate(placed):
        o = instance.tables[t].index(option)
        split = levels.setdefault(option.group, option.level) != option.level
        refute(split, f"fusion group {shown(option.group)} stands at two levels")
        pinned, where = instance.pins.get(t, (o, None))
        apart = pinned != o or not same(where or ranks, ranks)
        refute(apart or (t, o) in instance.forbidden, f"tables[{t}]: forbidden, or against its pin")
        before, stood = instance.current.get(t, (o, ranks))
        if before != o or not same(stood, ranks):
            moved.append((option, ranks))
    size = sum(shard.move * times for _, shard, times in seats(instance, moved))
    for key, found in (("max_moved_tables", len(moved)), ("max_moved_bytes", size)):
        limit = instance.limits.get(key, found)
        refute(found > limit, f"{key} is {limit}, the plan moves {found}")


def same(a: list[list[int]], b: list[list[int]]) -> bool:
    """Whether placements agree, the ranks of each block as multisets."""
    return [sorted(x) for x in a] == [sorted(x) for x in b]


# --- The certificate ------------------------------------------------------------------------------

# A way with room. parts: shard, ranks, and how many such shards take one of them (0: one on each)
Places = namedtuple("Places", "ranks covers parts")
Choice = tuple[int, int | None]  # an option, and the machine of its home (None: not told)
Allowed = list[tuple[Choice, ...]]  # by table
EVERYWHERE = -1


def least(values: Iterable[Any]) -> Any:
    """The least of what is there; None where nothing is."""
    return min((v for v in values if v is not None), default=None)


class Vector:
    """Multipliers of rows and the right-hand side of their sum [Applying a vector]."""

    def __init__(self, instance: Instance, raw: Any, bound: int | None) -> None:
        self.instance, self.right, self.depth = instance, 0, [0] * len(instance.columns)
        self.rows = [[0] * len(instance.columns) for _ in range(instance.ranks + 1)]
        self.covers: Any = defaultdict(Counter)  # largest-shard rows by set: of all tables,
        self.own: Any = defaultdict(lambda: defaultdict(Counter))  # and of each
        self.tables, self.bytes = raw.get("moved_tables", 0), raw.get("moved_bytes", 0)
        self.fusion: Any = defaultdict(Counter)  # of each table, by group and level
        for key, given in raw.items():
            if key.startswith("moved"):
                need(f"max_{key}" in instance.limits, f"the instance has no limit on {key}")
                self.right += given * instance.limits[f"max_{key}"]
                continue
            kind = "cost" if "cost" in key else "use"
            add_rows: Any = self._fuse if key == "fusion" else self._spread
            add_rows = self._largest if key.startswith("largest") else add_rows
            need(bound is not None or kind == "use", "vector: costs belong to kind bound")
            for name, value in given.items():
                known = key == "fusion" or (kind, name) in instance.column
                need(known, f"vector: {key} names what is not there")
                add_rows(instance.column.get((kind, name), name), value)
        self.right += (bound or 0) * max(self.depth[: instance.costs])  # [Why every row holds]
        kinds: Any = defaultdict(int)  # ranks of equal multipliers
        for r, weights in enumerate(self.rows):
            kinds[tuple(weights)] |= 1 << r
        self.kinds, self.prices = list(kinds.items()), dict[tuple[int, Choice], int | None]()

    def _spread(self, f: int, given: Any) -> None:
        """A row for every place of a cost or resource."""
        scope, caps = self.instance.columns[f]
        spread = given if isinstance(given, list) else [given] * len(caps)
        right = len(spread) == len(caps) and (scope != "cluster" or spread is not given)
        need(right, "vector: not one multiplier a place")
        for r, weights in enumerate(self.rows):
            on = r < self.instance.ranks or scope == "cluster"
            weights[f] = spread[self.instance.place(scope, r)] if on else 0
        self.depth[f] += sum(spread)
        self.right += sum(map(mul, spread, caps))

    def _fuse(self, group: str, given: Any) -> None:
        """Rows of tables at levels of a group, of which a plan has one."""
        levels: Any = Counter()
        for row in given:
            t, level, m = row if len(row) == 3 else (0, 0, -1)
            need(m >= 0 and t in range(len(self.instance.tables)), f"vector: no fusion row {row}")
            self.fusion[t][group, level] += m
            levels[level] += m
        self.right += max(levels.values(), default=0)

    def _largest(self, f: int, given: Any) -> None:
        """Rows of the largest shards of tables, over all ranks or those of a machine."""
        scope, caps = self.instance.columns[f]
        for row in given:
            t, m, about = (*row, None)[:3] if len(row) in (2, 3) else (0, 0, -1)
            known = t < len(self.instance.tables) and about in self.instance.sets
            need(known and scope == "rank", f"vector: no largest-shard row {row}")
            self.own[t][about][f] += m
            self.covers[about][f] += m
            self.depth[f] += m
            inside = self.instance.sets[about]
            self.right += m * max(c for r, c in enumerate(caps) if inside >> r & 1)


class Proof:
    """A certificate of version 2, well formed for an instance [The file]."""

    def __init__(self, instance: Instance, raw: Any) -> None:
        fit(raw, CERTIFICATE, "certificate")
        need(("target" in raw) == (raw["kind"] == "bound"), "certificate: target is for kind bound")
        self.instance, self.nodes = instance, raw["nodes"]
        self.bound = raw["target"] - 1 if "target" in raw else None
        self.vectors = [Vector(instance, v, self.bound) for v in raw["vectors"]]
        children = [(i, c) for i, node in enumerate(self.nodes) for c in node.get("nodes", [])]
        once = sorted(c for _, c in children) == list(range(1, len(self.nodes)))
        need(once and all(i < c for i, c in children), "certificate: its nodes are no tree")
        used = max(chain([-1], *(node.get("use", ()) for node in self.nodes)))
        need(used < len(self.vectors), "certificate: a node uses a vector that is not there")
        told = any("machines" in node for node in self.nodes)
        told |= any(about is not None for v in self.vectors for about in v.covers)
        self.homes = [*range(len(instance.machines))] if told else [None]
        priced = self.bound is not None and instance.objective != "total"
        self.costs = range(instance.costs if priced else 0)
        uses = [*enumerate(instance.columns)][instance.costs :]
        self.tested = [(f, max(caps)) for f, (scope, caps) in uses if scope == "rank"]
        self.rooms: Any = defaultdict(int)  # ranks by what is there of every resource
        for r in range(instance.ranks):
            room = (2**53 if s == "cluster" else c[instance.place(s, r)] for _, (s, c) in uses)
            self.rooms[tuple(room)] |= 1 << r
        self.places: dict[tuple[int, int], list[list[Places]]] = {}

    def open_node(self) -> int | None:
        """A node that stays open [Reading it]; None if the root is closed: the claim is proved."""
        root: Allowed = [()] * len(self.instance.tables)
        for t, options in enumerate(self.instance.tables):
            pinned = self.instance.pins.get(t, (None, None))[0]
            for o, option in enumerate(options):
                if pinned in (None, o) and (t, o) not in self.instance.forbidden:
                    self.places[t, o] = [*self._places(t, o)]
                    homes = [None] if option.home is None else self.homes
                    root[t] += tuple((o, q) for q in homes if all(self.places[t, o]))
        stack = [(0, root)]
        while stack:
            i, left = stack.pop()
            if not self._closes(self.nodes[i], left):
                children = self._split(self.nodes[i], left)
                if children is None:
                    return i
                stack += [*zip(self.nodes[i]["nodes"], children)][::-1]
        return None

    def _closes(self, node: Any, allowed: Allowed) -> bool:
        """Whether no case is left at a node; narrows ``allowed``."""
        self._bare_rule(allowed)
        for v in node.get("use", []):
            if not all(allowed) or self._apply(self.vectors[v], allowed):
                return True
            self._bare_rule(allowed)
        return not all(allowed)

    def _split(self, node: Any, allowed: Allowed) -> list[Allowed] | None:
        """What the children allow [Splits]; None where a case is in no list, or at a leaf."""
        t, by = node.get("table", 0), "machines" in node
        lists = [{*listed, None} for listed in node.get("machines", node.get("options", ()))]
        split = {"table", "nodes", "machines" if by else "options"} if lists else set()
        need(node.keys() - {"use"} == split, "certificate: a node has not the keys of one split")
        right = len(lists) == len(node.get("nodes", ())) and t < max(1, len(allowed))
        need(right, "certificate: a split without its table, or not one list a child")
        if not lists:
            return None
        listed, most = (
            set().union(*lists),
            self.instance.machines if by else self.instance.tables[t],
        )
        need(listed <= {None, *range(len(most))}, "certificate: a split names what is not there")
        if not all(c[by] in listed for c in allowed[t]):
            return None
        kept = [tuple(c for c in allowed[t] if c[by] in case) for case in lists]
        return [[*allowed[:t], own, *allowed[t + 1 :]] for own in kept]

    def _bare_rule(self, allowed: Allowed) -> None:
        """[The bare rule]: the rank of an option's largest shard bears it and all floors."""
        before: Allowed = []
        while before != allowed and all(allowed):
            before = allowed[:]
            rows = [[own[o] for o, _ in cs] for own, cs in zip(self.instance.tables, allowed)]
            low = [[*map(min, zip(*(x.floor for x in row)))] for row in rows]
            floors = [*map(sum, zip(*low))]
            for t, row in enumerate(rows):
                base = [*map(sub, floors, low[t])]
                kept = (c for c, x in zip(before[t], row) if self._bears(base, x.peak))
                allowed[t] = tuple(kept)

    def _bears(self, base: list[int], peak: list[int]) -> bool:
        cost = sum(base[f] + peak[f] for f in self.costs)
        fits = all(base[f] + peak[f] <= most for f, most in self.tested)
        return fits and (not self.costs or cost <= (self.bound or 0))

    def _places(self, t: int, o: int) -> Iterator[list[Places]]:
        """[Places]: of each block of an option, its ways that have room."""
        pins = self.instance.pins.get(t, (o, None))[1]
        for i, block in enumerate(self.instance.tables[t][o].blocks):
            named = mask_of(tuple(pins[i])) if pins and block.where in FREE else EVERYWHERE
            stands = block.where in STANDING
            alike = len(block.runs) == 1 and block.where in FREE
            apart = block.count if block.distinct and alike else 1
            found = []
            for way in (way for way in block.ways if mask_of(way.ranks) & named):
                parts, start = [], 0
                for shard, n in block.runs:
                    ranks = mask_of(way.ranks[start : start + n] if stands else way.ranks)
                    ranks, room = (ranks if stands else ranks & named), self.open(shard)
                    wanted = ranks.bit_count() if stands else apart
                    if (ranks & room).bit_count() >= wanted:
                        parts.append((shard, ranks & room, 0 if stands else n))
                    start += n
                if len(parts) == len(block.runs):
                    found.append(Places(mask_of(way.ranks), way.covers, parts))
            short = block.where == "one_machine" and block.distinct and len(found) < block.count
            yield [] if short else found

    def open(self, shard: Shard) -> int:
        """The ranks that a shard fits alone; shards on no rank do."""
        use = shard.values[self.instance.costs :]
        fits = sum(mask for room, mask in self.rooms.items() if not any(map(gt, use, room)))
        return fits | 1 << self.instance.ranks

    def _price(self, vector: Vector, t: int, choice: Choice) -> int | None:
        """[Price]: what a choice adds to the left-hand side at least; None: it has no place."""
        if (t, choice) not in vector.prices:
            (o, q), inst = choice, self.instance
            option, own = inst.tables[t][o], vector.own.get(t, {})
            move = inst.current.get(t, (o, None))[0] != o
            excess = (m * option.excess[f] for f, m in own.get(None, {}).items())
            found = [vector.tables * move, sum(excess)]
            found.append(vector.fusion[t][option.group, option.level])
            for i, block in enumerate(option.blocks):
                near, chief = EVERYWHERE, block.runs[0][0]
                if i == option.home and q is not None:
                    near = inst.sets[q]
                    if block.where not in STANDING:
                        found.append(sum(m * chief.values[f] for f, m in own.get(q, {}).items()))
                ways = [(w, self._way(vector, w, near, vector.bytes * move))
                        for w in self.places[t, o][i]]  # fmt: skip
                found.append(least(p for w, p in ways if w.ranks & near))
                if block.where == "one_machine":
                    found += [least(p for _, p in ways)] * (block.count - 1)
            vector.prices[t, choice] = None if None in found else sum(found)
        return vector.prices[t, choice]

    def _way(self, vector: Vector, way: Places, near: int, bytes_: int) -> int | None:
        """The least price of a block placed in one way, its first shard near."""
        total, sets = 0, self.instance.sets
        for about, row in vector.covers.items():
            for f, m in row.items() if about in way.covers else ():
                here = (shard.values[f] for shard, mask, _ in way.parts if mask & sets[about])
                total += m * min(here)
        for shard, mask, n in way.parts:
            prices = [(sum(map(mul, weights, shard.values), bytes_ * shard.move), kind & mask)
                      for weights, kind in vector.kinds if kind & mask]  # fmt: skip
            if n:
                first = least(p for p, ranks in prices if ranks & near)
                if first is None:
                    return None
                total += first + (n - 1) * min(p for p, _ in prices)
                near = EVERYWHERE
            else:
                total += sum(p * ranks.bit_count() for p, ranks in prices)
        return total

    def _apply(self, vector: Vector, allowed: Allowed) -> bool:
        """[Removal]: a choice costs its own price and the least of the rest.

        True where no choice is left for all tables.
        """
        prices: list[dict[Choice, int]] = []
        for t, choices in enumerate(allowed):
            found = ((c, self._price(vector, t, c)) for c in choices)
            prices.append({c: p for c, p in found if p is not None})
        if not all(prices):
            return True
        low = [min(row.values()) for row in prices]
        slack = vector.right - sum(low)
        for t, row in enumerate(prices):
            allowed[t] = tuple(c for c, p in row.items() if p - low[t] <= slack)
        return slack < 0


def check_certificate(instance: Any, certificate: Any) -> str | None:
    """Judge a certificate by docs/proof.md: None if it proves its claim, else a sentence.

    ``certificate`` is parsed JSON, ``instance`` too or an Instance; Unreadable when malformed.
    """
    if isinstance(certificate, dict) and certificate.get("version") == 1:
        raise Unreadable("a certificate of version 1 (one vector, no tree): solve again")
    given = instance if isinstance(instance, Instance) else Instance(instance)
    node = Proof(given, certificate).open_node()
    return (
        None if node is None else f"the certificate does not prove its claim: node {node} is open"
    )


# --- The verdict ----------------------------------------------------------------------------------


def check(document: Any, outcome: Any) -> Iterator[str]:
    """What holds of an outcome, line by line, the verdict last; else Refuted."""
    instance = Instance(document)
    fit(outcome, OUTCOME, "outcome")
    other = outcome["objective_kind"] != instance.objective
    refute(other, "the outcome is about another objective")
    objective, certificate, found = outcome["objective"], outcome["certificate"] or {}, {}
    if outcome["tables"] is not None:
        found = check_plan(instance, outcome["tables"])
        yield "plan: complete; every shard is where it may be, every constraint holds"
    for kind, value in {**outcome.get("objectives", {}), instance.objective: objective}.items():
        wrong = f"{shown(kind)} is {found.get(kind)}, the outcome says {value}"
        refute(value != found.get(kind), wrong)
    if found:
        yield f"objective: {instance.objective} {objective}, recomputed"
    proved, certified = certificate.get("target"), outcome["certified_bound"]
    if certificate:
        fails = check_certificate(instance, certificate)
        refute(fails is not None, fails or "")
        what = "there is no plan" if proved is None else f"no plan costs less than {proved}"
        yield f"certificate: {what}"
    refute(certified != proved, f"certified_bound is {certified}, the certificate proves {proved}")
    yield from verdict(outcome, certificate.get("kind"))


def verdict(outcome: Any, kind: str | None) -> Iterator[str]:
    """Whether bound and status agree with the rest, and what stands behind the status."""
    objective, bound, certified = (outcome[k] for k in ("objective", "bound", "certified_bound"))
    status, source = outcome["status"], outcome.get("bound_source")
    word = f"the word of {shown(source.get('method') if isinstance(source, dict) else 'nobody')}"
    high = max((b for b in (bound, certified) if b is not None), default=0)
    wrong = objective is not None and (bound, certified) != (None, None) and high > objective
    refute(wrong, f"a bound of {high} is above the plan's {objective}")
    low = bound is not None and certified is not None and bound < certified
    refute(low, f"bound {bound} is below certified_bound {certified}")
    right = ["infeasible", "unknown"]
    if objective is not None:
        right = ["optimal" if bound == objective else "feasible"]
    refute(status not in right, f"status is {status}, its own figures say {right[-1]}")
    refute(kind == "infeasible" != status, "the certificate says that there is no plan")
    if bound is not None and bound != certified:
        yield f"bound: {bound} is {word}"
    if status == "infeasible":
        proved = kind == "infeasible"
        yield "verdict: " + ("certified infeasible" if proved else f"infeasible, {word}")
    elif objective is None:
        yield f"verdict: {status}"
    elif objective == certified:
        yield "verdict: certified optimal"
    else:
        share = "nothing certified"
        if certified is not None:  # in hundredths of a percent, rounded up
            parts = -(10_000 * (certified - objective) // max(1, abs(objective)))
            share = f"certified to {parts // 100}.{parts % 100:02d}%"
        yield f"verdict: {status}, {share}" + (f"; optimal is {word}" * (bound == objective))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Check a plan and its proof; see docs/proof.md.")
    parser.add_argument("file", help="plan.json, or an outcome")
    parser.add_argument("--instance", help="the instance file, for an outcome")
    options = parser.parse_args(arguments)
    try:
        outcome = read_file(options.file)
        need(isinstance(outcome, dict), f"{options.file!a} holds no object")
        document = read_file(options.instance) if options.instance else None
        if outcome.get("format") == "milp-planner-plan/1":
            embedded, outcome = part(outcome, "instance"), part(outcome, "outcome")
            refute(document not in (None, embedded), "the plan embeds another instance")
            document = embedded
        need(document is not None, "an outcome needs its instance (--instance FILE)")
        for line in check(document, outcome):
            print(line)
    except Refuted as error:
        print(f"refuted: {error}")
        return 1
    except (Unreadable, OSError, RecursionError, MemoryError) as error:
        why = str(error) if isinstance(error, Unreadable) else ascii(error)
        print(f"cannot be read: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
