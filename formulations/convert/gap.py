"""Generalised assignment: every item to one agent, each agent's capacity kept, least cost.

The JSON layout: ``agents``, ``items``, ``cost[agent][item]``, ``weight[agent][item]``,
``capacity[agent]``, ``sense`` ``min`` or ``max``, and optionally ``optimum``; a file holds one
instance or an object of them by name.

References
----------
P. C. Chu, J. E. Beasley: A genetic algorithm for the generalised assignment problem. Computers &
Operations Research 24(1), 1997, doi:10.1016/S0305-0548(96)00032-9 (the OR-Library's instances).
"""

from __future__ import annotations

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
from formulations.instance import Instance, Objective, Scope
from formulations.instance.build import Block, InstanceBuilder, Shard

FIELDS = ("agents", "items", "cost", "weight", "capacity")


def is_gap(document: Any) -> bool:
    """Whether a JSON object has the fields of a GAP instance."""
    return isinstance(document, dict) and all(field in document for field in FIELDS)


def gap_to_instance(document: dict[str, Any], what: str, name: str) -> Instance:
    """A GAP instance as an Instance: agents are ranks, items tables, one option an agent.

    Costs with decimals are multiplied by a power of ten, and negated for ``sense`` ``max``;
    ``source`` says so.

    Raises
    ------
    InstanceError
        Naming the field, what was found and what is allowed.
    """
    sign = -1 if one_of(document, "sense", ("min", "max"), what) == "max" else 1
    agents, items = positive(document, "agents", what), positive(document, "items", what)
    cost = matrix(document["cost"], agents, items, f"{what}: cost")
    weight = matrix(document["weight"], agents, items, f"{what}: weight")
    capacity = [int(c) for c in numbers(document["capacity"], agents, f"{what}: capacity")]
    scale = sign * common_scale((c for row in cost for c in row), f"{what}: cost")
    times = "cost" if scale == 1 else f"{scale} × cost".replace("-", "−")
    builder = InstanceBuilder(
        [list(range(agents))], ["cost"], [("capacity", Scope.RANK, capacity)],
        Objective.TOTAL, name, f"GAP {name}: minimise {times}",
    )  # fmt: skip
    for item in range(items):
        builder.add_table(f"item{item}")
        for agent in range(agents):
            use = {"capacity": int(weight[agent][item])}
            shard = Shard(use, (scaled(cost[agent][item], scale),))
            builder.add_option(f"agent{agent}", [Block([agent], [shard])])
    reference: list[dict[str, object]] = []
    optimum = document.get("optimum")
    if isinstance(optimum, (int, float)) and not isinstance(optimum, bool):
        entry = {"planner": "published optimum", "value": optimum}
        reference = [{**entry, "objective": round(optimum * scale)}]
    return replace(builder.build(reference=reference), time_unit="cost")
