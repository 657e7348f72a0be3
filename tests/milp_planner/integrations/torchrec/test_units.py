"""Milliseconds to picoseconds, bytes up."""

from __future__ import annotations

import pytest
from torchrec.distributed.planner.types import Perf, Storage

from milp_planner.integrations.torchrec.units import milliseconds, picoseconds, whole_bytes


def test_phases_are_torchrecs_total() -> None:
    """The five phases add up to ``Perf.total``; the input exchange is not among them."""
    perf = Perf(1.5, 0.25, 3.0, 0.5, input_dist_comms=100.0, prefetch_compute=0.125)
    assert picoseconds(perf) == (
        1_500_000_000,
        250_000_000,
        3_000_000_000,
        500_000_000,
        125_000_000,
    )
    assert milliseconds(sum(picoseconds(perf))) == pytest.approx(perf.total, rel=1e-12)


def test_rounds_to_nearest_picosecond() -> None:
    """A third of a millisecond is rounded, not cut."""
    assert picoseconds(Perf(2 / 3 * 1e-9, 1 / 3 * 1e-9, 0, 0))[:2] == (1, 0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_refuses_what_is_no_number(bad: float) -> None:
    """An estimator that returns infinity or NaN is reported."""
    with pytest.raises(ValueError, match="not finite"):
        picoseconds(Perf(bad, 0, 0, 0))


def test_bytes_round_up() -> None:
    """Fractions of a byte never make a shard smaller than it is."""
    assert whole_bytes(Storage(hbm=10.2, ddr=3, ssd=0)) == {"hbm": 11, "ddr": 3, "ssd": 0}  # type: ignore[arg-type]
