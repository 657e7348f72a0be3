"""Figures of sweeps: only scenarios that are otherwise alike share a line."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.batch.curves import rows_of
from scenarios.batch.info import batch_of
from scenarios.batch.page import render_batch
from scenarios.batch.sweeps import MOST_CHARTS, RATE, sweeps_of
from tests.scenarios.batch.records import failed, record


def test_time_against_what_is_swept() -> None:
    """Each point is the median of the plans at that number; failures and constants draw nothing."""
    records = [
        record(axes={"hbm": hbm, "profile": "h100", "skew": 1.0}, objective=value, seed=seed)
        for hbm, values in ((2, (9, 5, 7)), (1, (20,))) for seed, value in enumerate(values)
    ]  # fmt: skip
    records.append(failed(axes={"hbm": 4, "profile": "h100", "skew": 1.0}))
    (swept,) = sweeps_of(rows_of(records))
    assert (swept.axis, swept.objective_kind) == ("hbm", "total")
    assert [(c.series, c.points) for c in swept.curves] == [("dp", ((1.0, 20), (2.0, 7)))]


def test_time_against_names_that_are_swept() -> None:
    """Names keep the order of the suite, points stand at their names' places, and gaps stay
    gaps."""
    records = [
        record(axes={"dist_type": rule}, objective=value)
        for rule, value in (("roundrobin", 9), ("continuous", 5), ("any", 7))
    ]
    records.append(failed(axes={"dist_type": "hash"}))
    (swept,) = sweeps_of(rows_of(records))
    assert swept.names == ("roundrobin", "continuous", "any", "hash")
    assert [c.points for c in swept.curves] == [((0.0, 9), (1.0, 5), (2.0, 7))]


def _machines_and_memory() -> list[dict[str, Any]]:
    """More memory never hurts, and 2 machines take longer steps of twice the samples; one machine
    with little memory has no plan."""
    times = {(1, 4): 90, (1, 8): 80, (2, 2): 120, (2, 4): 100, (2, 8): 96}
    return [
        record(axes={"hbm": hbm, "machines": machines}, objective=time * 10**9,
               objective_kind="step_time", samples=1000 * machines)
        for (machines, hbm), time in times.items()
    ]  # fmt: skip


def test_machine_counts_are_never_pooled() -> None:
    """Each machine count has its own line; a pooled median would rise with memory."""
    swept = next(s for s in sweeps_of(rows_of(_machines_and_memory())) if s.axis == "hbm")
    assert [(c.series, [y / 10**9 for _, y in c.points]) for c in swept.curves] == [
        ("machines 1", [90, 80]), ("machines 2", [120, 100, 96]),
    ]  # fmt: skip


def test_samples_a_second_stand_beside_step_times() -> None:
    """Rates are drawn if steps differ in samples: 1000 in 80 ms, 2000 in 96 ms."""
    rates = [s for s in sweeps_of(rows_of(_machines_and_memory())) if s.measure == RATE]
    assert [s.axis for s in rates] == ["hbm", "machines"]
    eight = next(c for c in rates[1].curves if c.series == "hbm 8 B")
    assert eight.points == ((1.0, pytest.approx(12_500)), (2.0, pytest.approx(20_833.33)))
    page = render_batch(batch_of("s", "", 5, _machines_and_memory()))
    assert "samples a second against machines" in page and ">20.83 k<" in page
    alike = [{**each, "samples": 7} for each in _machines_and_memory()]
    assert not any(s.measure == RATE for s in sweeps_of(rows_of(alike)))


def test_models_and_clusters_have_figures_of_their_own() -> None:
    """Each has its own scale; the page draws some of them, all folded except the first."""
    records = [
        record(model=f"m{i}", axes={"hbm": hbm}, objective=10**i + hbm)
        for i in range(MOST_CHARTS + 2) for hbm in (1, 2)
    ]  # fmt: skip
    found = sweeps_of(rows_of(records))
    assert [s.where for s in found] == [f"m{i} on c" for i in range(MOST_CHARTS + 2)]
    page = render_batch(batch_of("s", "", len(records), records))
    assert page.count("<details") == MOST_CHARTS and page.count("<details open>") == 1
    assert f"the first {MOST_CHARTS} charts of each kind are drawn" in page


def test_too_many_lines_make_more_figures() -> None:
    """Nine values of another axis get a figure each, so that no two lines look alike."""
    records = [
        record(axes={"hbm": hbm, "skew": skew}, objective=hbm)
        for hbm in (1, 2) for skew in range(9)
    ]  # fmt: skip
    hbm = [s for s in sweeps_of(rows_of(records)) if s.axis == "hbm"]
    assert [s.where for s in hbm] == [f"m on c, skew {skew}" for skew in range(9)]
    assert all(len(s.curves) == 1 for s in hbm)
