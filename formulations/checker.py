"""Check a plan, and the proof that none is better, from the files alone.

    python checker.py plan.json
    python checker.py outcome.json --instance instance.json.gz

Reads an Instance (docs/instance-format.md) and an outcome (docs/outcome.md) and believes nothing in
them: the plan is checked, its objectives are recomputed, and the certificate is judged by
docs/proof.md, whose sections stand in [brackets] below. Python's standard library and integers
only; written apart from the solvers and the prover, and sharing no line with them.

Exit status: 0 every claim that can be checked holds; 1 one is refuted; 2 the input cannot be read.
"""
# ruff: noqa: B905 (zip and map stop at the shorter: a price without moves leaves move_bytes out)

from __future__ import annotations

import argparse
import base64
import gzip
import io
import json
import sys
import zlib
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterable, Iterator
from itertools import chain, cycle, product, repeat
from math import prod
from operator import add, gt, mul, sub
from typing import Any

MAX_BYTES = 2**29  # longest text that is read or unpacked
MAX_TUPLES = 200_000  # [Components]


class Unreadable(Exception):
    """The input is malformed; the text says what and where."""


class Refuted(Exception):
    """A claim does not hold; the text says which and why."""


# --- Forms of the files: a range is an integer, a set a word, a tuple alternatives, "*" any key ---

AMOUNT, SIGNED, COUNT = range(2**53), range(1 - 2**53, 2**53), range(1, 2**53)
FACTOR, VALUE = range(1 << 20_000), range(-(1 << 20_000), 1 << 20_000)  # of any size
RANKS, OBJECTIVES = [[AMOUNT]], {"total", "busiest_rank", "step_time"}
MACHINE_KINDS = {"one_machine", "any_rank_of_one_machine"}
HOME_KINDS = {"any_rank"} | MACHINE_KINDS
WHERE = ({"every_rank", "cluster"} | HOME_KINDS, [AMOUNT])
SHARD = {"cost": [SIGNED], "use?": {"*": AMOUNT}, "repeat?": COUNT, "move_bytes?": AMOUNT}
BLOCK = {"where": WHERE, "count?": COUNT, "distinct?": bool, "among?": [AMOUNT], "shards": [SHARD]}
OPTION = {"name": str, "fusion?": {"group": str, "level": SIGNED}, "blocks": [BLOCK]}
RESOURCE = {"name": str, "scope": {"rank", "machine", "cluster"}, "capacity": (AMOUNT, [AMOUNT])}
INSTANCE = {
    "format": {"milp-planner-instance/1"}, "name?": str, "source?": str, "reference?": list,
    "ranks": COUNT, "machines": RANKS, "phases": [str], "time_unit?": str,
    "objective": OBJECTIVES, "resources": [RESOURCE],
    "tables": [{"name": str, "options": [OPTION]}],
    "pins?": [{"table": str, "option": str, "ranks?": RANKS}],
    "forbidden?": [{"table": str, "option": str}],
    "current?": {"*": {"option": str, "ranks": RANKS}},
    "max_moved_tables?": AMOUNT, "max_moved_bytes?": AMOUNT,
}  # fmt: skip
OUTCOME = {
    "status": {"optimal", "feasible", "infeasible", "unknown"}, "objective": (VALUE, None),
    "objective_kind": OBJECTIVES, "bound": (VALUE, None), "certified_bound": (VALUE, None),
    "objectives?": {"*": (VALUE, None)}, "certificate": (None, {"*": object}),
    "tables": (None, {"*": {"option": str, "ranks": RANKS}}), "*": object,
}  # fmt: skip
SPREAD, LARGEST = {"*": (FACTOR, [FACTOR])}, {"*": [[FACTOR]]}
VECTOR = {"cost?": SPREAD, "capacity?": SPREAD, "largest_cost?": LARGEST, "largest_use?": LARGEST,
          "moved_tables?": FACTOR, "moved_bytes?": FACTOR}  # fmt: skip
NODE = {"use?": [AMOUNT], "nodes?": [AMOUNT], "table?": AMOUNT, "options?": RANKS,
        "group?": str, "levels?": [[SIGNED]], "machines?": RANKS}  # fmt: skip
CERTIFICATE = {"version": range(2, 3), "kind": {"bound", "infeasible"}, "target?": VALUE,
               "vectors": [VECTOR], "nodes": [NODE]}  # fmt: skip


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
    kinds: dict[type, str] = {list: "a list", dict: "an object"}
    found = kinds.get(type(value)) or ascii(value)
    return found if len(found) <= 60 else found[:57] + "..."


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
        for key, entry in value.items():
            inner = form.get(key, form.get(key + "?", form.get("*")))
            found = ": unknown" if inner is None or key[-1:] == "?" else fault(entry, inner)
            if found is not None:
                return f".{shown(key)[1:-1]}{found}"
        missing = (key for key in form if key[-1] not in "?*" and key not in value)
        return next((f": the field {key!r} is missing" for key in missing), None)
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


