"""Two sets of runs beside each other: differences, their noise, and what counts as worse."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "torchrec-gap"


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, whose folder is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module("compare")


def runs(plans: list[int], gap: float) -> dict[str, list[dict[str, Any]]]:
    """Runs of one instance with seeds 1, 2, …"""
    return {"a": [
        {"instance": "a", "tables": 50, "ranks": 8, "seed": seed, "objective": plan, "gap": gap,
         "certified_bound": plan / 2}
        for seed, plan in enumerate(plans, 1)
    ]}  # fmt: skip


def test_the_noise_of_a_difference(compare: Any) -> None:
    """(10, 12) and (12, 14): both variances are 2, so the error is √(2·(½ + ½)) = √2; as shares
    of 10, 0.2 ± 0.141, which is noise. A single run takes the variance of the other side."""
    found = compare.difference([10.0, 12.0], [12.0, 14.0], scale=10.0)
    assert (found.value, found.error) == pytest.approx((0.2, 2**0.5 / 10))
    assert not found.more()
    one = compare.difference([10.0, 12.0], [20.0])
    assert (one.value, one.error) == pytest.approx((9.0, (2 * 1.5) ** 0.5))
    assert one.more()


def test_the_mean_of_two_differences(compare: Any) -> None:
    """1 ± 3 and 3 ± 4: 2 ± 5/2."""
    each = [compare.Difference(1.0, 3.0), compare.Difference(3.0, 4.0)]
    assert compare.pooled(each) == compare.Difference(2.0, 2.5)


def test_a_size_that_is_worse_is_named(compare: Any) -> None:
    """Plans 10% dearer without any noise, with equal gaps."""
    line = compare.sizes(runs([10, 10], 0.1), runs([11, 11], 0.1)).splitlines()[2]
    assert line.startswith("| 50×8 | 1 | 2, 2 | +10.00 ± 0.00 | +0.00 ± 0.00 | +0.00 ± 0.00 |")
    assert line.endswith("| plan |")


def test_an_instance_of_one_side_only_is_left_out(compare: Any) -> None:
    """Both sides' best, median and worst plan stand beside each other; no row without a partner."""
    ms = 10**9
    both = runs([10 * ms, 12 * ms, 20 * ms], 0.1) | {"b": runs([5], 0.1)["a"]}
    heading, _, *lines = compare.instances(both, runs([10 * ms, 13 * ms], 0.1)).splitlines()
    assert len(lines) == 1 and heading.count("|") == lines[0].count("|")
    assert lines[0].startswith("| a | 10.0000 | 12.0000 | 20.0000 | 10.0000 | 11.5000 | 13.0000 |")
