"""Generated models, priced, under budgets that a known plan meets.

A random plan is drawn and placed; budgets are what it uses at its fullest rank and machine, times
one plus the slack. So every case has a plan by construction.
"""

import random
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from formulations import Instance, Objective
from formulations.baselines.partition.partitioner import Partitioner
from formulations.fusion import without_fusion
from formulations.result.check import compute_loads
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing.price import price
from scenarios.generator import generate

GENEROUS, TRIES = 2**45, 200


@dataclass(frozen=True)
class Case:
    """One instance.

    Attributes
    ----------
    group : str
        Which question it belongs to.
    kind : str
        ``dynamicemb``, ``torchrec``, or ``mixed`` (each table either with equal chance).
    machines, local : int
        Ranks = machines × local.
    tables, seed : int
    tight : str
        ``hbm`` or ``both``: which budgets are tight.
    slack : float
        What a tight budget has above the drawn plan's use.
    fusion : bool
        Whether fusion groups are honoured.
    """

    group: str
    kind: str
    machines: int
    local: int
    tables: int
    seed: int
    tight: str
    slack: float
    fusion: bool

    @property
    def key(self) -> str:
        """A name that is unique."""
        shape = f"{self.machines}x{self.local}/t{self.tables}/s{self.seed}"
        fused = "fused" if self.fusion else "free"
        return f"{self.group}/{self.kind}/{shape}/{self.tight}{self.slack}/{fused}"


def make(case: Case) -> Instance:
    """The instance of a case.

    Raises
    ------
    ValueError
        If no drawn plan could be placed.
    """
    instance = _priced(case.kind, case.machines, case.local, case.tables, case.seed)
    if not case.fusion:
        instance = without_fusion(instance)
    resources = []
    for resource, use in zip(instance.resources, _drawn(instance, case.seed), strict=True):
        tight = case.tight != "hbm" or resource.name == "hbm"
        capacity = int(use * (1 + case.slack)) if tight else GENEROUS
        resources.append(replace(resource, capacity=np.full_like(resource.capacity, capacity)))
    return replace(instance, resources=tuple(resources))


@lru_cache(maxsize=4)
def _priced(kind: str, machines: int, local: int, tables: int, seed: int) -> Instance:
    links = {"intra_machine": "450GB/s", "inter_machine": "50GB/s"}
    cluster = Cluster.from_dict({
        "name": "experiment", "profile": "h100", "machines": machines, "ranks_per_machine": local,
        "hbm": "16TiB", "ddr": "64TiB", "interconnect": links,
    })  # fmt: skip
    options = price(generate(tables, seed, kind), cluster)
    return compile_instance(options, Objective.BUSIEST_RANK)


def _drawn(instance: Instance, seed: int) -> list[int]:
    """Fullest place of every resource under one random plan that respects fusion groups."""
    draw = random.Random(f"{seed} {instance.num_tables} {instance.num_ranks}")
    partitioner = Partitioner(instance)
    for _ in range(TRIES):
        options = _options(instance, draw)
        partition = None if options is None else partitioner.partition(options)
        if partition is not None:
            loads = compute_loads(instance, partition.placement(instance))
            return [int(use.max()) for use in loads.use]
    raise ValueError("no random plan could be placed")


def _options(instance: Instance, draw: random.Random) -> np.ndarray | None:
    """One option a table: a level for every group first, then any option at those levels."""
    level_of: dict[int, int] = {}
    for group in range(len(instance.fusion_groups)):
        levels = np.unique(instance.option_level[instance.option_group == group]).tolist()
        # Neither all nor nothing in HBM: those budgets would leave little to decide.
        if levels:
            level_of[group] = draw.choice(levels[1:-1] or levels)
    chosen = []
    for table in range(instance.num_tables):
        groups = {o: int(instance.option_group[o]) for o in instance.options_of(table)}
        options = [o for o, group in groups.items()
                   if group < 0 or instance.option_level[o] == level_of[group]]  # fmt: skip
        if not options:
            return None
        chosen.append(draw.choice(options))
    return np.asarray(chosen, dtype=np.int64)
