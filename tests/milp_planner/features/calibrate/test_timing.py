"""Interleaved timings on a clock that the test itself moves.

Raw sweeps from files: JSON and CSV, repeats, and sentences for what is wrong.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.features.calibrate.machine import Probe, Sample, TooNoisy, measure, quiet
from milp_planner.features.calibrate.sweep import read_sweep
from tests.corpus import mistakes
from tests.milp_planner.features.calibrate.published import published


class Clock:
    """A clock that stands still unless told otherwise."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def probe(self, name: str, seconds: list[float], times: int = 1) -> Probe:
        """Takes the next of ``seconds`` at each run; preparing takes an hour."""
        left = iter(seconds)

        def prepare(_number: int) -> None:
            self.time += 3600

        def run(_prepared: object, lap: object) -> None:
            self.time += next(left)
            lap("only")  # type: ignore[operator]

        return Probe(name, prepare, run, times)


def test_what_is_kept_is_the_median_without_warmups_and_preparation() -> None:
    """The warm-up's 99 s and the hours of preparation enter no figure."""
    clock = Clock()
    samples = measure([clock.probe("a", [99, 1, 2, 4, 3, 50])], 5, clock.now)
    assert samples["a"].median == 3
    assert samples["a"].part("only") == 3
    assert sorted(samples["a"].seconds) == [1, 2, 3, 4, 50]


def test_repeats_inside_a_run_divide_its_time() -> None:
    """Ten calls in a run of one second take 0.1 s each, and so does their part."""
    clock = Clock()
    sample = measure([clock.probe("a", [1, 1], times=10)], 1, clock.now)["a"]
    assert (sample.median, sample.part("only")) == pytest.approx((0.1, 0.1))


def test_every_round_runs_every_probe_once() -> None:
    """No probe runs a second time before all have run, and the order differs by round."""
    clock, order = Clock(), []
    probes = [clock.probe(name, [1.0] * 9) for name in "abcd"]
    measure(probes, 8, clock.now, on_step=lambda name, _: order.append(name))
    rounds = [tuple(order[i : i + 4]) for i in range(0, len(order), 4)]
    assert all(sorted(each) == list("abcd") for each in rounds)
    assert len(set(rounds)) > 1


@given(st.lists(st.floats(0.5, 2.0), min_size=5, max_size=30), st.floats(0.01, 100))
def test_spread_is_relative_and_ignores_a_lone_outlier(values: list[float], scale: float) -> None:
    """Scaling all times changes nothing, and one wild round does not move the median far."""
    plain = Sample("a", tuple(values), {})
    scaled = Sample("a", tuple(v * scale for v in values), {})
    assert scaled.spread == pytest.approx(plain.spread)
    wild = Sample("a", (*values, 1e6), {})
    assert min(values) <= wild.median <= max(values)
    assert plain.median == median(values)


def test_noise_is_refused_with_its_name_and_size() -> None:
    """The error names the worst probe, its spread and the limit; below it there is none."""
    calm = Sample("calm", (1.0, 1.01, 1.02, 1.03), {})
    wild = Sample("wild", (1.0, 2.0, 3.0, 4.0), {})
    quiet([calm], 0.25)
    with pytest.raises(TooNoisy, match=r"wild: its repeats spread by ±30% .* allowed: ±25%"):
        quiet([calm, wild], 0.25)


def test_a_probe_may_bring_its_own_clock() -> None:
    """Its laps are the parts, all of them together the time, each call's share of both."""

    class Clock:
        def start(self) -> None:
            self.laps: list[str] = []

        def lap(self, part: str) -> None:
            self.laps.append(part)

        def stop(self) -> dict[str, float]:
            return {"one": 4.0, "host one": 9.0, "rest": 2.0}

    clock: Any = Clock()
    probe = Probe("p", lambda _: None, lambda _, lap: lap("one"), 2, clock=clock)
    sample = measure([probe], 3, lambda: 0.0)["p"]
    assert clock.laps == ["one", "rest"]
    assert sample.median == 3.0
    assert sample.parts == {"one": (2.0,) * 3}


def test_csv_repeats_are_merged(tmp_path: Path) -> None:
    """Three times of one point become their median, with half their range as spread."""
    file = tmp_path / "mine.csv"
    file.write_text("mode,x,ms\nHBM_ONLY,1,1\nHYBRID,0.1,4\n\nHYBRID,0.1,5\nHYBRID,0.1,6.0\n")
    sweep = read_sweep(file)
    assert sweep.name == "mine"
    assert [(p.mode, p.x, p.ms) for p in sweep.points] == [("HBM_ONLY", 1, 1), ("HYBRID", 0.1, 5)]
    assert sweep.points[1].spread == pytest.approx(0.2)


def test_json_is_read_back(tmp_path: Path) -> None:
    """A published sweep that is written and read back is equal."""
    file = tmp_path / "h100.json"
    file.write_text(json.dumps(published("h100").to_dict()))
    assert read_sweep(file) == published("h100")


@pytest.mark.parametrize(("text", "sentence"), mistakes(__file__, "bad csv is one sentence"))
def test_bad_csv_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """File, line, what was found and what is allowed."""
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        read_sweep(file)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    """Only JSON and CSV files are sweeps."""
    with pytest.raises(BadInput, match=r"sweep\.txt: a raw sweep is a \.json or \.csv file"):
        read_sweep(tmp_path / "sweep.txt")
