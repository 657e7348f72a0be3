"""What differs between two batches."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.batch.diff import MOST_SCENARIOS, diff_of_batches
from scenarios.batch.info import BatchInfo, batch_of
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.scenarios.batch.records import failed, many, proved, record


def batch(*records: dict[str, Any]) -> BatchInfo:
    """A batch of these records."""
    return batch_of("s", "", len(records), records)


NAMES = ("runs", "runs2")


def test_a_batch_differs_in_nothing_from_itself() -> None:
    """Every scenario is found again, whatever the order."""
    records = many(40)
    info = diff_of_batches((batch(*records), batch(*records[::-1])), NAMES)
    assert (info.rows.changed, info.rows.removed, info.rows.added) == ((), (), ())
    assert info.rows.alike == info.counts["equal"] == 40 and info.mean_ratio == pytest.approx(1)
    assert "All plans and proofs are equal." in info.page()


def test_changes_are_counted_and_named() -> None:
    """Better, equal, worse, found, lost, gone and new, each once; seconds alone are no change."""
    first = batch(
        record(model="better", objective=100), record(model="equal", seconds=1.0),
        record(model="worse", objective=100), failed(model="found"),
        record(model="lost"), record(model="gone"),
    )  # fmt: skip
    second = batch(
        record(model="better", objective=50), record(model="equal", seconds=9.0),
        record(model="worse", objective=200), record(model="found"),
        failed(model="lost"), record(model="new"),
    )  # fmt: skip
    info = diff_of_batches((first, second), NAMES)
    assert list(info.counts.values()) == [1, 1, 1, 1, 1]
    names = [each.key.split()[0] for each in info.rows.changed]
    assert names == ["better", "worse", "found", "lost"]
    assert info.mean_ratio == pytest.approx(1)  # 1/2 · 1 · 2
    assert (info.rows.removed[0].split()[0], info.rows.added[0].split()[0]) == ("gone", "new")
    shown = " ".join(drawn(info.drawing()).split())
    assert "5 scenarios in both; plans of b: 1 lower, 1 equal, 1 higher" in shown
    assert "-50.00%" in shown and "+100.00%" in shown


def test_scenarios_are_told_apart_by_axes_series_and_seed() -> None:
    """Equal models with other memories, settings or seeds are other scenarios."""
    kinds: list[dict[str, Any]] = [
        {"axes": {"hbm": 2**30}},
        {"options": {"bins": 9}},
        {"seed": 1},
        {},
    ]
    first = batch(*(record(objective=i + 1, **kind) for i, kind in enumerate(kinds)))
    second = batch(*(record(objective=i + 1, **kind) for i, kind in enumerate(kinds)))
    info = diff_of_batches((first, second), NAMES)
    assert (info.rows.both, info.rows.changed) == (4, ())


def test_a_proof_that_is_new_is_a_change() -> None:
    """The plan is the same, what is known about it is not."""
    first, second = batch(record(formulation="cpsat", objective=5)), batch(proved(5))
    (change,) = diff_of_batches((first, second), NAMES).rows.changed
    assert (change.before.standing, change.after.standing) == ("feasible", "optimal")


def test_other_versions_are_pointed_out() -> None:
    """As prices of the same inputs may differ."""
    first, second = batch(record()), batch(record(versions={"milp-planner": "2"}))
    info = diff_of_batches((first, second), NAMES)
    assert "the versions differ" in drawn(info.drawing())


def test_long_lists_are_shortened_on_the_terminal_only() -> None:
    """The page has every scenario that differs."""
    names = [f"m{i:02}" for i in range(MOST_SCENARIOS + 3)]
    first = batch(*(record(model=name, objective=10) for name in names))
    second = batch(*(record(model=name, objective=11) for name in names))
    info = diff_of_batches((first, second), NAMES)
    assert "… and 3 more scenarios" in drawn(info.drawing())
    assert all(f"{name} on c" in info.page() for name in names)
