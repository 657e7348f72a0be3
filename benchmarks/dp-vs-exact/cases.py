"""The experiment's instances: generated models, priced, under budgets that a known plan meets.

A random plan is drawn and placed; budgets are what it uses at its fullest rank and machine, times
one plus the slack. So every tight case has a plan by construction, and "found nothing" is a
heuristic's failure. A loose tier has room for every table's largest option at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from formulations import Instance, Objective, Settings
from formulations.baselines.partition.partitioner import Partitioner
from formulations.capacity.budget import Budget
from formulations.diagnose.capacity import least_capacity
from formulations.diagnose.questions import with_capacity
from formulations.fusion import without_fusion
from formulations.instance.facts import option_facts
from formulations.result.check import compute_loads
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing.price import price
from scenarios.generator import generate

GENEROUS = 2**45
TRIES = 200
NEED_SECONDS = 15


@dataclass(frozen=True)
class Case:
    """One instance of the experiment.

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
        ``none``, ``hbm`` or ``both``: which budgets are tight; ``need``: both, derived not from a
        drawn plan but from DDR for half of all bytes and the least HBM that suffices beside it.
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
        """A name that is unique in the experiment."""
        fused = "fused" if self.fusion else "free"
        return (
            f"{self.group}/{self.kind}/{self.machines}x{self.local}/t{self.tables}/s{self.seed}/"
            f"{self.tight}{self.slack}/{fused}"
        )


def make(case: Case) -> Instance | None:
    """The instance of a case; None where no drawn plan could be placed."""
    instance = _priced(case.kind, case.machines, case.local, case.tables, case.seed)
    if not case.fusion:
        instance = without_fusion(instance)
    if case.tight == "none":
        return _loose(instance)
    used = _need(instance) if case.tight == "need" else _known_plan(instance, case.seed)
    if used is None:
        return None
    resources = []
    for resource, use in zip(instance.resources, used, strict=True):
        tight = case.tight != "hbm" or resource.name == "hbm"
        capacity = int(use * (1 + case.slack)) if tight else GENEROUS
        resources.append(replace(resource, capacity=np.full_like(resource.capacity, capacity)))
    return replace(instance, resources=tuple(resources))


@lru_cache(maxsize=4)
def _priced(kind: str, machines: int, local: int, tables: int, seed: int) -> Instance:
    cluster = Cluster.from_dict(
        {
            "name": "experiment",
            "profile": "h100",
            "machines": machines,
            "ranks_per_machine": local,
            "hbm": "16TiB",
            "ddr": "64TiB",
            "interconnect": {"intra_machine": "450GB/s", "inter_machine": "50GB/s"},
        }
    )
    options = price(generate(tables, seed, kind), cluster)
    return compile_instance(options, Objective.BUSIEST_RANK)


def _loose(instance: Instance) -> Instance:
    facts = option_facts(instance)
    largest = np.maximum.reduceat(facts.use, instance.table_options[:-1]).sum(axis=0)
    resources = tuple(
        replace(r, capacity=np.full_like(r.capacity, 2 * int(total)))
        for r, total in zip(instance.resources, largest, strict=True)
    )
    return replace(instance, resources=resources)


def _need(instance: Instance) -> list[int] | None:
    """DDR of a machine for half of all tables' bytes, and the least HBM known to suffice then."""
    leanest = np.minimum.reduceat(
        option_facts(instance).use.sum(axis=1), instance.table_options[:-1]
    )
    ddr = int(leanest.sum()) // 2 // len(instance.machines)
    budget = Budget(Settings(time_limit=NEED_SECONDS, workers=2))
    least = least_capacity(with_capacity(instance, ["ddr"], ddr), "hbm", budget).least
    return None if least is None else [{"hbm": least}.get(r.name, ddr) for r in instance.resources]


def _known_plan(instance: Instance, seed: int) -> list[int] | None:
    """Fullest place of every resource under one random plan that respects fusion groups."""
    draw = random.Random(f"{seed} {instance.num_tables} {instance.num_ranks}")
    partitioner = Partitioner(instance)
    for _ in range(TRIES):
        options = _draw(instance, draw)
        if options is None:
            continue
        partition = partitioner.partition(options)
        if partition is not None:
            loads = compute_loads(instance, partition.placement(instance))
            return [int(use.max()) for use in loads.use]
    return None


