"""Random certificates by docs/proof.md: well formed, and true only by accident."""

from random import Random
from typing import Any

Document = dict[str, Any]


def rows(vector: Document) -> list[Document]:
    """A vector written in short, {kind: {name: number, numbers or rows}}, as in a file."""
    found: list[Document] = []
    for kind, named in vector.items():
        for name, value in named.items() if isinstance(named, dict) else [(None, named)]:
            row = {"row": kind} if name is None else {"row": kind, "of": name}
            if not isinstance(value, list):
                found.append(row | {"times": value})
            elif kind in ("cost", "capacity"):
                found += [row | {"at": at, "times": times} for at, times in enumerate(value)]
            elif kind == "fusion":
                keys = ("table", "level", "times")
                found += [row | dict(zip(keys, item, strict=False)) for item in value]
            else:
                keys = ("table", "times", "machine")
                found += [row | dict(zip(keys, item, strict=False)) for item in value]
    return found


def random_certificate(
    rng: Random, instance: Document, target: int | None, depth: int = 4
) -> Document:
    """A certificate that claims ``target`` (None: infeasible), with random rows and splits.

    Splits cover every case and vectors are of all kinds, so that true claims are often proved;
    nothing here knows whether the claim is true.
    """
    vectors = [random_vector(rng, instance, target is not None) for _ in range(rng.randint(1, 8))]
    certificate: Document = {"version": 3, "kind": "infeasible", "vectors": vectors, "nodes": []}
    if target is not None:
        certificate |= {"kind": "bound", "target": target}
    nodes: list[Document] = certificate["nodes"]
    levels = [[0]]
    nodes.append({})
    for _ in range(depth):
        levels.append([])
        for parent in levels[-2]:
            split, children = random_split(rng, instance)
            if not children or len(nodes) + children > 150 or rng.random() < 0.1:
                continue
            positions = list(range(len(nodes), len(nodes) + children))
            nodes[parent] |= split
            nodes.extend({} for _ in positions)
            levels[-1].extend(positions)
    packable = [r["name"] for r in instance["resources"] if r["scope"] == "rank"]
    if target is not None and instance["objective"] != "total":
        packable.append(instance["objective"])
    for node in nodes:
        leaf = not node.keys() & {"table", "tables"}
        if rng.random() < 0.8 or leaf:
            most = len(vectors)
            node["use"] = [rng.randrange(most) for _ in range(rng.randint(0, 2 * most))]
        if packable and leaf and rng.random() < 0.5:
            node["pack"] = rng.choice(packable)
    return certificate


def random_vector(rng: Random, instance: Document, costs: bool) -> list[Document]:
    """Multipliers of some rows of every kind that the instance has."""
    ranks, objective = instance["ranks"], instance["objective"]
    by_phase = objective in ("step_time", "pipelined_step")
    names = instance["phases"] if by_phase else [objective]
    vector: Document = {}
    if costs and rng.random() < 0.8:
        free = objective == "total"
        vector["cost"] = {c: _spread(rng, 1 if free else ranks, free) for c in _some(rng, names)}
    if costs and objective != "total" and rng.random() < 0.5:
        vector["largest_cost"] = {c: _largest(rng, instance) for c in _some(rng, names)}
    scopes = {r["name"]: r["scope"] for r in instance["resources"]}
    sizes = {"rank": ranks, "machine": len(instance["machines"]), "cluster": 1}
    if scopes and rng.random() < 0.6:
        vector["capacity"] = {
            r: _spread(rng, sizes[scopes[r]], scopes[r] == "cluster")
            for r in _some(rng, list(scopes))
        }
    mine = [r for r, scope in scopes.items() if scope == "rank"]
    if mine and rng.random() < 0.4:
        vector["largest_use"] = {r: _largest(rng, instance) for r in _some(rng, mine)}
    fused = [(o["fusion"], t) for t, table in enumerate(instance["tables"])
             for o in table["options"] if "fusion" in o]  # fmt: skip
    for place, t in rng.sample(fused, rng.randint(0, len(fused))):
        fusion = vector.setdefault("fusion", {}).setdefault(place["group"], [])
        fusion.append([t, place["level"], rng.choice([1, 1, 2, 3, 100])])
    for key in ("moved_tables", "moved_bytes"):
        if f"max_{key}" in instance and rng.random() < 0.5:
            vector[key] = rng.choice([1, 1, 2, 5])
    return rows(vector)


def _some(rng: Random, names: list[str]) -> list[str]:
    return rng.sample(names, rng.randint(1, len(names)))


def _spread(rng: Random, size: int, single: bool) -> int | list[int]:
    """One number for all places, one for each place, or all weight on one place."""
    kind = rng.randint(0, 3)
    if single or kind == 0:
        return rng.choice([1, 1, 2, 3, 10**6, 2**70])
    if kind == 1:
        return [rng.randint(0, 3) for _ in range(size)]
    weight, at = rng.choice([1, 1, 2, 100]), rng.randrange(size)
    return [weight if place == at else 0 for place in range(size)]


def _largest(rng: Random, instance: Document) -> list[list[int]]:
    if not instance["tables"]:
        return []
    found = []
    for _ in range(rng.randint(1, 3)):
        row = [rng.randrange(len(instance["tables"])), rng.choice([1, 1, 2, 3, 100])]
        if rng.random() < 0.6:
            row.append(rng.randrange(len(instance["machines"])))
        found.append(row)
    return found


