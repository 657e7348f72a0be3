"""Curves of a batch, against their definitions counted out."""

from __future__ import annotations

from milp_planner.features.batch.curves import rows_of, sweeps_of
from tests.milp_planner.features.batch.records import failed, record


def test_time_against_what_is_swept() -> None:
    """The median of the plans at each number; failures and constants draw nothing."""
    records = [
        record(axes={"hbm": hbm, "profile": "h100", "skew": 1.0}, objective=value, seed=seed)
        for hbm, values in ((2, (9, 5, 7)), (1, (20,))) for seed, value in enumerate(values)
    ]  # fmt: skip
    records.append(failed(axes={"hbm": 4, "profile": "h100", "skew": 1.0}))
    (swept,) = sweeps_of(rows_of(records))
    assert (swept.axis, swept.objective_kind) == ("hbm", "total")
    assert [(c.series, c.points) for c in swept.curves] == [("dp", ((1.0, 20), (2.0, 7)))]


def test_time_against_names_that_are_swept() -> None:
    """Names stand in the order of the suite; points name their places, gaps stay gaps."""
    records = [
        record(axes={"dist_type": rule}, objective=value)
        for rule, value in (("roundrobin", 9), ("continuous", 5), ("any", 7))
    ]
    records.append(failed(axes={"dist_type": "hash"}))
    (swept,) = sweeps_of(rows_of(records))
    assert swept.names == ("roundrobin", "continuous", "any", "hash")
    assert [c.points for c in swept.curves] == [((0.0, 9), (1.0, 5), (2.0, 7))]