def _draw(instance: Instance, draw: random.Random) -> np.ndarray | None:
    """One option a table: a level for every group first, then any option at those levels."""
    level_of = {}
    for group in range(len(instance.fusion_groups)):
        levels = np.unique(instance.option_level[instance.option_group == group]).tolist()
        # Neither all nor nothing in HBM: those budgets would leave little to decide.
        if levels:
            level_of[group] = draw.choice(levels[1:-1] or levels)
    chosen = []
    for table in range(instance.num_tables):
        options = [
            o
            for o in instance.options_of(table)
            if instance.option_group[o] < 0
            or instance.option_level[o] == level_of[int(instance.option_group[o])]
        ]
        if not options:
            return None
        chosen.append(draw.choice(options))
    return np.asarray(chosen, dtype=np.int64)


def published() -> Iterator[Case]:
    """The classes of reference figures: loose, and 0.05 % above a random plan."""
    for seed in range(40):
        tables = 4 + seed % 5
        yield Case("loose", "dynamicemb", 1, 8, tables, seed, "none", 0.0, False)
        yield Case("1.0005x-8-ranks", "dynamicemb", 1, 8, tables, seed, "both", 0.0005, False)
        yield Case("1.0005x-1-rank", "dynamicemb", 1, 1, tables, seed, "both", 0.0005, False)
    for seed in range(15):
        tables = 30 + seed % 11
        yield Case("1.0005x-2-ranks", "dynamicemb", 1, 2, tables, seed, "both", 0.0005, False)


SIZES = ((1, 1, 4), (1, 1, 12), (1, 4, 12), (1, 8, 12), (1, 8, 40))
LARGE = ((1, 8, 100), (4, 8, 40), (4, 8, 100))
BUDGETS = (("none", 0.0), ("hbm", 0.02), ("hbm", 0.05), ("hbm", 0.20), ("both", 0.02),
           ("both", 0.05), ("both", 0.20))  # fmt: skip


def sweep(seeds: int) -> Iterator[Case]:
    """Both kinds of model, fusion on and off, every budget, 1–32 ranks, 4–100 tables.

    Mixed models have one third of the seeds (their exact solves take longest); the large sizes
    have one seed and two budgets.
    """
    for kind, few in (("dynamicemb", seeds), ("mixed", -(-seeds // 3))):
        for seed in range(few):
            for machines, local, tables in SIZES:
                for tight, slack in BUDGETS:
                    for fusion in (False, True):
                        yield Case(
                            "sweep", kind, machines, local, tables, seed, tight, slack, fusion
                        )


def large() -> Iterator[Case]:
    """One seed of the large sizes, loose and 5 % above a drawn plan."""
    for machines, local, tables in LARGE:
        for kind in ("dynamicemb", "mixed"):
            for tight, slack in (("none", 0.0), ("both", 0.05)):
                for fusion in (False, True):
                    yield Case("large", kind, machines, local, tables, 0, tight, slack, fusion)


def two_tier() -> Iterator[Case]:
    """TorchRec tables only, HBM and DDR both 2 to 20 % above need."""
    for seed in range(4):
        for slack in (0.02, 0.05, 0.20):
            yield Case("two-tier", "torchrec", 1, 8, 20, seed, "need", slack, False)


def small() -> Iterator[Case]:
    """A few of each, for continuous integration."""
    for seed in range(4):
        yield Case("loose", "dynamicemb", 1, 4, 5, seed, "none", 0.0, False)
        yield Case("1.0005x-1-rank", "dynamicemb", 1, 1, 5, seed, "both", 0.0005, False)
        for fusion in (False, True):
            yield Case("sweep", "dynamicemb", 1, 4, 6, seed, "both", 0.05, fusion)
        yield Case("sweep", "mixed", 1, 4, 6, seed, "both", 0.05, False)
