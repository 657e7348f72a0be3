"""A re-plan is executed while training runs: three gloo processes reshard along an export."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from formulations.result.check import check
from formulations.result.placement import Placement
from milp_planner import Cluster, Model, Plan, plan
from milp_planner.errors import BadInput
from milp_planner.integrations.exports import torchrec, torchrec_reshard
from milp_planner.integrations.torchrec.reshard import calls
from milp_planner.plans.placement import placed_tables

from . import resharded
from .two_processes import in_processes

CLUSTER = Cluster.from_dict(
    {
        "name": "three", "profile": "h100", "machines": 1, "ranks_per_machine": 3, "hbm": "2GiB",
        "ddr": "4GiB", "interconnect": {"intra_machine": "450GB/s"},
    }
)  # fmt: skip
TYPES = {"whole": "table_wise", "columns": "column_wise", "stays": "table_wise"}
BEFORE = {"whole": [0], "columns": [0, 1], "stays": [1]}
AFTER = {"whole": [1], "columns": [1, 2], "stays": [1]}


def planned(ranks: dict[str, list[int]], rows: str = "row_wise", **more: Any) -> Plan:
    """Tables whole or in halves on these ranks; ``rows`` may be cut by rows or by columns."""
    tables = [
        {
            "name": name, "rows": count, "dim": dim,
            "constraints": {
                "modes": ["HBM_ONLY"], "column_widths": [dim // 2],
                "sharding_types": ["row_wise", "column_wise"] if name == "rows" else [TYPES[name]],
            },
        }
        for name, (count, dim) in resharded.SHAPES.items()
    ]  # fmt: skip
    model = Model.from_dict({"name": "m", "workload": {"batch_per_rank": 3}, "tables": tables})
    made = plan(model, CLUSTER, formulation="cpsat", time_limit=30, **more)
    instance, best = made.instance, made.outcome.placement
    options, places = best.options.copy(), list(best.ranks)
    index = instance.table_index("rows")
    options[index] = next(
        o for o in instance.options_of(index) if instance.option_names[o].startswith(rows)
    )
    for name, own in {"rows": [0, 1, 2][: 2 if rows == "column_wise" else 3], **ranks}.items():
        places[instance.table_index(name)] = [np.array(own)]
    placement = Placement(options, places)
    cost = check(instance, placement).objectives["step_time"]
    return replace(
        made,
        outcome=made.outcome.with_(placement=placement, objective=cost, bound=None),
        tables=placed_tables(made.model, made.cluster, instance, placement),
    )


@pytest.fixture(scope="module")
def moves() -> tuple[Plan, dict[str, Any]]:
    """The running plan, and the calls that bring it to another."""
    before = planned(BEFORE)
    after = planned(AFTER, start=before, executable="torchrec")
    return before, torchrec_reshard.document(after, "bags")


@pytest.fixture(scope="module")
def seen(
    moves: tuple[Plan, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What the processes saw."""
    before = resharded.on_cpu(torchrec.document(moves[0], "bags"))
    given = before, resharded.on_cpu(moves[1])
    folder = tmp_path_factory.mktemp("reshard")
    return in_processes(resharded.seen_by, folder, *given, world=resharded.WORLD)


def test_outputs_stay_equal(seen: list[dict[str, Any]]) -> None:
    """The same batch gives the same embeddings before and after the moves."""
    for rank in seen:
        assert rank["before"].abs().sum() > 0
        torch.testing.assert_close(rank["after"], rank["before"])


def test_training_goes_on_as_if_nothing_had_moved(seen: list[dict[str, Any]]) -> None:
    """One more step of row-wise Adagrad, whose state moved too, ends where the other model does."""
    for rank in seen:
        torch.testing.assert_close(rank["trained"], rank["expected"])
        assert (rank["trained"] - rank["after"]).abs().sum() > 0


def test_tables_are_where_the_plan_says(
    seen: list[dict[str, Any]], moves: tuple[Plan, dict[str, Any]]
) -> None:
    """The whole table left rank 0, the column shards moved on by one; the rest is where it was."""
    there = [
        {name.split(".")[-2]: len(ranks) for name, ranks in rank["ranks"].items()} for rank in seen
    ]
    assert (there[0].get("whole", 0), there[1]["whole"]) == (0, 1)
    assert [rank.get("columns", 0) for rank in there] == [0, 1, 1] and there[1]["stays"] == 1
    (call,) = moves[1]["calls"]
    assert set(call["tables"]) == {"whole", "columns"} and moves[1]["restart"] == {}
    # 8 columns and one number of state for each row of three shards
    assert call["data_volume_mib"] == pytest.approx(4 * 9 * (20 + 30 + 30) / 2**20)
    assert seen[0]["volume"] == pytest.approx(call["data_volume_mib"])


def test_what_no_reshard_can_move_is_told() -> None:
    """A change of type on the same ranks, which TorchRec's delta would lose without a word, is
    listed with its reason; the others move if they fit beside it."""
    before = planned(BEFORE)
    after = planned({**BEFORE, "whole": [1]}, rows="column_wise", start=before)
    found = torchrec_reshard.document(after)
    assert set(found["restart"]) == {"rows"} and "column_wise" in found["restart"]["rows"]
    assert [set(call["tables"]) for call in found["calls"]] == [{"whole"}]
    assert torchrec_reshard.notes(after)[0].startswith("rows: from a checkpoint: ")


def test_a_plan_from_nothing_has_no_moves() -> None:
    """The export says what it needs."""
    with pytest.raises(BadInput, match="not made with --start"):
        torchrec_reshard.document(planned(BEFORE))


@pytest.mark.parametrize("wrong", ["{}", '{"format": "milp-planner-torchrec/1"}'])
def test_another_document_is_refused(wrong: str) -> None:
    """A plan is no list of calls."""
    with pytest.raises(BadInput, match="not a reshard"):
        calls(wrong)