def read_json(data: bytes | str, what: str) -> Any:
    """JSON, gzipped (as text: and in base64) or not: no duplicate keys, NaN, bottomless nesting."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        need(len(found) == len(pairs), f"{what}: a key appears twice in one object")
        return found

    def refuse(text: str) -> Any:
        raise Unreadable(f"{what}: {text} is not a number")

    try:
        data = base64.b64decode(data, validate=True) if isinstance(data, str) else data
        if data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        need(len(data) <= MAX_BYTES, f"{what}: longer than {MAX_BYTES} bytes")
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (OSError, EOFError, zlib.error):
        raise Unreadable(f"{what}: damaged gzip") from None
    except ValueError as error:
        raise Unreadable(f"{what}: not valid JSON ({str(error)[:90]!a})") from None


def read_file(path: str) -> Any:
    """A JSON file, gzipped or not."""
    try:
        with open(path, "rb") as file:
            return read_json(file.read(MAX_BYTES + 1), ascii(path))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path!a}: cannot be read ({type(error).__name__})") from None


def part(plan: Any, key: str) -> Any:
    """A part of plan.json, unpacked when it is packed."""
    value = plan.get(key)
    if not isinstance(value, dict) or "encoding" not in value:
        return value
    fit(value, {"encoding": {"json+gzip+base64"}, "data": str}, key)
    return read_json(value["data"], key)


# --- The Instance ---------------------------------------------------------------------------------

# values: costs by the objective's names, then uses; moving: the same, then move_bytes
Shard = namedtuple("Shard", "cost use move values moving")
# places: ranks or machines that it may take; runs: its shards in order, each with its repeat
Block = namedtuple("Block", "where count distinct places runs")
# home: index of its home block [Splits]; floor, excess and peak: by column [The bare rule]
Option = namedtuple("Option", "name group level blocks home floor excess peak")


def shards_of(block: Any) -> Iterator[Any]:
    """The shards of a block in order."""
    return chain.from_iterable(repeat(shard, n) for shard, n in block.runs)


def mask_of(places: Iterable[int]) -> int:
    """A set of places as the bits of an integer."""
    return sum(1 << p for p in set(places))


def different(values: list[Any], what: str, below: int = 0) -> tuple[Any, ...]:
    """A non-empty list without repeats; with ``below``, of places."""
    need(0 < len(values) == len(set(values)), f"{what}: none, or one twice")
    need(not below or max(values) < below, f"{what}: a place must be below {below}")
    return tuple(values)


class Instance:
    """An Instance file. Its columns: the objective's costs, then the resources."""

    def __init__(self, raw: Any) -> None:
        fit(raw, INSTANCE, "instance")
        self.objective, self.ranks = raw["objective"], raw["ranks"]
        self.machines = [different(m, "machines", self.ranks) for m in raw["machines"]]
        parted = sorted(chain(*self.machines)) == list(range(self.ranks))
        need(parted, "machines must partition the ranks")
        self.machine_of = {r: q for q, m in enumerate(self.machines) for r in m}
        self.phases = different(raw["phases"], "phases")
        self.costs = self.phases if self.objective == "step_time" else (self.objective,)
        self.scopes = {r["name"]: r["scope"] for r in raw["resources"]}
        need(len(self.scopes) == len(raw["resources"]), "resources: a name appears twice")
        free = ("cluster", [0]) if self.objective == "total" else ("rank", [0] * self.ranks)
        self.columns = [free] * len(self.costs)  # scope and capacities; a cost's limit is L
        for resource in raw["resources"]:
            given, size = resource["capacity"], self.size(resource["scope"])
            given = given if isinstance(given, list) else [given] * size
            need(len(given) == size, f"a resource of this scope needs {size} capacities")
            self.columns.append((resource["scope"], given))
        self.table = {t["name"]: i for i, t in enumerate(raw["tables"])}
        need(len(self.table) == len(raw["tables"]), "tables: a name appears twice")
        self.tables = []
        for t in raw["tables"]:
            what = f"table {shown(t['name'])}"
            different([o["name"] for o in t["options"]], f"{what}: options")
            self.tables.append([self._option(o, what) for o in t["options"]])
        self._read_constraints(raw)

    def size(self, scope: str) -> int:
        """How many places a scope has."""
        return {"rank": self.ranks, "machine": len(self.machines)}.get(scope, 1)

    def place(self, scope: str, rank: int) -> int:
        """The place of a scope that a rank belongs to."""
        return {"rank": rank, "machine": self.machine_of[rank]}.get(scope, 0)

    def on(self, machine: int | None) -> Any:
        """The ranks of a machine (None: all)."""
        return range(self.ranks) if machine is None else self.machines[machine]

    def _option(self, raw: Any, what: str) -> Any:
        what += f", option {shown(raw['name'])}"
        blocks = [self._block(b, what) for b in raw["blocks"]]
        need(blocks, f"{what}: a block is needed")
        home = next((i for i, b in enumerate(blocks) if b.where in HOME_KINDS), None)
        floor, excess = [0] * len(self.columns), [0] * len(self.columns)
        for block in (b for b in blocks if b.where != "cluster"):
            one = block.where == "one_machine" and len(self.machines) == 1
            for f, values in enumerate(zip(*(shard.values for shard, _ in block.runs))):
                low = min(values) if one or block.where == "every_rank" else 0
                floor[f] += low * block.count
                excess[f] = max(excess[f], max(values) - low)
        group, level = (raw.get("fusion", {}).get(k) for k in ("group", "level"))
        peak = [*map(add, floor, excess)]
        return Option(raw["name"], group, level, blocks, home, floor, excess, peak)

    def _block(self, raw: Any, what: str) -> Any:
        where = "list" if isinstance(raw["where"], list) else raw["where"]
        count, single = raw.get("count", 1), where in ("list", "every_rank")
        below = self.size("machine" if where in MACHINE_KINDS else "rank")
        right = (count == 1 or not single) and ("among" not in raw or where in HOME_KINDS)
        need(right, f"{what}: count or among has no meaning for {where}")
        given = raw["where"] if where == "list" else raw.get("among")
        places = tuple(range(below)) if given is None else different(given, what, below)
        wanted = {len(places) if single else count}
        if where == "one_machine":
            wanted = {len(self.machines[q]) for q in places}
        runs = self._runs(raw["shards"], what)
        number = sum(n for _, n in runs)
        need(number == 1 or wanted == {number}, f"{what}: {number} shards, needed: {wanted}")
        runs = [(runs[0][0], max(wanted))] if len(runs) == 1 else runs
        used = {c for s, _ in runs for u, c in zip(s.use, self.scopes.values()) if u}
        off = where != "cluster" or used <= {"cluster"}
        need(off, f"{what}: a cluster block may use cluster resources only")
        return Block(where, count, raw.get("distinct", where == "one_machine"), places, runs)

    def _runs(self, raw: Any, what: str) -> list[tuple[Any, int]]:
        """Shards with their repeats; equal neighbours are one run, so that they are alike."""
        runs: list[tuple[Any, int]] = []
        for entry in raw:
            cost, uses = tuple(entry["cost"]), entry.get("use", {})
            known = len(cost) == len(self.phases) and uses.keys() <= self.scopes.keys()
            need(known, f"{what}: not one cost a phase, or an unknown resource")
            need(self.objective == "total" or min(cost) >= 0, f"{what}: a cost is below 0")
            use, move = tuple(uses.get(r, 0) for r in self.scopes), entry.get("move_bytes", 0)
            values = (cost if self.objective == "step_time" else (sum(cost),)) + use
            shard = Shard(cost, use, move, values, (*values, move))
            before = runs.pop()[1] if runs and runs[-1][0] == shard else 0
            runs.append((shard, before + entry.get("repeat", 1)))
        need(runs, f"{what}: a block needs a shard")
        return runs

    def _read_constraints(self, raw: Any) -> None:
        self.limits = {k: raw[k] for k in ("max_moved_tables", "max_moved_bytes") if k in raw}
        self.forbidden = {self._named(f, "forbidden") for f in raw.get("forbidden", [])}
        need(all(o is not None for _, o in self.forbidden), "forbidden: there is no such option")
        self.pins: dict[int, tuple[Any, Any]] = {}
        for pin in raw.get("pins", []):
            t, o = self._named(pin, "pins")
            need(t not in self.pins and o is not None, "pins: a table twice, or no such option")
            ranks, blocks = pin.get("ranks"), self.tables[t][o].blocks
            right = ranks is None or len(ranks) == len(blocks)
            need(right and all(r < self.ranks for r in chain(*ranks or ())), "pins: wrong ranks")
            self.pins[t] = o, ranks
        self.current = {}
        for called, now in raw.get("current", {}).items():
            t, o = self._named({"table": called, **now}, "current")
            self.current[t] = o, now["ranks"]  # o is None where the option is gone

    def _named(self, raw: Any, what: str) -> tuple[int, Any]:
        need(raw["table"] in self.table, f"{what}: there is no table {shown(raw['table'])}")
        t = self.table[raw["table"]]
        return t, next((o for o, x in enumerate(self.tables[t]) if x.name == raw["option"]), None)


