"""What changes overnight: tables grow, come and go, a rank is lost, a machine is added."""

import random
from dataclasses import dataclass
from typing import Any

from milp_planner import Cluster, Model
from scenarios.catalog import find_cluster, find_model
from scenarios.generator import generate

#: Share of the tables that grow, by how much, and how many come and go.
GROWING, GROWTH, NEW, GONE = 0.05, 1.2, 3, 2
SEEDS = 10


@dataclass(frozen=True)
class Subject:
    """A model, the cluster it runs on, and what is minimised."""

    model: Model
    cluster: Cluster
    objective: str


@dataclass(frozen=True)
class Change:
    """The state of the next day."""

    model: Model
    cluster: Cluster
    lost: tuple[int, ...] = ()


def subjects() -> dict[str, Subject]:
    """By name."""
    return {
        "generated": Subject(generate(1000, seed=0), find_cluster("16x8xh100"), "step_time"),
        "production": Subject(
            find_model("torchrec-production"), find_cluster("12x8xtorchrec-default"), "busiest_rank"
        ),
    }


#: Names of all changes.
CHANGES = (*(f"drift-{seed}" for seed in range(SEEDS)), "rank-lost", "machine-added")


def changed(subject: Subject, change: str) -> Change:
    """A subject after the named change."""
    if change == "rank-lost":
        return _rank_lost(subject)
    if change == "machine-added":
        data = subject.cluster.to_dict()
        machines = [*data["machines"], data["machines"][-1]]
        return Change(subject.model, _cluster(data, machines))
    return Change(_drifted(subject.model, int(change.removeprefix("drift-"))), subject.cluster)


def _drifted(model: Model, seed: int) -> Model:
    """Some tables grow, some are gone, and some are new: like others, under another name."""
    draw, data = random.Random(seed), model.to_dict()
    tables: list[dict[str, Any]] = data["tables"]
    for table in draw.sample(tables, round(GROWING * len(tables))):
        table["rows"] = round(GROWTH * table["rows"])
    new = [{**table, "name": f"new_{i}"} for i, table in enumerate(draw.sample(tables, NEW))]
    gone = {table["name"] for table in draw.sample(tables, GONE)}
    data["tables"] = [*(table for table in tables if table["name"] not in gone), *new]
    return Model.from_dict(data)


def _rank_lost(subject: Subject) -> Change:
    """The third rank of the second machine."""
    data, lost = subject.cluster.to_dict(), subject.cluster.machine_ranks[1][2]
    machines = [dict(machine) for machine in data["machines"]]
    ranks = list(machines[1]["ranks"])
    machines[1]["ranks"] = [*ranks[:2], *ranks[3:]]
    return Change(subject.model, _cluster(data, machines), (lost,))


def _cluster(data: dict[str, Any], machines: list[dict[str, Any]]) -> Cluster:
    return Cluster.from_dict({**data, "machines": machines})
