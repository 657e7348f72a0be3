"""Place the shards of chosen options with Meta's Rebalancer; run by a Python that has it.

    PYTHON peer.py INSTANCE PLAN PLACED [--setting NAME] [--seconds S] [--seed N]

PYTHON is 3.12 or newer with ``rebalancer==1.0.4``. Only the options of PLAN (what
``milp-planner solve --json`` prints) are read, never the ranks. PLACED gets the rank of every
shard, which ``place.py`` judges. README.md says what Rebalancer is given.
"""

import argparse
import gzip
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalancer import ProblemSolver

#: Enumerations travel as numbers: formulas of a balance, its kind of bound, the MIP solver, a limit
#: that is a number of objects.
FORMULAS, THRESHOLD, HIGHS, ABSOLUTE = {"squares": 2, "max": 3}, 3, 2, 1
#: Rounding and the solver's tolerance stay within this share of a capacity.
MARGIN = 1e-6
#: Runs one after another, each from where the last ended: goal, solver, share of the time.
SETTINGS = {
    "single-swap": [("max", "simple", 1.0)],
    "max": [("max", "moves", 1.0)],
    "squares": [("squares", "moves", 1.0)],
    "mip": [("max", "mip", 1.0)],
    "subsets": [("squares", "moves", 0.2), ("max", "subsets", 0.8)],
    "all": [("squares", "moves", 0.2), ("max", "subsets", 0.4), ("max", "mip", 0.4)],
}
MOVES = ["single", "swap", "singleChain", "singleEndChain", "tripleLoop", "klSearch"]


@dataclass
class Block:
    """Shards placed together: ``ways[w][p]`` are the ranks of shard p in way w (a machine)."""

    name: str
    loads: list[dict[str, int]]
    ways: list[list[list[int]]]
    apart: bool
    ranks: list[int] = field(default_factory=list)

    @property
    def fixed(self) -> bool:
        """Whether there is nothing to decide."""
        return len(self.ways) == 1 and all(len(ranks) == 1 for ranks in self.ways[0])

    def shards(self) -> list[str]:
        """The name of every shard."""
        return [f"{self.name}/{position}" for position in range(len(self.loads))]


def block_of(name: str, block: dict[str, Any], machines: list[list[int]]) -> Block:
    """A block of the file; the script exits for a kind of block that no instance here holds."""
    where, count = block["where"], block.get("count", 1)
    ranks = [rank for machine in machines for rank in machine]
    spread = where == "one_machine"
    if "among" in block or (spread and count > 1):
        sys.exit(f"{name}: among and several machines cannot be said here")
    if isinstance(where, list) or where == "cluster":
        sys.exit(f"{name}: lists of ranks and blocks on no rank cannot be said here")
    kinds = {
        "every_rank": [[[rank] for rank in sorted(ranks)]],
        "any_rank": [[ranks] * count],
        "one_machine": [[[rank] for rank in machine] for machine in machines],
        "any_rank_of_one_machine": [[machine] * count for machine in machines],
    }
    ways = kinds[where]
    entries = [entry for entry in block["shards"] for _ in range(entry.get("repeat", 1))]
    entries = entries * len(ways[0]) if len(entries) == 1 else entries
    loads = [{"cost": sum(entry["cost"]), **entry.get("use", {})} for entry in entries]
    return Block(name, loads, ways, bool(block.get("distinct")))


def room_of(instance: dict[str, Any], blocks: list[Block]) -> dict[str, list[float]]:
    """A capacity a rank for each resource, and the mean cost under "cost"."""
    ranks = instance["ranks"]
    room = {"cost": [sum(load["cost"] for b in blocks for load in b.loads) / ranks] * ranks}
    for resource in instance["resources"]:
        name, capacity = resource["name"], resource["capacity"]
        if not any(load.get(name) for block in blocks for load in block.loads):
            continue
        if resource["scope"] != "rank":
            sys.exit(f"{name}: only resources of a rank can be said here")
        room[name] = capacity if isinstance(capacity, list) else [capacity] * ranks
    return room


def greedy(blocks: list[Block], room: dict[str, list[float]]) -> None:
    """Largest blocks first, each where least is over capacity, then on the least busy ranks."""
    used = [dict.fromkeys(room, 0) for _ in room["cost"]]

    def size(block: Block) -> tuple[bool, float]:
        shares = [load.get(key, 0) / room[key][0] for load in block.loads for key in room]
        return not block.fixed, -max(shares)

    def penalty(rank: int, load: dict[str, int]) -> tuple[float, float]:
        after = {key: (used[rank][key] + load.get(key, 0)) / room[key][rank] for key in room}
        cost = after.pop("cost")
        return sum(max(0.0, share - 1) for share in after.values()), cost

    for block in sorted(blocks, key=size):
        plans = []
        for way in block.ways:
            taken: list[int] = []
            for ranks, load in zip(way, block.loads, strict=True):
                free = [rank for rank in ranks if not block.apart or rank not in taken]
                taken.append(min((penalty(rank, load), rank) for rank in free)[1])
            plans.append((max(map(penalty, taken, block.loads)), taken))
        block.ranks = min(plans)[1]
        for rank, load in zip(block.ranks, block.loads, strict=True):
            used[rank].update({key: used[rank][key] + load.get(key, 0) for key in room})