# --- The plan -------------------------------------------------------------------------------------

Placed = list[tuple[int, Any, list[list[int]]]]  # of every table: option, its ranks by block


def check_plan(instance: Instance, raw: Any) -> dict[str, int]:
    """The objectives of a plan that keeps every rule of the Instance; else Refuted."""
    placed: Placed = []
    for called in raw.keys() ^ instance.table.keys():
        refute(True, f"table {shown(called)} is only in one of plan and instance")
    for called, t in instance.table.items():
        names, what = [o.name for o in instance.tables[t]], f"table {shown(called)}"
        refute(raw[called]["option"] not in names, f"{what} has no such option")
        o, ranks = names.index(raw[called]["option"]), raw[called]["ranks"]
        option = instance.tables[t][o]
        refute(len(ranks) != len(option.blocks), f"{what}: not one list of ranks a block")
        for block, where in zip(option.blocks, ranks):
            there = may_stand(instance, block, where)
            refute(not there, f"{what}: a block ({block.where}) stands where it may not")
        placed.append((o, option, ranks))
    check_choices(instance, placed)
    use = [[0] * instance.size(scope) for scope in instance.scopes.values()]
    cost, free = [[0] * len(instance.phases) for _ in range(instance.ranks)], 0
    for rank, shard, times in seats(placed):
        if rank is None:
            free += times * sum(shard.cost)
        else:
            cost[rank] = [*map(add, cost[rank], shard.cost)]
        for i, scope in enumerate(instance.scopes.values()):
            use[i][0 if rank is None else instance.place(scope, rank)] += times * shard.use[i]
    for called, used, (_, caps) in zip(
        instance.scopes, use, instance.columns[len(instance.costs) :]
    ):
        for place, (u, c) in enumerate(zip(used, caps)):
            refute(u > c, f"{shown(called)} at place {place}: {u} are used, {c} are there")
    most, rows = sum(map(max, zip(*cost))), [*map(sum, cost)]
    return {"total": sum(rows) + free, "busiest_rank": max(rows), "step_time": most}


