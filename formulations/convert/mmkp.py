"""Multidimensional multiple-choice knapsack: one item of every group, k capacities, most profit.

The JSON layout is that of a converted public collection (Khan's I01–I07, Hiremath–Hill's sets):
``groups``, ``items_per_group``, ``resources``, ``capacity[k]``, ``profit[g][j]``,
``weight[g][j][k]``, ``sense`` ``max``, and optionally ``optimum`` and ``best_known``.

References
----------
M. M. Akbar, M. S. Rahman, M. Kaykobad, E. G. Manning, G. C. Shoja: Solving the Multidimensional
Multiple-choice Knapsack Problem by constructing convex hulls. Computers & Operations Research
33(5), 2006, doi:10.1016/j.cor.2004.09.016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from formulations.convert.numbers import (
    common_scale,
    matrix,
    numbers,
    one_of,
    positive,
    scaled,
)
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective, Scope, Where
from formulations.instance.build import Block, InstanceBuilder, Shard

FIELDS = ("groups", "items_per_group", "resources", "capacity", "profit", "weight")


def is_mmkp(document: Any) -> bool:
    """Whether a JSON object has the fields of an MMKP instance."""
    return isinstance(document, dict) and all(field in document for field in FIELDS)


def mmkp_to_instance(document: dict[str, Any], what: str) -> Instance:
    """An MMKP instance as an Instance that minimises −profit × scale.

    Groups become tables, items options with one ``CLUSTER`` block, knapsacks cluster resources;
    profits with decimals are multiplied by a power of ten, which ``source`` names.

    Raises
    ------
    InstanceError
        Naming the field, what was found and what is allowed.
    """
    one_of(document, "sense", ("max",), what)
    groups, items, knapsacks = (positive(document, f, what) for f in FIELDS[:3])
    capacity = [int(c) for c in numbers(document["capacity"], knapsacks, f"{what}: capacity")]
    profit = matrix(document["profit"], groups, items, f"{what}: profit")
    scale = common_scale((p for row in profit for p in row), f"{what}: profit")
    name = str(document.get("name", what))
    source = f"MMKP {name}: minimise −{scale} × profit" if scale > 1 else (
        f"MMKP {name}: minimise −profit")  # fmt: skip
    builder = InstanceBuilder(
        [[0]], ["profit"], [(f"knapsack{k}", Scope.CLUSTER, c) for k, c in enumerate(capacity)],
        Objective.TOTAL, name, source,
    )  # fmt: skip
    weights = document["weight"]
    if not isinstance(weights, list) or len(weights) != groups:
        raise InstanceError(f"{what}: weight must list {groups} groups")
    for group in range(groups):
        builder.add_table(f"group{group}")
        use = matrix(weights[group], items, knapsacks, f"{what}: weight[{group}]")
        for item in range(items):
            cost = -scaled(profit[group][item], scale)
            builder.add_option(f"item{item}", [Block(Where.CLUSTER, [_shard(use[item], cost)])])
    return replace(builder.build(reference=_reference(document, scale)), time_unit="cost")


def _shard(use: Sequence[int | float], cost: int) -> Shard:
    return Shard({f"knapsack{k}": int(amount) for k, amount in enumerate(use)}, (cost,))


def _reference(document: dict[str, Any], scale: int) -> list[dict[str, object]]:
    """The published value as this Instance's objective, for people and comparisons."""
    found: list[dict[str, object]] = []
    for field in ("optimum", "best_known"):
        value = document.get(field)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            objective = round(-value * scale)
            found.append({"planner": f"published {field}", "value": value, "objective": objective})
    return found
