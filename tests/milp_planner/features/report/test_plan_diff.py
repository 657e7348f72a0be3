"""What differs between two plans."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner import Cluster, Model, plan
from milp_planner.features.report.diff import change_of
from milp_planner.features.report.plan_diff import MOST_TABLES, diff_of_plans
from milp_planner.plans.placement import Plan
from tests.milp_planner.features.plan.test_ranks import drawn


def made(pins: dict[str, int], hbm: str = "2GiB", rows: int = 1000) -> Plan:
    """Tables on pinned ranks of a pair of GPUs; 64 columns of 4 bytes, row-wise Adagrad."""
    tables: list[dict[str, Any]] = [
        {"name": name, "rows": rows, "dim": 64,
         "constraints": {"pin": {"sharding_type": "table_wise", "ranks": [rank]}}}
        for name, rank in pins.items()
    ]  # fmt: skip
    model = {"name": "m", "workload": {"batch_per_rank": 64}, "tables": tables}
    cluster = {"name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": 2, "hbm": hbm,
               "ddr": "4GiB", "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip
    return plan(Model.from_dict(model), Cluster.from_dict(cluster), formulation="cpsat")


def test_a_plan_differs_in_nothing_from_itself() -> None:
    """No input, no figure and no table; the page says so."""
    one = made({"a": 0, "b": 1})
    info = diff_of_plans((one, one), ("x.json", "y.json"))
    assert (info.inputs, info.rows.changed, info.rows.alike) == ((), (), 2)
    assert all(figure.before == figure.after for figure in info.figures)
    assert "Model, cluster and profile are equal." in info.page()


def test_a_table_that_moves() -> None:
    """Its option stays, its ranks change, and its bytes with optimizer state move; the input that
    made it move is named, and the objectives' change is theirs."""
    first, second = made({"a": 0, "b": 1}), made({"a": 0, "b": 0})
    info = diff_of_plans((first, second), ("x.json", "y.json"))
    (moved,) = info.rows.changed
    assert (moved.key, moved.before.ranks, moved.after.ranks) == ("b", ((1,),), ((0,),))
    assert moved.before.option == moved.after.option
    assert info.moved == {"b": 1000 * (64 * 4 + 4)}
    assert [c.key for c in info.inputs] == ["model.tables[b].constraints.pin.ranks"]
    assert (info.inputs[0].before, info.inputs[0].after) == ([1], [0])
    step = next(figure for figure in info.figures if figure.key == "step_time")
    assert (step.before, step.after) == tuple(
        p.outcome.objectives["step_time"] for p in (first, second)
    )
    shown = drawn(info.drawing())
    assert "inputs: 1 fields differ" in shown
    assert "tables: 1 differ (253.9 KiB), 1 alike" in shown
    assert "<table" in info.page()


def test_tables_and_memories_that_only_one_has() -> None:
    """They are named; a machine's equal ranks are one difference of the inputs."""
    first, second = made({"a": 0, "b": 1}), made({"a": 0, "c": 1}, hbm="3GiB")
    info = diff_of_plans((first, second), ("x.json", "y.json"))
    assert (info.rows.removed, info.rows.added, info.rows.alike) == (("b",), ("c",), 1)
    fields = [change.key for change in info.inputs]
    assert "cluster.machines[all].ranks[all].hbm" in fields
    assert any(field.startswith("model.tables[b]") for field in fields)
    assert "only in a: b; only in b: c" in " ".join(drawn(info.drawing()).split())


def test_a_plan_without_a_placement() -> None:
    """Its figures are unknown; no table is compared."""
    info = diff_of_plans((made({"a": 0}), made({"a": 0}, rows=100_000_000)), ("x.json", "y.json"))
    assert info.standings == ("certified optimal", "certified infeasible")
    assert (info.rows.changed, info.rows.removed) == ((), ("a",))
    assert all(figure.after is None for figure in info.figures if figure.key == "step_time")
    assert info.page()


def test_long_lists_are_shortened_on_the_terminal_only() -> None:
    """The page has every table."""
    names = [f"t{i:02}" for i in range(MOST_TABLES + 5)]
    plans = made(dict.fromkeys(names, 0)), made(dict.fromkeys(names, 1))
    info = diff_of_plans(plans, ("x.json", "y.json"))
    shown, page = drawn(info.drawing()), info.page()
    assert "… and 5 more tables" in shown
    assert all(f">{name}<" in page for name in names)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(100, 103, "+3.00%"), (100, 50, "-50.00%"), (7, 7, "same"), (0, 7, ""), (None, 7, "")],
)
def test_a_change_in_words(before: int | None, after: int | None, said: str) -> None:
    """Relative to the first; nothing where there is nothing to relate it to."""
    assert change_of(before, after) == said