def may_stand(instance: Instance, block: Any, ranks: list[int]) -> bool:
    """Whether these are places of the block: where, among, count, distinct."""
    if block.where not in HOME_KINDS or not all(r < instance.ranks for r in ranks):
        return ranks == ([] if block.where == "cluster" else [*block.places])
    machines = [instance.machine_of[r] for r in ranks]
    taken, places = ranks, set(machines if block.where in MACHINE_KINDS else ranks)
    if block.where == "one_machine":  # whole machines, one after the other
        taken, start = [], 0
        while start < len(ranks):
            taken.append(machines[start])
            start += len(instance.machines[taken[-1]])
        if ranks != [r for q in taken for r in instance.machines[q]]:
            return False
    one = len(places) == 1 or block.where != "any_rank_of_one_machine"
    apart = not block.distinct or len(set(taken)) == len(taken)
    return one and apart and len(taken) == block.count and places <= set(block.places)


def seats(placed: Placed) -> Iterator[tuple[int | None, Any, int]]:
    """Every shard with its rank; or with None, and how often, where it is on no rank."""
    for _, option, ranks in placed:
        for block, where in zip(option.blocks, ranks):
            if block.where == "cluster":
                yield from ((None, shard, n) for shard, n in block.runs)
            else:  # cycle: one_machine takes machine after machine
                shards = cycle(shards_of(block) if len(block.runs) > 1 else [block.runs[0][0]])
                yield from ((rank, shard, 1) for rank, shard in zip(where, shards))


def check_choices(instance: Instance, placed: Placed) -> None:
    """Fusion, forbidden options, pins and moves."""
    levels: dict[Any, Any] = {}
    moved: Placed = []
    for t, (o, option, ranks) in enumerate(placed):
        split = levels.setdefault(option.group, option.level) != option.level
        refute(split, f"fusion group {shown(option.group)} stands at two levels")
        pinned, where = instance.pins.get(t, (o, None))
        apart = pinned != o or not same(where or ranks, ranks)
        refute(apart or (t, o) in instance.forbidden, f"tables[{t}]: forbidden, or against its pin")
        before, stood = instance.current.get(t, (o, ranks))
        if before != o or not same(stood, ranks):
            moved.append((o, option, ranks))
    size = sum(shard.move * times for _, shard, times in seats(moved))
    for key, found in (("max_moved_tables", len(moved)), ("max_moved_bytes", size)):
        limit = instance.limits.get(key, found)
        refute(found > limit, f"{key} is {limit}, the plan moves {found}")


def same(a: list[list[int]], b: list[list[int]]) -> bool:
    """Whether placements agree, the ranks of each block as multisets."""
    return [sorted(x) for x in a] == [sorted(x) for x in b]


# --- The certificate ------------------------------------------------------------------------------

Spots = list[tuple[int, int, int]]  # price, ranks (or machines) of that price as bits, their class
Allowed = list[tuple[int, ...]]  # allowed options of every table


def least(values: Iterable[int | None]) -> int | None:
    """The least of what is there; None where nothing is."""
    return min((v for v in values if v is not None), default=None)