def described(
    machines: list[list[int]], blocks: list[Block], room: dict[str, list[float]], goal: str
) -> ProblemSolver:
    """The problem in Rebalancer's words: objects, containers, dimensions, constraints, a goal."""
    ranks = range(len(room["cost"]))
    start = {str(rank): [f"fixed/{rank}"] for rank in ranks}
    loads: dict[str, dict[str, int]] = {f"fixed/{rank}": {} for rank in ranks}
    avoid, groups, apart = [], {}, {}
    for block in blocks:
        for position, (name, load) in enumerate(zip(block.shards(), block.loads, strict=True)):
            if block.fixed:
                at = loads[f"fixed/{block.ranks[position]}"]
                at.update({key: at.get(key, 0) + value for key, value in load.items()})
                continue
            loads[name] = load
            start[str(block.ranks[position])].append(name)
            allowed = {rank for way in block.ways for rank in way[position]}
            banned = [str(rank) for rank in ranks if rank not in allowed]
            avoid += [{"object": name, "scopeItems": banned}] if banned else []
        if len(block.ways) > 1:
            groups[block.name] = block.shards()
        if block.apart and not block.fixed:
            apart[block.name] = block.shards()
    solver = ProblemSolver(service_name="rebalancer", service_scope="benchmark")
    solver.set_object_name("shard").set_container_name("rank").set_assignment(start)
    machine_of = {str(rank): str(m) for m, machine in enumerate(machines) for rank in machine}
    solver.add_scope("machine", machine_of)
    for name, capacity in room.items():
        unit = max(capacity)
        solver.add_object_dimension(name, {o: x.get(name, 0) / unit for o, x in loads.items()})
        if name != "cost":
            limits = {str(rank): (1 - MARGIN) * capacity[rank] / unit for rank in ranks}
            solver.add_container_dimension(name, limits)
            spec: dict[str, Any] = {"name": f"{name} fits", "scope": "rank", "dimension": name}
            solver.add_constraint({"capacitySpec": spec})
    fixed = [f"fixed/{rank}" for rank in ranks]
    solver.add_constraint({"avoidMovingSpec": {"name": "fixed", "objects": fixed}})
    spec = {"name": "positions", "scope": "rank", "assignments": avoid}
    solver.add_constraint({"avoidAssignmentsSpec": spec})
    if groups:
        solver.add_partition("block", groups)
        spec = {"name": "one machine", "scope": "machine", "partitionName": "block"}
        solver.add_constraint({"colocateGroupsSpec": spec})
    if apart:
        solver.add_partition("apart", apart)
        one = {"type": ABSOLUTE, "globalLimit": 1.0}
        spec = {"name": "apart", "scope": "rank", "partitionName": "apart", "limit": one}
        solver.add_constraint({"groupCountSpec": spec})
    spec = {"name": goal, "scope": "rank", "dimension": "cost", "formula": FORMULAS[goal]}
    return solver.add_goal({"balanceSpec": {**spec, "boundType": THRESHOLD, "upperBound": 0.0}})


def solver_spec(kind: str, blocks: list[Block], seconds: float, seed: int) -> dict[str, Any]:
    """One of Rebalancer's solvers."""
    mip = {"solverPackage": HIGHS, "solveTime": max(1, round(seconds))}
    if kind == "mip":
        return {"optimalSolverSpec": mip}
    if kind == "subsets":
        subsets = {"optimalConfig": mip, "overallTime": seconds, "perSubsetTime": 5.0}
        subsets["containerChoice"] = {"HOT": 2.0, "COLD": 2.0, "RANDOM": 2.0}
        return {"optimalSubsetSolverSpec": subsets}
    names = MOVES[:2] if kind == "simple" else MOVES
    moves: list[dict[str, Any]] = [{f"{name}MoveTypeSpec": {}} for name in names]
    groups = [{"relatedGroups": [block.name]} for block in blocks if len(block.ways) > 1]
    if groups:
        spec = {"partitionName": "block", "relatedGroupsList": groups}
        moves.append({"colocateGroupsMoveTypeSpec": {**spec, "colocationScopeName": "machine"}})
    search = {"moveTypeList": moves, "solveTime": max(1, round(seconds)), "randomSeed": seed}
    return {"localSearchSolverSpec": search}


def main() -> None:
    """Read, place, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("instance", "plan", "placed"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--setting", choices=SETTINGS, default="all")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    data = args.instance.read_bytes()
    instance = json.loads(gzip.decompress(data) if args.instance.suffix == ".gz" else data)
    if instance["objective"] != "busiest_rank" or {"pins", "current"} & instance.keys():
        sys.exit("only busiest_rank without pins and without a current plan can be said here")
    plan = json.loads(args.plan.read_text())["tables"]
    began = time.perf_counter()
    tables = {}
    for table in instance["tables"]:
        name, chosen = table["name"], plan[table["name"]]["option"]
        option = next(option for option in table["options"] if option["name"] == chosen)
        tables[name] = [
            block_of(f"{name}/{index}", block, instance["machines"])
            for index, block in enumerate(option["blocks"])
        ]
    blocks = [block for found in tables.values() for block in found]
    room = room_of(instance, blocks)
    greedy(blocks, room)
    for goal, kind, share in SETTINGS[args.setting]:
        solver = described(instance["machines"], blocks, room, goal)
        solver.set_run_id(str(args.seed))
        solver.add_solver(solver_spec(kind, blocks, share * args.seconds, args.seed))
        at = solver.solve()["assignment"]
        for block in blocks:
            if not block.fixed:
                block.ranks = [int(at[shard]) for shard in block.shards()]
    answer = {
        "seconds": round(time.perf_counter() - began, 2),
        "tables": {
            name: {"option": plan[name]["option"], "ranks": [block.ranks for block in found]}
            for name, found in tables.items()
        },
    }
    args.placed.write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
