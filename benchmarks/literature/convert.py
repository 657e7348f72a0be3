"""Problem files of the literature as Instances: generalised assignment (GAP) and multiple-choice
knapsack (MMKP).

``python benchmarks/literature/convert.py FILE[#NAME] INSTANCE.json`` writes one that
``milp-planner solve`` reads.

GAP: assign every item to one agent, within each agent's capacity, at least cost. Its JSON:
``agents``, ``items``, ``cost[agent][item]``, ``weight[agent][item]``, ``capacity[agent]``,
``sense`` ``min`` or ``max``.

MMKP: take one item of every group, within k capacities, at most profit. Its JSON is that of a
converted public collection (Khan's I01–I07, Hiremath–Hill's sets): ``groups``,
``items_per_group``, ``resources``, ``capacity[k]``, ``profit[g][j]``, ``weight[g][j][k]``.

Both may hold ``optimum`` and ``best_known``. Numbers with decimals become exact integers.

References
----------
P. C. Chu, J. E. Beasley: A genetic algorithm for the generalised assignment problem. Computers &
Operations Research 24(1), 1997, doi:10.1016/S0305-0548(96)00032-9 (the OR-Library's instances).

M. M. Akbar, M. S. Rahman, M. Kaykobad, E. G. Manning, G. C. Shoja: Solving the Multidimensional
Multiple-choice Knapsack Problem by constructing convex hulls. Computers & Operations Research
33(5), 2006, doi:10.1016/j.cor.2004.09.016.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from formulations import Instance, Objective, Scope, Where, write_instance
from formulations.instance.build import Block, InstanceBuilder, Shard

Document = dict[str, Any]


def read(path: str | Path) -> Instance:
    """Read ``FILE#NAME``, or a file that holds one problem.

    Raises
    ------
    KeyError, ValueError
        Without the problem, or without a name where there are several.
    """
    file, _, name = str(path).partition("#")
    found = _problems(Path(file))
    if not name:
        (name,) = found
    document = found[name]
    return _gap(document, name) if "agents" in document else _mmkp(document, name)


def names_in(path: str | Path) -> list[str]:
    """Names of the problems in a file."""
    return list(_problems(Path(path)))


def _problems(file: Path) -> dict[str, Document]:
    """Every problem of a file by name: it is one, a list of them, or an object of them."""
    document = json.loads(file.read_bytes())
    if isinstance(document, list):
        return {str(item.get("name", i)): item for i, item in enumerate(document)}
    if "agents" in document or "groups" in document:
        return {str(document.get("name", file.stem)): document}
    return dict(document)


def _gap(document: Document, name: str) -> Instance:
    """Agents are ranks, items tables with an option per agent. Costs with decimals are multiplied
    by a power of ten, and negated for ``sense`` ``max``; ``source`` says so."""
    cost, weight = document["cost"], document["weight"]
    sign = -1 if document.get("sense") == "max" else 1
    scale = sign * common_scale(c for row in cost for c in row)
    times = "cost" if scale == 1 else f"{scale} × cost".replace("-", "−")
    builder = InstanceBuilder(
        [list(range(document["agents"]))], ["cost"],
        [("capacity", Scope.RANK, document["capacity"])],
        Objective.TOTAL, name, f"GAP {name}: minimise {times}",
    )  # fmt: skip
    for item in range(document["items"]):
        builder.add_table(f"item{item}")
        for agent in range(document["agents"]):
            shard = Shard({"capacity": weight[agent][item]}, (scaled(cost[agent][item], scale),))
            builder.add_option(f"agent{agent}", [Block([agent], [shard])])
    return _built(builder, document, scale)


def _mmkp(document: Document, name: str) -> Instance:
    """Groups are tables, items options with one ``CLUSTER`` block, knapsacks cluster resources; the
    Instance minimises −profit, times a power of ten where profits have decimals."""
    scale = common_scale(p for row in document["profit"] for p in row)
    times = f"−{scale} × profit" if scale > 1 else "−profit"
    builder = InstanceBuilder(
        [[0]], ["profit"],
        [(f"knapsack{k}", Scope.CLUSTER, c) for k, c in enumerate(document["capacity"])],
        Objective.TOTAL, name, f"MMKP {name}: minimise {times}",
    )  # fmt: skip
    for group, uses in enumerate(document["weight"]):
        builder.add_table(f"group{group}")
        for item, use in enumerate(uses):
            amounts = {f"knapsack{k}": amount for k, amount in enumerate(use)}
            shard = Shard(amounts, (scaled(document["profit"][group][item], -scale),))
            builder.add_option(f"item{item}", [Block(Where.CLUSTER, [shard])])
    return _built(builder, document, -scale)


def _built(builder: InstanceBuilder, document: Document, scale: int) -> Instance:
    """The Instance, with the published values in its units for people and comparisons."""
    found: list[dict[str, object]] = [
        {"planner": f"published {f}", "value": v, "objective": round(v * scale)}
        for f in ("optimum", "best_known") if (v := document.get(f)) is not None
    ]  # fmt: skip
    return replace(builder.build(reference=found), time_unit="cost")


def common_scale(values: Iterable[int | float]) -> int:
    """The smallest power of ten that makes every value an integer."""
    # repr gives the shortest decimal that reads back: what the file said.
    exponents = (Decimal(repr(v)).normalize().as_tuple().exponent for v in values)
    return int(10 ** max(0, -min((int(e) for e in exponents), default=0)))


def scaled(value: int | float, scale: int) -> int:
    """A value times a scale that :func:`common_scale` found, or its negative."""
    return int(Decimal(repr(value)) * scale)


if __name__ == "__main__":
    write_instance(read(sys.argv[1]), sys.argv[2])