class Vector:
    """Multipliers of rows and the right-hand side of their sum [Applying a vector]."""

    def __init__(self, instance: Instance, raw: Any, bound: int | None) -> None:
        costs, width = len(instance.costs), len(instance.columns)
        self.rows = [[0] * width + [raw.get("moved_bytes", 0)] for _ in range(instance.ranks + 1)]
        self.moved, self.right, self.depth = raw.get("moved_tables", 0), 0, [0] * width
        self.covers: Any = defaultdict(Counter)  # of largest-shard rows, by set: of all tables,
        self.own: Any = defaultdict(lambda: defaultdict(Counter))  # and of each; None: all ranks
        for key, value in raw.items():
            if key.startswith("moved"):
                need(f"max_{key}" in instance.limits, f"the instance has no limit on {key}")
                self.right += value * instance.limits[f"max_{key}"]
                continue
            names = list(instance.costs if "cost" in key else instance.scopes)
            need(bound is not None or "cost" not in key, "vector: costs belong to kind bound")
            need(value.keys() <= set(names), f"vector: {key} names what the instance has not")
            for f, name in enumerate(names, 0 if "cost" in key else costs):
                for row in value.get(name, ()) if key.startswith("largest") else ():
                    self._largest(instance, f, row)
                if name in value and not key.startswith("largest"):
                    self._spread(instance, f, value[name])
        self.right += (bound or 0) * max(self.depth[:costs])  # [Why every row holds]
        kinds: Any = defaultdict(int)  # ranks of equal multipliers, as bits
        for r, row in enumerate(self.rows[:-1]):
            kinds[tuple(row)] |= 1 << r
        self.kinds, self.prices = list(kinds.items()), dict[Any, int | None]()

    def _spread(self, instance: Instance, f: int, value: int | list[int]) -> None:
        """A row for every place of a cost or resource."""
        scope, caps = instance.columns[f]
        given = value if isinstance(value, list) else [value] * instance.size(scope)
        right = len(given) == instance.size(scope) and (given is not value or scope != "cluster")
        need(right, "vector: not one multiplier a place")
        for r, row in enumerate(self.rows[:-1]):
            row[f] = given[instance.place(scope, r)]
        self.rows[-1][f] = given[0] if scope == "cluster" else 0
        self.depth[f] += sum(given)
        self.right += sum(map(mul, given, caps))

    def _largest(self, instance: Instance, f: int, row: list[int]) -> None:
        """A row of the largest shard of a table, over all ranks or those of a machine."""
        t, m, *q = row if len(row) in (2, 3) else (len(instance.tables), 0)
        known = t < len(instance.tables) and all(x < len(instance.machines) for x in q)
        scope, caps = instance.columns[f]
        need(known and scope == "rank", f"vector: a row {row} of the largest shard is none")
        about = q[0] if q else None
        self.own[t][about][f] += m
        self.covers[about][f] += m
        self.depth[f] += m
        self.right += m * max(caps[r] for r in instance.on(about))


class Quote:
    """The price of an option at a vector: no plan makes it add less to the left-hand side."""

    def __init__(self, proof: Proof, vector: Vector, t: int, o: int) -> None:
        self.proof, self.vector, self.instance = proof, vector, proof.instance
        self.option, own = self.instance.tables[t][o], vector.own.get(t, {})
        self.moves = self.instance.current.get(t, (o, None))[0] != o
        self.pin = self.instance.pins.get(t, (o, None))[1]
        self.fixed = sum(m * self.option.excess[f] for f, m in own.get(None, {}).items())
        self.fixed += vector.moved * self.moves
        self.chief: Any = defaultdict(Counter)  # (block, run): what it adds as chief, by machine
        movable = ("any_rank", "any_rank_of_one_machine", "list")
        blocks = [(i, b) for i, b in enumerate(self.option.blocks) if b.where in movable]
        runs = [(i, k, shard) for i, b in blocks for k, (shard, _) in enumerate(b.runs)]
        for q, f in [(q, f) for q, row in own.items() for f in row if runs and q is not None]:
            i, k, shard = max(runs, key=lambda run: run[2].values[f])  # of equals the first
            self.chief[i, k][q] += own[q][f] * shard.values[f]

    def price(self, homes: tuple[int, int]) -> int | None:
        """The price with a home and a rest (machines as bits, -1: all); None: it has no place."""
        total = self.fixed
        for i, block in enumerate(self.option.blocks):
            found = self._block(i, block, *(homes if i == self.option.home else (-1, -1)))
            if found is None:
                return None
            total += found
        return total

    def _block(self, i: int, block: Any, home: int, rest: int) -> int | None:
        """[Places]: the least over a set that holds the places of every plan."""
        inst, pin = self.instance, self.pin[i] if self.pin else range(self.instance.ranks)
        if block.where == "cluster":
            return sum(n * self._dot(self.vector.rows[-1], shard) for shard, n in block.runs)
        if block.where in ("every_rank", "list"):
            covered = self.vector.covers if block.where == "every_rank" else ()
            return self._standing(i, block.places, covered)
        ranks = mask_of(pin)
        if block.where == "any_rank":
            ranks &= mask_of(block.places)
            alike = len(block.runs) == 1
            first = ranks & self.proof.ranks_of(home)
            return self._scattered(i, first, ranks & self.proof.ranks_of(rest if alike else -1))
        pinned = {inst.machine_of[r] for r in pin}
        machines = [q for q in block.places if q in pinned]
        if block.where == "any_rank_of_one_machine":
            masks = [ranks & mask_of(inst.machines[q]) for q in machines if home >> q & 1]
            return least(self._scattered(i, mask, mask) for mask in masks)
        both = [None] if len(inst.machines) == 1 else []
        prices = [(self._standing(i, inst.machines[q], [q, *both]), q) for q in machines]
        spots = [(p, 1 << q, q) for p, q in prices if p is not None]
        return cheapest(spots, spots, home, rest, block.count, block.distinct)

    def _dot(self, row: Any, shard: Any) -> int:
        return sum(map(mul, row, shard.moving if self.moves else shard.values))

    def _standing(self, i: int, ranks: Any, covered: Iterable[int | None]) -> int | None:
        """Price of one shard on each of these ranks, which cover the sets given."""
        total, start, block = 0, 0, self.option.blocks[i]
        for k, (shard, n) in enumerate(block.runs):
            mask = mask_of(ranks[start : start + n])
            if mask & ~self.proof.open(shard):
                return None
            total += sum((mask & m).bit_count() * self._dot(w, shard) for w, m in self.vector.kinds)
            if (i, k) in self.chief:
                total += self.chief[i, k][self.instance.machine_of[ranks[start]]]
            start += n
        at = dict(zip(ranks, shards_of(block))) if covered else {}
        for about in covered:
            shards = [at[r] for r in self.instance.on(about) if r in at]
            for f, m in self.vector.covers.get(about, {}).items():
                total += m * min(shard.values[f] for shard in shards)
        return total

    def _spots(self, shard: Any, chief: Any) -> Spots:
        """Ranks open to a shard by their price, with what it adds there as chief."""
        found: Spots = []
        for c, (row, mask) in enumerate(self.vector.kinds):
            mask &= self.proof.open(shard)
            price = self._dot(row, shard)
            for q, more in chief.items():
                found.append((price + more, mask & self.proof.ranks_of(1 << q), c))
                mask &= ~self.proof.ranks_of(1 << q)
            found.append((price, mask, c))
        return found

    def _scattered(self, i: int, first: int, others: int) -> int | None:
        """Least price of ``count`` shards on ranks."""
        block, total = self.option.blocks[i], 0
        alike, pin = len(block.runs) == 1, self.pin[i] if self.pin else []
        for k, (shard, n) in enumerate(block.runs):
            near, far = self._spots(shard, self.chief.get((i, k), {})), self._spots(shard, {})
            if alike and not block.distinct and block.where == "any_rank" and n == len(pin):
                found = on_pin(near, far, first, others, pin)
            else:
                found = cheapest(near, far, first, others, n, block.distinct and alike)
            if found is None:
                return None
            total, first = total + found, others
        return total


