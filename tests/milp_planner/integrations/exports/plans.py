"""Plans for the export tests: any placement of a mixed model that respects fusion groups."""

import random
from dataclasses import replace
from typing import Any

import numpy as np

from formulations import Outcome, Placement, Settings, Status, StoppedBy, Where, check
from formulations.instance import Instance
from formulations.result.placement import machine_ranks
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.model import Model
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing import Options, price
from milp_planner.start import rows


def cluster(machines: int = 2, ranks: int = 2, hbm: str = "80GiB") -> Cluster:
    """A small cluster of equal machines."""
    return Cluster.from_dict(
        {
            "name": "small",
            "machines": machines,
            "ranks_per_machine": ranks,
            "hbm": hbm,
            "ddr": "1TiB",
            "interconnect": {"intra_machine": "600GB/s", "inter_machine": "12.5GB/s"},
        }
    )


def static(name: str, rows: int = 1000, dim: int = 128, **more: Any) -> dict[str, Any]:
    """A TorchRec table."""
    return {"name": name, "rows": rows, "dim": dim, **more}


def dynamic(name: str, rows: int = 5000, dim: int = 64, **more: Any) -> dict[str, Any]:
    """A dynamicemb table."""
    return {"name": name, "rows": rows, "dim": dim, "kind": "dynamicemb", **more}


def model(*tables: dict[str, Any]) -> Model:
    """A model of the given tables."""
    return Model.from_dict(
        {"name": "m", "workload": {"batch_per_rank": 64}, "tables": list(tables)}
    )


MIXED = (
    static("a"),
    static("b", 333, 192, num_features=2),
    static("c", 17, 64),
    dynamic("d"),
    dynamic("e", 70_001, optimizer="adam"),
    dynamic("f", 129, optimizer="adam", features=["click"]),
    dynamic("g", constraints={"cache_ratios": ["1/3", "1/2"]}),
)


def random_plan(seed: int, *tables: dict[str, Any], on: Cluster | None = None) -> Plan:
    """A plan that a formulation could have returned, except that it ignores memory."""
    draw = random.Random(seed)
    options = price(model(*(tables or MIXED)), on or cluster())
    instance = compile_instance(options)
    return decode(options, instance, _outcome(instance, _choose(instance, draw), draw))


def chosen_plan(choose: dict[str, str], *tables: dict[str, Any], on: Cluster | None = None) -> Plan:
    """A plan with the named options (the first option if no name is given)."""
    return plan_of(model(*tables), choose, on)


def plan_of(
    planned: Model, choose: dict[str, str] | None = None, on: Cluster | None = None, seed: int = 0
) -> Plan:
    """A plan with these options for a model."""
    choose = choose or {}
    options: Options = price(planned, on or cluster())
    instance = compile_instance(options)
    picked = [
        instance.option_index(t, choose[name]) if name in choose else instance.options_of(t)[0]
        for t, name in enumerate(instance.table_names)
    ]
    return decode(options, instance, _outcome(instance, picked, random.Random(seed)))


def _choose(instance: Instance, draw: random.Random) -> list[int]:
    """Random options; each fusion group keeps the level of its first table."""
    levels: dict[int, int] = {}
    picked = []
    for table in range(instance.num_tables):
        allowed = [
            o
            for o in instance.options_of(table)
            if levels.get(int(instance.option_group[o]), int(instance.option_level[o]))
            == int(instance.option_level[o])
        ]
        option = draw.choice(allowed)
        if instance.option_group[option] >= 0:
            levels[int(instance.option_group[option])] = int(instance.option_level[option])
        picked.append(option)
    return picked


def _outcome(instance: Instance, picked: list[int], draw: random.Random) -> Outcome:
    placement = anywhere(instance, picked, draw)
    return Outcome(Status.FEASIBLE, StoppedBy.EXHAUSTED, "test", placement=placement)


def any_placement(instance: Instance, draw: random.Random) -> Placement:
    """Any options on any ranks where they may be, whether or not it fits memory."""
    picked = [draw.choice(instance.options_of(t)) for t in range(instance.num_tables)]
    return anywhere(instance, picked, draw)


def anywhere(instance: Instance, picked: list[int], draw: random.Random) -> Placement:
    """These options on any ranks where they may be."""
    ranks = [[_ranks(instance, b, draw) for b in instance.blocks_of(o)] for o in picked]
    return Placement(np.asarray(picked, dtype=np.int64), ranks)


def _ranks(instance: Instance, index: int, draw: random.Random) -> np.ndarray:
    block = instance.block(index)
    if block.where == Where.EVERY_RANK:
        return np.arange(instance.num_ranks)
    if block.where == Where.LIST:
        return np.asarray(block.places)
    machines = block.places or range(len(instance.machines))
    if block.where == Where.ONE_MACHINE:
        return machine_ranks(instance, draw.sample(machines, block.count))
    home = list(block.places or range(instance.num_ranks))
    if block.distinct:
        return np.asarray(draw.sample(home, block.count))
    if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
        home = list(instance.machines[draw.choice(machines)])
    return np.asarray([draw.choice(home) for _ in range(block.count)])


def on_ranks(plan: Plan, ranks: dict[str, list[int]]) -> Plan:
    """The plan with the shards of these tables on other ranks, fitting or not."""
    placement = plan.outcome.placement
    moved = list(placement.ranks)
    for index, name in enumerate(plan.instance.table_names):
        if name in ranks:
            moved[index] = [np.array(ranks[name], dtype=np.int64)]
    placement = replace(placement, ranks=moved)
    objectives = check(plan.instance, placement).objectives
    outcome = plan.outcome.with_(
        placement=placement, objective=objectives[plan.instance.objective.value]
    )
    return decode(price(plan.model, plan.cluster), plan.instance, outcome)


def pins_of(plan: Plan) -> dict[str, PinSpec]:
    """Pins that fix a whole plan; those of dynamicemb tables name no ranks, as they are on all."""
    free = {placed.name for placed in plan.tables if placed.kind == "dynamicemb"}
    return {
        name: pin.model_copy(update={"ranks": None}) if name in free else pin
        for name, pin in rows.pins_of(plan).items()
    }


def quick(seconds: float) -> Settings:
    """Settings with a time limit."""
    return Settings(time_limit=seconds)