def random_split(rng: Random, instance: Document) -> tuple[Document, int]:
    """A split that covers every case, and its number of children (0: nothing to split)."""
    tables = instance["tables"]
    if not tables:
        return {}, 0
    table, kind = rng.randrange(len(tables)), rng.randint(0, 4)
    if kind <= 2:
        lists = _cover(rng, list(range(len(tables[table]["options"]))))
        return {"table": table, "options": lists}, len(lists)
    own = tables[table]["options"]
    equal = [t for t, other in enumerate(tables) if other["options"] == own]
    if kind == 3 and len(equal) > 1:
        some = rng.sample(range(len(own)), rng.randint(1, len(own)))
        return {"tables": equal, "counted": some, "most": rng.randrange(len(equal))}, 2
    lists = _cover(rng, list(range(len(instance["machines"]))))
    return {"table": table, "machines": lists}, len(lists)


def _cover(rng: Random, things: list[int]) -> list[list[int]]:
    """Lists that name everything, mostly each once, now and then overlapping or empty."""
    lists: list[list[int]] = [[] for _ in range(rng.randint(1, len(things) + 1))]
    for thing in rng.sample(things, len(things)):
        rng.choice(lists).append(thing)
        if rng.random() < 0.15:
            rng.choice(lists).append(thing)
    return [x for x in lists if x or rng.random() < 0.1] or [things]


def random_peaks(rng: Random, instance: Document, target: int) -> Document:
    """A certificate of random rows of peaks and cuts; every leaf uses some of the rows. Some phase
    must hide nothing."""
    hidden = instance.get("hidden", [0] * len(instance["phases"]))
    bare = [name for name, time in zip(instance["phases"], hidden, strict=True) if not time]
    phases = rng.sample(bare, len(bare))
    at = rng.randint(1, len(phases))
    first, second = phases[:at], phases[at : rng.randint(at, len(phases))]
    rows = [_peaks(rng, instance, first, second, target) for _ in range(rng.randint(1, 3))]
    nodes: list[Document] = [{}]
    for node in nodes:
        if len(nodes) < 12 and rng.random() < 0.6:
            cuts = sorted(rng.sample(range(target + 1), min(target + 1, rng.randint(1, 2))))
            node |= {"peak": rng.choice([first, second] if second else [first]), "cuts": cuts}
            nodes += [{} for _ in range(len(cuts) + 1)]
        else:
            node["use"] = rng.choices(range(len(rows)), k=rng.randint(1, 3))
    vectors = [[row] for row in rows]
    if instance["resources"] and rng.random() < 0.5:
        name = rng.choice(instance["resources"])["name"]
        vectors[0].append({"row": "capacity", "of": name, "times": rng.randint(0, 3)})
    return {"version": 3, "kind": "bound", "target": target, "vectors": vectors, "nodes": nodes}


def _peaks(
    rng: Random, instance: Document, first: list[str], second: list[str], target: int
) -> Document:
    """A row with weights about as large as the shards' loads."""
    phases, weights = instance["phases"], []
    scale = rng.choice([1, 1, 2, max(1, target // 8)])
    for t, table in enumerate(instance["tables"]):
        for o, option in enumerate(table["options"]):
            shards = [shard for block in option["blocks"] for shard in block["shards"]]
            for e, shard in enumerate(shards):
                load = sum(shard["cost"][phases.index(name)] for name in [*first, *second])
                weight = load // scale if rng.random() < 0.8 else rng.randint(0, 5)
                weights += [[t, o, e, weight]] if weight else []
    loads = {} if rng.random() < 0.3 else {"loads": [rng.choice([0, 0, 1, 1, 2]) for _ in range(3)]}
    return {"row": "peaks", "first": first, "second": second, "step": rng.choice([1, 1, 1, 2, 5]),
            "most": rng.choice([1, 5, 20, 200]), "each": rng.choice([1, 1, scale, scale, 7]),
            "weights": weights, "times": rng.choice([0, 1, 1, 1, 2, 4])} | loads  # fmt: skip


def random_functions(rng: Random, instance: Document, target: int) -> Document:
    """A certificate of random rows of functions, under cuts; every leaf uses some of the rows. Some
    phase must hide nothing."""
    found = random_peaks(rng, instance, target)
    busiest = instance["objective"] == "busiest_rank"
    for vector in found["vectors"]:
        row = vector[0]
        sets = (["busiest_rank"], []) if busiest else (row["first"], row["second"])
        top, step = max(1, target - 1), rng.choice([1, 2, 3])
        bins = [rng.choice([top, top // step, rng.randint(0, top)]) for _ in range(2)]
        each, times = [rng.randint(0, 3) for _ in range(2)], rng.randint(0, 6)
        vector[0] = {"row": "functions", "first": sets[0], "second": sets[1], "bins": bins,
                     "each": each, "times": times,
                     "functions": [_function(rng, instance, bins) for _ in range(2)]}  # fmt: skip
    for node in found["nodes"]:
        if busiest and "peak" in node:
            node["peak"] = ["busiest_rank"]
    return found


def _function(rng: Random, instance: Document, bins: list[int]) -> Document:
    """A function whose threshold is at most half of the bin."""
    ranked = {r["name"]: r["capacity"] for r in instance["resources"] if r["scope"] == "rank"}
    uses = {name: 1 for name in ranked if rng.random() < 0.3}
    first, second = rng.randint(0, 2), rng.randint(0, 2)
    full = first * bins[0] + second * bins[1]
    full += sum(max(c) if isinstance(c, list) else c for c in (ranked[name] for name in uses))
    names = ["steps", "halves"] + ["threshold"] * (full > 1)
    return {"name": rng.choice(names), "parameter": rng.randint(1, max(1, min(9, full // 2))),
            "first": first, "second": second, "uses": uses, "times": rng.randint(0, 5)}  # fmt: skip
