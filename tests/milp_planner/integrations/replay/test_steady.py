"""The cap that an export states: what runs stays the same while the dense parameters vary."""

from __future__ import annotations

import random

from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations.exports.dlrmv4 import DEFAULT_CAP, HBM
from milp_planner.integrations.replay import Pins, Ran
from milp_planner.integrations.replay.dlrmv4 import DENSE, runs, steady

CLUSTER = Cluster.from_dict({
    "name": "drawn", "machines": 1, "ranks_per_machine": 4, "hbm": "80GiB", "ddr": "2TiB",
    "profile": "mi350x", "interconnect": {"intra_machine": "600GB/s"},
})  # fmt: skip


def drawn(seed: int, dense: int) -> tuple[Model, Pins]:
    """Tables of 3 to 20 GiB, whole or cut into columns, with so many bytes of dense parameters."""
    draw = random.Random(seed)
    tables = [
        {"name": f"t{i}", "rows": draw.randint(1_500_000, 10_000_000), "dim": 512,
         "output": "sequence", "sequence_length": 1}
        for i in range(9)
    ]  # fmt: skip
    asked = {
        str(table["name"]): PinSpec(
            mode="HBM_ONLY", sharding_type=draw.choice(["table_wise", "column_wise"])
        )
        for table in tables
    }
    return Model.from_dict({
        "name": "drawn", "workload": {"batch_per_rank": 64}, "tables": tables,
        "outside_embeddings": {"parameter_bytes": dense},
    }), asked  # fmt: skip


def replayed(seed: int, dense: int, cap: str) -> dict[str, PinSpec] | None:
    """What runs with other dense parameters at a cap; None if the trainer would stop."""
    model, asked = drawn(seed, dense)
    try:
        first = next(runs(asked, asked, model, whole_gib(int(cap or DEFAULT_CAP))))
    except FallsShort:
        return None
    return first.pins if first.settings[HBM] == cap else None


def whole_gib(cap: int) -> Cluster:
    """The cluster with as much HBM a rank, so that the first way to run is at this cap."""
    data = CLUSTER.to_dict()
    data["machines"] = [
        {**machine, "ranks": [{**rank, "hbm": cap * 2**30} for rank in machine["ranks"]]}
        for machine in data["machines"]
    ]
    return Cluster.from_dict(data)


def test_the_ranks_hold_at_both_ends_of_what_is_said() -> None:
    """A plan that is said to hold from none to the most does so when replayed; the cap often
    differs from the first that leads to the plan, and then holds where that one does not."""
    dense, whole, moved = 60 * 2**20, 0, 0
    for seed in range(40):
        model, asked = drawn(seed, dense)
        for first in runs(asked, asked, model, CLUSTER):
            kept: Ran = steady(first, asked, model, CLUSTER)
            assert kept.pins == first.pins == replayed(seed, dense, kept.settings[HBM])
            if "0 B to 128.0 MiB" not in kept.kept:
                continue
            whole += 1
            for end in (0, DENSE):
                assert replayed(seed, end, kept.settings[HBM]) == first.pins
            if kept.settings != first.settings:
                moved += 1
                ends = [replayed(seed, end, first.settings[HBM]) for end in (0, DENSE)]
                assert any(each != first.pins for each in ends)
    assert whole > 20 and moved > 5