def cheapest(near: Spots, far: Spots, first: int, others: int, n: int, apart: bool) -> int | None:
    """Least price of n shards that are alike: one on ``first`` at near's prices, and the others."""
    one = least(p for p, mask, _ in near if mask & first)
    if n == 1 or one is None:
        return one
    if not apart:
        other = least(p for p, mask, _ in far if mask & others)
        return None if other is None else one + (n - 1) * other
    flat = sorted(chain(*([p] * (mask & others).bit_count() for p, mask, _ in far)))
    at, found = {c: p for p, _, c in far}, []
    for p, mask, c in near:
        if mask & first & ~others and len(flat) >= n - 1:
            found.append(p + sum(flat[: n - 1]))
        elif mask & first & others and len(flat) >= n:  # of the n least, all but its own rank's
            found.append(p + sum(flat[:n]) - min(at[c], flat[n - 1]))
    return least(found)


def on_pin(near: Spots, far: Spots, first: int, others: int, pin: list[int]) -> int | None:
    """Price of shards that are alike on the ranks of a pin, each as often as it is named."""
    later = [p for r in pin for p, mask, _ in far if mask & others & 1 << r]
    if len(later) < len(pin):
        return None
    swaps = [p - q for q, r in zip(later, pin) for p, mask, _ in near if mask & first & 1 << r]
    return sum(later) + min(swaps) if swaps else None


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
        for i, node in enumerate(self.nodes):
            self._check_node(node, f"certificate: nodes[{i}]")
        priced = instance.objective != "total" and self.bound is not None
        self.costs = range(len(instance.costs)) if priced else range(0)
        self.most = self.bound if self.bound is not None and priced else 0
        uses = list(enumerate(instance.columns))[len(instance.costs) :]
        self.tested = [(f, max(caps)) for f, (scope, caps) in uses if scope == "rank"]
        self.rooms: Any = defaultdict(int)  # ranks by what is there of every resource, as bits
        for r in range(instance.ranks):
            room = (2**53 if s == "cluster" else c[instance.place(s, r)] for _, (s, c) in uses)
            self.rooms[tuple(room)] |= 1 << r
        self._open: dict[Any, int] = {}
        self._ranks: dict[int, int] = {-1: -1}

    def _check_node(self, node: Any, what: str) -> None:
        inst, t = self.instance, node.get("table", 0)
        split = next((k for k in ("options", "levels", "machines") if k in node), None)
        wanted = {split, "nodes", "group" if split == "levels" else "table"} if split else set()
        need(node.keys() - {"use"} == wanted, f"{what}: not the keys of a leaf or of one split")
        need(all(v < len(self.vectors) for v in node.get("use", [])), f"{what}: no such vector")
        if split:
            need(t < len(inst.tables), f"{what}: no such table")
            known = {"machines": range(len(inst.machines)), "options": range(len(inst.tables[t]))}
            levels = {x.level for x in chain(*inst.tables) if x.group == node.get("group")}
            inside = set(chain(*node[split])) <= set(known.get(split, levels))
            need(inside and (split != "levels" or bool(levels)), f"{what}: {split} out of range")
            need(0 < len(node[split]) == len(node["nodes"]), f"{what}: not one list a child")

    def open(self, shard: Any) -> int:
        """The ranks open to a shard [Places]: elsewhere it alone is too much."""
        if shard not in self._open:
            dear = bool(self.costs) and sum(shard.cost) > self.most
            fits = (m for room, m in self.rooms.items() if not any(map(gt, shard.use, room)))
            self._open[shard] = 0 if dear else sum(fits)
        return self._open[shard]

    def ranks_of(self, machines: int) -> int:
        """Ranks of machines, as bits (-1: all)."""
        if machines not in self._ranks:
            found = (r for r, q in self.instance.machine_of.items() if machines >> q & 1)
            self._ranks[machines] = mask_of(found)
        return self._ranks[machines]

    def open_node(self) -> int | None:
        """A node that stays open [Reading it]; None if the root is closed: the claim is proved."""
        inst = self.instance
        root = [tuple(o for o in range(len(options)) if (t, o) not in inst.forbidden
                      and inst.pins.get(t, (o, None))[0] == o)
                for t, options in enumerate(inst.tables)]  # fmt: skip
        self._apply(Vector(inst, {}, self.bound), root, {})  # options without a place go
        stack: Any = [(0, root, {})]
        while stack:
            i, allowed, homes = stack.pop()
            if not self._closes(self.nodes[i], allowed, homes):
                children = self._split(self.nodes[i], allowed, homes)
                if children is None:
                    return i
                stack += [(c, *state) for c, state in zip(self.nodes[i]["nodes"], children)][::-1]
        return None

    def _closes(self, node: Any, allowed: Allowed, homes: Any) -> bool:
        """Steps 1 to 3 at a node; narrows ``allowed``."""
        self._bare_rule(allowed)
        for v in node.get("use", []):
            if not all(allowed):
                break
            if not allowed and self.vectors[v].right < 0:  # [No tables]
                return True
            self._apply(self.vectors[v], allowed, homes)
            self._bare_rule(allowed)
        return not all(allowed)

    def _split(self, node: Any, allowed: Allowed, homes: Any) -> list[Any] | None:
        """States of the children [Splits]; None where a case is in no list, or at a leaf."""
        t, tables = node.get("table"), self.instance.tables
        if "machines" in node:
            everything = (1 << len(self.instance.machines)) - 1
            home, rest = homes.get(t, (everything, everything))
            children = []
            for here in map(mask_of, node["machines"]):
                children.append((allowed[:], {**homes, t: (home & here, rest)}))
                rest &= ~(home & here)
            return None if home & ~mask_of(chain(*node["machines"])) else children
        kept = []
        for listed in node.get("options", ()):
            kept.append(allowed[:])
            kept[-1][t] = tuple(o for o in allowed[t] if o in listed)
        for listed in node.get("levels", ()):
            out = [[x.group == node["group"] and x.level not in listed for x in r] for r in tables]
            kept.append([tuple(o for o in os if not row[o]) for os, row in zip(allowed, out)])
        covered = kept and all(set(os) == set().union(*child) for os, *child in zip(allowed, *kept))
        return [(child, homes) for child in kept] if covered else None

    def _bare_rule(self, allowed: Allowed) -> None:
        """[The bare rule]: the rank of an option's largest shard bears it and all floors."""
        before: Allowed = []
        while before != allowed and all(allowed):
            before = allowed[:]
            rows = [[row[o] for o in os] for row, os in zip(self.instance.tables, allowed)]
            low = [list(map(min, zip(*(o.floor for o in row)))) for row in rows]
            floors = list(map(sum, zip(*low)))
            for t, own in enumerate(low):
                base = list(map(sub, floors, own))
                allowed[t] = tuple(
                    o for o, x in zip(allowed[t], rows[t]) if self._bears(base, x.peak)
                )

    def _bears(self, base: list[int], peak: list[int]) -> bool:
        fits = all(base[f] + peak[f] <= most for f, most in self.tested)
        return fits and sum(base[f] + peak[f] for f in self.costs) <= self.most

    def _apply(self, vector: Vector, allowed: Allowed, homes: Any) -> None:
        """[Removal]: an option adds its own price to the least that all the rest adds."""
        prices: list[dict[int, int]] = []
        for t, os in enumerate(allowed):
            found = ((o, self._price(vector, t, o, homes)) for o in os)
            prices.append({o: p for o, p in found if p is not None})
        allowed[:] = map(tuple, prices)
        slack, sums = vector.right, []
        for tables, groups in self._components(prices) if all(prices) else ():
            best = self._component(tables, groups, prices)
            lowest = min(best[tables[0]].values(), default=None)
            if lowest is None:  # no tuple has an option of every table
                allowed[tables[0]] = ()
                return
            slack -= lowest
            sums.append((lowest, best))
        for lowest, best in sums:
            for t, row in best.items():
                allowed[t] = tuple(o for o, p in row.items() if p - lowest <= slack)

    def _price(self, vector: Vector, t: int, o: int, homes: Any) -> int | None:
        key = (t, o, homes.get(t, (-1, -1)))
        if key not in vector.prices:
            vector.prices[key] = Quote(self, vector, t, o).price(key[2])
        return vector.prices[key]

    def _components(self, prices: list[dict[int, int]]) -> list[tuple[list[int], set[str]]]:
        """[Components]: tables linked by groups that their options name, with those groups."""
        alone: list[tuple[list[int], set[str]]] = []
        linked: list[tuple[list[int], set[str]]] = []
        for t, row in enumerate(prices):
            groups = {self.instance.tables[t][o].group for o in row} - {None}
            near = [c for c in linked if not groups.isdisjoint(c[1])]
            linked = [c for c in linked if groups.isdisjoint(c[1])]
            found = ([t, *chain(*(c[0] for c in near))], groups.union(*(c[1] for c in near)))
            (linked if groups else alone).append(found)
        return alone + linked

    def _component(self, tables: list[int], groups: set[str], prices: Any) -> Any:
        """Of every option, the least sum of the component with it: over tuples of levels held."""
        if not groups:
            return {t: prices[t] for t in tables}
        options = [[self.instance.tables[t][o] for o in prices[t]] for t in tables]
        levels = {g: sorted({x.level for x in chain(*options) if x.group == g}) for g in groups}
        held: dict[str, int] = {}
        for g in sorted(groups, key=lambda g: (len(levels[g]), g)):
            if len(tables) * prod(len(levels[h]) for h in (*held, g)) > MAX_TUPLES:
                break
            held[g] = len(held)
        tuples = [(None, *enumerate(levels_)) for levels_ in product(*(levels[g] for g in held))]
        keys = [
            [(held[x.group], x.level) if x.group in held else None for x in row] for row in options
        ]
        best = []  # by table: least price for each tuple
        for t, row in zip(tables, keys):
            cheapest_of: dict[Any, int] = {}
            for key, p in zip(row, prices[t].values()):
                cheapest_of[key] = min(p, cheapest_of.get(key, p))
            best.append([least(map(cheapest_of.get, tup)) for tup in tuples])
        rest: list[dict[Any, int]] = [{} for _ in tables]  # least of the other tables, by key
        for tup, *row in zip(tuples, *best):
            for others, p in zip(rest, row) if None not in row else ():
                for key in tup:
                    others[key] = min(others.get(key, sum(row) - p), sum(row) - p)
        return {
            t: {o: p + others[k] for (o, p), k in zip(prices[t].items(), row) if k in others}
            for t, row, others in zip(tables, keys, rest)
        }


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
    objective, certified, found = outcome["objective"], outcome["certified_bound"], {}
    refute(
        outcome["objective_kind"] != instance.objective, "the outcome is about another objective"
    )
    if outcome["tables"] is not None:
        found = check_plan(instance, outcome["tables"])
        yield "plan: complete; every shard is where it may be, every constraint holds"
    for kind, value in {**outcome.get("objectives", {}), instance.objective: objective}.items():
        wrong = f"{shown(kind)} is {found.get(kind)}, the outcome says {value}"
        refute(value != found.get(kind), wrong)
    if found:
        yield f"objective: {instance.objective} {objective}, recomputed"
    certificate = outcome["certificate"] or {}
    if certificate:
        fails = check_certificate(instance, certificate)
        refute(fails is not None, fails or "")
        what = "there is no plan" if certified is None else f"no plan costs less than {certified}"
        yield f"certificate: {what}"
    proved = certificate.get("target")
    refute(certified != proved, f"certified_bound is {certified}, the certificate proves {proved}")
    yield from verdict(outcome, certificate.get("kind"))


