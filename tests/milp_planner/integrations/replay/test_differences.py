"""Plans are compared up to ranks and machines that are interchangeable."""

from __future__ import annotations

import random
from typing import Any

import pytest

from milp_planner.inputs import Cluster
from milp_planner.integrations.replay.judge import differences
from milp_planner.plans.placement import Plan
from tests.milp_planner.integrations.exports import plans

TABLES = [plans.static(f"t{i}", dim=128) for i in range(4)]
CHOSEN = {"t0": "column_wise:2/HBM_ONLY", "t1": "table_wise/HBM_ONLY",
          "t2": "table_wise/HBM_ONLY", "t3": "row_wise/HBM_ONLY"}  # fmt: skip


def placed(
    ranks: dict[str, list[int]], chosen: dict[str, str] | None = None, on: Cluster | None = None
) -> Plan:
    """A plan on two machines of two ranks with these ranks."""
    return plans.on_ranks(plans.chosen_plan(chosen or CHOSEN, *TABLES, on=on), ranks)


HOME: dict[str, list[int]] = {"t0": [0, 2], "t1": [0], "t2": [3]}


@pytest.mark.parametrize(
    "ranks",
    [
        {"t0": [2, 0], "t1": [0], "t2": [3]},  # shards of a table are alike
        {"t0": [1, 2], "t1": [1], "t2": [3]},  # ranks of the first machine exchanged
        {"t0": [2, 0], "t1": [2], "t2": [1]},  # the machines exchanged
        {"t0": [3, 1], "t1": [3], "t2": [0]},  # both
    ],
)
def test_like_ranks_may_be_exchanged(ranks: dict[str, list[int]]) -> None:
    """Nothing differs."""
    assert differences(placed(HOME), placed(ranks)) == ()


@pytest.mark.parametrize(
    ("ranks", "differ"),
    [
        ({"t0": [0, 1], "t1": [0], "t2": [3]}, {"t0", "t1", "t2"}),  # one machine, not two
        ({"t0": [0, 0], "t1": [1], "t2": [3]}, {"t0", "t1", "t2"}),  # two shards on a rank
        ({"t0": [0, 2], "t1": [1], "t2": [3]}, {"t0", "t1"}),  # t1 no longer beside t0
    ],
)
def test_company_counts(ranks: dict[str, list[int]], differ: set[str]) -> None:
    """A table differs by rank if other shards are on its rank or machine."""
    found = differences(placed(HOME), placed(ranks))
    assert differ <= {each.table for each in found}
    assert {each.reason for each in found} == {"rank"}


@pytest.mark.parametrize(
    ("option", "reason", "words"),
    [
        ("table_wise/HBM_ONLY", "type", "table_wise"),
        ("column_wise:2/HOST_ONLY", "mode", "HOST_ONLY"),
        ("column_wise:4/HBM_ONLY", "width", "4 shards of 32 columns"),
    ],
)
def test_the_first_reason_is_named(option: str, reason: str, words: str) -> None:
    """Type before mode before width before rank."""
    other = placed({}, {**CHOSEN, "t0": option})
    found = {each.table: each for each in differences(placed(HOME), other)}["t0"]
    assert (found.reason, found.runs) == (reason, words)


def test_unequal_ranks_are_not_exchanged() -> None:
    """On ranks of different memory the same exchange is a difference."""
    document: dict[str, Any] = plans.cluster().to_dict()
    document["machines"][0]["ranks"][1]["hbm"] = "40GiB"
    mixed = Cluster.from_dict(document)
    here, there = (placed(ranks, on=mixed) for ranks in (HOME, {**HOME, "t0": [1, 2], "t1": [1]}))
    assert differences(here, there)


@pytest.mark.parametrize("seed", range(30))
def test_any_exchange_of_like_ranks_is_no_difference(seed: int) -> None:
    """Property: permute machines, and ranks within each, of a random plan."""
    draw = random.Random(seed)
    ranks = {"t0": [draw.randrange(4), draw.randrange(4)], "t1": [draw.randrange(4)],
             "t2": [draw.randrange(4)]}  # fmt: skip
    machines = draw.sample([[0, 1], [2, 3]], 2)
    to = [rank for machine in machines for rank in draw.sample(machine, 2)]
    moved = {name: [to[rank] for rank in found] for name, found in ranks.items()}
    assert differences(placed(ranks), placed(moved)) == ()
