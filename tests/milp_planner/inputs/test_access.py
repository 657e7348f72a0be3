"""Access statistics and their consistency."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.access import Histogram, HotId, MissRate, TopIds, Unknown, Zipf
from tests.milp_planner.inputs import builders


def read(access: Any) -> Any:
    """The access statistics of a one-table model."""
    return Model.from_dict(builders.model(builders.table(access=access))).tables[0].access


def test_word_unknown() -> None:
    """The bare word unknown is the class Unknown, and the default."""
    assert read("unknown") == Unknown() == read({"kind": "unknown"})
    assert Model.from_dict(builders.model(builders.table())).tables[0].access == Unknown()


def test_every_kind() -> None:
    """Each kind is read into its class with its values."""
    assert read({"kind": "zipf", "alpha": 1, "hot_ids": [4, 0]}) == Zipf(
        kind="zipf", alpha=1.0, hot_ids=(4, 0)
    )
    assert read({"kind": "histogram", "bins": [[0.1, 0.9], [0.9, 0.1]]}) == Histogram(
        kind="histogram", bins=((0.1, 0.9), (0.9, 0.1))
    )
    assert read({"kind": "top_ids", "ids": [{"share": 0.2}, {"share": 0.1, "id": 0}]}) == TopIds(
        kind="top_ids", ids=(HotId(share=0.2), HotId(share=0.1, id=0))
    )
    assert read({"kind": "miss_rate", "points": [[0.1, 0.4], [0.5, 0.1]]}) == MissRate(
        kind="miss_rate", points=((0.1, 0.4), (0.5, 0.1))
    )


def test_measured_figures_go_with_any_kind() -> None:
    """Measured figures are kept beside any kind of statistics."""
    access = read(
        {
            "kind": "unknown",
            "unique_fraction": 0.02,
            "measured_skew": {"max_over_mean": 2.8, "ranks": 2},
        }
    )
    assert access.unique_fraction == 0.02
    assert access.measured_skew.max_over_mean == 2.8


@pytest.mark.parametrize(
    ("access", "sentence"),
    [
        ({"kind": "zipf"}, r"access\.alpha: is missing"),
        ({"kind": "zipf", "alpha": -1}, r"access\.alpha: found -1; allowed: at least 0"),
        ({"alpha": 1}, r"access: the field kind is missing"),
        ("zipff", r"access: found 'zipff'; .*did you mean zipf\?"),
        ({"kind": "zipf", "alpha": 1, "bins": []}, r"access\.bins: unknown field"),
        (
            {"kind": "histogram", "bins": [[0.5, 0.5], [0.4, 0.5]]},
            r"access: the shares of rows sum to 0\.9; allowed: 1",
        ),
        (
            {"kind": "histogram", "bins": [[1, 0.5], [0, 0.5]]},
            r"access: a bin has lookups but no rows",
        ),
        ({"kind": "histogram", "bins": []}, r"access\.bins: found 0 entries; allowed: at least 1"),
        (
            {"kind": "top_ids", "ids": [{"share": 0.7}, {"share": 0.6}]},
            r"access: the shares of the hot ids sum to 1\.3",
        ),
        (
            {"kind": "top_ids", "ids": [{"share": 0.1, "id": 1}, {"share": 0.1, "id": 1}]},
            r"access: a hot id is listed twice",
        ),
        (
            {"kind": "miss_rate", "points": [[0.1, 0.4], [0.2, 0.5]]},
            r"access: point \(0\.2, 0\.5\) follows \(0\.1, 0\.4\)",
        ),
        (
            {"kind": "unknown", "measured_skew": {"max_over_mean": 0.5, "ranks": 8}},
            r"access\.measured_skew\.max_over_mean: found 0\.5; allowed: at least 1",
        ),
        (
            {"kind": "miss_rate", "points": [[0.1, 0.4], [0.1, 0.3]]},
            r"access: point \(0\.1, 0\.3\) follows \(0\.1, 0\.4\)",
        ),
        (
            {"kind": "unknown", "measured_skew": {"max_over_mean": 2, "ranks": 1}},
            r"access\.measured_skew\.ranks: found 1; allowed: at least 2",
        ),
        (
            {"kind": "top_ids", "ids": [{"share": 0.1, "id": -1}]},
            r"access\.ids\[0\]\.id: found -1; allowed: at least 0",
        ),
        (
            {"kind": "unknown", "unique_fraction": 0},
            r"access\.unique_fraction: found 0; allowed: above 0",
        ),
    ],
)
def test_mistakes(access: Any, sentence: str) -> None:
    """Each mistake gets one sentence that names the field inside the statistics."""
    with pytest.raises(BadInput, match=rf"^tables\[0\]\.{sentence}"):
        read(access)