def verdict(outcome: Any, kind: str | None) -> Iterator[str]:
    """Whether bound and status agree with the rest, and what stands behind the status."""
    objective, bound, certified = (outcome[k] for k in ("objective", "bound", "certified_bound"))
    source, status = outcome.get("bound_source"), outcome["status"]
    word = shown(source.get("method") if isinstance(source, dict) else "its solver")
    for b in (bound, certified) if objective is not None else ():
        refute(b is not None and b > objective, f"a bound of {b} is above the plan's {objective}")
    low = bound is not None and certified is not None and bound < certified
    refute(low, f"bound {bound} is below certified_bound {certified}")
    expected = ["infeasible", "unknown"]
    if objective is not None:
        expected = ["optimal" if bound == objective else "feasible"]
    refute(status not in expected, f"status is {status}, its own figures say {expected[-1]}")
    if bound is not None and bound != certified:
        yield f"bound: {bound} is the word of {word}"
    if objective is None:
        behind = "certified" if kind == "infeasible" else f"the word of {word}"
        yield f"verdict: {status}" + (f", {behind}" if status == "infeasible" else "")
    elif objective == certified:
        yield "verdict: certified optimal"
    else:
        share = "nothing is certified"
        if certified is not None:  # in hundredths of a percent, rounded up
            parts = -(10_000 * (certified - objective) // max(1, abs(objective)))
            share = (
                f"certified to within {parts // 100}.{parts % 100:02d}%" if parts < 10**7 else share
            )
        yield (
            f"verdict: {status}"
            + (f", the word of {word}" if bound == objective else "")
            + f"; {share}"
        )


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
    except (Unreadable, RecursionError, MemoryError) as error:
        print(f"cannot be read: {error or type(error).__name__}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
