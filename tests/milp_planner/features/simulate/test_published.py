"""Published skew against the summary figures of its source."""

from __future__ import annotations

import pytest

from milp_planner.features.simulate.streams import LOOKUPS, REUSE, published, with_skew
from milp_planner.inputs import Model
from milp_planner.inputs.access import Histogram, Zipf


@pytest.mark.parametrize(("name", "reuse"), [("dlrm-2021", 7.6), ("dlrm-2022", 12.7)])
def test_mean_reuse_is_the_published_one(name: str, reuse: float) -> None:
    """Mean lookups per row over the classes are within 2% of the source's average."""
    bins = published(name).bins
    assert sum(r * m for (r, _), m in zip(bins, REUSE, strict=True)) == pytest.approx(
        reuse, rel=0.02
    )


def test_share_of_rows_is_the_published_one() -> None:
    """Of a 2022 batch's rows, 34.2%, 14.4% and 14.9% are looked up once, twice, 3–4 times."""
    rows = [r for r, _ in published("dlrm-2022").bins]
    assert rows[:3] == pytest.approx([0.342, 0.144, 0.149], abs=0.01)


def test_only_tables_without_statistics_take_it() -> None:
    """A table's own statistics are kept."""
    tables = [
        {"name": "a", "rows": 100, "dim": 8, "access": {"kind": "unknown", "unique_fraction": 0.5}},
        {"name": "b", "rows": 100, "dim": 8, "access": {"kind": "zipf", "alpha": 1.0}},
    ]
    model = Model.from_dict({"name": "m", "workload": {"batch_per_rank": 1}, "tables": tables})
    first, second = with_skew(model, "dlrm-2021").tables
    assert isinstance(first.access, Histogram)
    assert (first.access.unique_fraction, len(LOOKUPS)) == (0.5, 2)
    assert isinstance(second.access, Zipf)
