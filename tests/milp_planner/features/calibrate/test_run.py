"""The whole calibration on an invented machine recovers its constants."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from rich.console import Group

from milp_planner.features.calibrate.machine import TooNoisy
from milp_planner.features.calibrate.result import (
    CONSTANTS,
    Calibration,
    measurement_plan,
    profile_text,
)
from milp_planner.features.calibrate.run import calibrate, draw
from milp_planner.features.calibrate.tiers import DIM
from milp_planner.inputs.strict_yaml import read_yaml
from milp_planner.pricing import lookup
from milp_planner.pricing.profile import Profile, load_profile
from tests.milp_planner.features.calibrate.fake import FakeMachine
from tests.milp_planner.features.plan.test_ranks import drawn


@cache
def made(quick: bool = False, **fields: object) -> tuple[FakeMachine, Calibration]:
    """An invented machine and its calibration, which tests share."""
    machine = FakeMachine(**fields)
    return machine, calibrate(machine, name="fake", quick=quick)


def test_the_machines_constants_come_back() -> None:
    """Bandwidths, launch overhead, backward multiple and penalties are the machine's own."""
    machine, found = made()
    profile, kernel = found.profile, found.profile.kernel
    assert profile.hbm == pytest.approx(machine.hbm, rel=1e-6)
    assert profile.ddr == profile.host_link == pytest.approx(machine.link, rel=1e-6)
    assert kernel.launch_seconds == pytest.approx(machine.launch_seconds)
    assert kernel.backward_multiple == pytest.approx(machine.backward, rel=1e-3)
    assert kernel.dense_update_multiple == pytest.approx(6 * kernel.dense_share, rel=1e-3)
    assert kernel.narrow_penalties == ((64, 1.5), (128, 1.5), (256, 1.5))
    assert set(profile.spread.values()) == {0.0}


def test_the_profile_prices_what_was_measured() -> None:
    """On the fitted curve, the planner's own formula gives every measured time of a tier."""
    machine, found = made()
    load, profile = machine.load, found.profile
    for (mode, hit), probe in measurement_plan(machine, False).tiers.lookups.items():
        x_eff = {"HBM_ONLY": 1.0, "HOST_ONLY": profile.host_only}.get(mode)
        rate = (
            lookup.curve_bandwidth(profile, getattr(profile, mode.lower()), np.array(hit))
            if x_eff is None
            else lookup.tiered_bandwidth(profile, np.array(x_eff))
        )
        row = np.array(DIM * 4.0)
        out = load.bags * row
        priced = lookup.forward_seconds(np.array(float(load.ids)), out, row, np.array(False), rate)
        measured = found.samples[probe.name].median
        assert float(priced) + profile.kernel.launch_seconds == pytest.approx(measured, rel=1e-4)


def test_noise_reaches_the_profile_as_spread() -> None:
    """Uniform noise of ±4% has a relative half interquartile range of 2%."""
    profile = made(noise=0.04)[1].profile
    assert 0.005 < profile.spread["hbm"] < 0.05
    assert profile.hbm == pytest.approx(20e9, rel=0.03)


BASE = load_profile("torchrec-default")


@pytest.mark.parametrize(
    ("fields", "sentence", "kept", "base"),
    [
        (
            {"wild": ("HBM_ONLY", "lookup training")},
            "the memory tiers: the other times are useless without HBM_ONLY 1.0 256",
            (),
            ("hbm", "ddr", "caching", "hybrid"),
        ),
        ({"hbm": 5.1e9}, "the tiers cannot be told apart", (), ("hbm", "host_link")),
        (
            {"cached_penalty": 9.0},
            "caching: .* contradict",
            ("hbm", "hybrid"),
            ("caching", "uvm_caching"),
        ),
        ({"wild": ("HYBRID 0.5",)}, "HYBRID 0.5 256: its repeats spread by", ("hybrid",), ()),
        ({"wild": ("launch",)}, "launch: its repeats", (), ("kernel", "hbm")),
    ],
)
def test_noise_and_contradictions_are_left_out(
    fields: dict[str, object], sentence: str, kept: tuple[str, ...], base: tuple[str, ...]
) -> None:
    """They are named and take the base's numbers; the rest is fitted, steps included."""
    found = made("HYBRID 0.5" not in sentence, **fields)[1]
    assert any(re.search(sentence, each) for each in found.left_out)
    assert found.profile.step is not None
    for name in kept:
        assert getattr(found.profile, name) != getattr(BASE, name)
    for name in base:
        if name != "kernel":
            assert getattr(found.profile, name) == getattr(BASE, name)
        else:
            assert found.profile.kernel.launch_seconds == BASE.kernel.launch_seconds


def test_a_constant_is_never_called_measured() -> None:
    """Without the tiers, the description, the origins and the terminal say that their numbers are
    TorchRec's; what was measured keeps its origin."""
    found = made(True, wild=("HBM_ONLY", "lookup training"))[1]
    profile, base = found.profile, BASE
    assert found.lost == (
        "hbm", "ddr", "host_link", "caching", "uvm_caching", "hybrid", "host_only",
        "kernel.launch_seconds", "kernel.narrow_penalties", "kernel.host_divisor",
        "kernel.dynamicemb_divisor", "kernel.backward_multiple",
    )  # fmt: skip
    said = f"NOT measured, as times were too noisy, but {CONSTANTS}: {', '.join(found.lost)}"
    assert said in profile.description
    assert "hbm stands for" not in profile.description
    assert {profile.origin[name] for name in ("hbm", "ddr")} == {
        base.origin[name] for name in ("hbm", "ddr")
    }
    assert "kernel.backward_multiple" in profile.origin["kernel"]
    assert drawn(Group(*draw(found))).count("not measured") >= 7 + 2
    assert found.to_dict()["not_measured"] == list(found.lost)


def test_what_is_measured_is_not_called_a_constant() -> None:
    """On a quiet machine only the factors without a probe are; one noisy probe is named alone."""
    found = made()[1]
    assert found.lost == ()
    assert "NOT measured" not in found.profile.description
    assert f"Of no machine, but {CONSTANTS}: kernel.dense_share" in found.profile.description
    one = made(True, wild=("dense",))[1]
    assert one.lost == ("kernel.dense_update_multiple",)
    assert "hbm stands for rows near" in one.profile.description


def test_a_noisy_point_gets_more_rounds_and_is_missing_from_its_curve_alone() -> None:
    """HYBRID at half the hits is run up to four times as often as a quiet probe, and left out; its
    other points and CACHING are not."""
    machine, found = made(False, wild=("HYBRID 0.5",))
    assert [x for x, _ in found.profile.hybrid.points] == [0.0, 0.25, 0.75, 0.9, 0.97, 1.0]
    assert [x for x, _ in found.profile.caching.points] == [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0]
    runs = Counter(machine.runs)
    assert (runs["HYBRID 0.5 256"], runs["HYBRID 0.75 256"]) == (2 + 4 * 31, 2 + 31)


def test_steps_that_are_too_noisy_are_left_out() -> None:
    """If Adam's steps are too noisy, Adam is left out, with a note, and named in the description,
    as its tables are then priced by the others' terms; the others are exact."""
    adam = [s.name for s in measurement_plan(FakeMachine(), True).steps if s.optimizer == "adam"]
    found = made(True, wild=tuple(adam[3:]))[1]
    assert set(found.profile.step.update) == {"sgd", "rowwise_adagrad"}
    few = r"the step's adam: 3 of the 12 steps it needs are left"
    assert re.fullmatch(few, found.left_out[-1])
    assert "No step with adam is in the step model" in found.profile.description


def test_where_nothing_is_steady_nothing_is_written() -> None:
    """If nothing is steady, one sentence names all of it and nothing is written."""
    with pytest.raises(TooNoisy, match=r"nothing could be fitted .*HBM_ONLY .*step B"):
        calibrate(FakeMachine(wild=("",)), quick=True)


def test_a_calibration_repeats_and_counts_its_runs_and_seconds() -> None:
    """The same seed gives the same order of runs and the same profile. Progress counts each run,
    and its last report says that all are done. The file stores all the time that passed on the
    machine's clock, including untimed rounds."""
    first, second = (FakeMachine(clock=100.0) for _ in range(2))
    seen: list[tuple[int, int]] = []
    found = calibrate(
        first, quick=True, seed=3, on_progress=lambda done, total, _: seen.append((done, total))
    )
    assert found.profile == calibrate(second, quick=True, seed=3).profile
    assert first.runs == second.runs
    assert [done for done, _ in seen] == list(range(1, seen[0][1] + 1))
    timed = sum(sum(sample.seconds) for sample in found.samples.values())
    assert found.to_dict()["seconds"] == pytest.approx(first.clock - 100.0)
    assert found.seconds > 1.2 * timed  # 2 of 7 rounds; launch's calls count once each there


def test_the_profile_reads_back_from_its_text() -> None:
    """Reading the written YAML gives the same profile, to the last digit."""
    profile = made(noise=0.04)[1].profile
    assert Profile.from_dict(read_yaml(profile_text(profile), "here").data) == profile


GPU: dict[str, object] = {"device": "cuda", "runtime_x_eff": 0.5}
"""With dynamicemb's tables, which reach a tenth of the bandwidth."""


def test_a_gpus_steps_price_its_own_memory() -> None:
    """A GPU's steps price tables in HBM, and a dense update passes over HBM."""
    profile = made(**GPU)[1].profile
    assert profile.step is not None and profile.step.tier == "hbm"
    assert profile.kernel.dense_update_multiple == pytest.approx(3.0, rel=1e-3)
    assert made(True, wild=("dense",))[1].profile.kernel.dense_update_multiple == 9.22


def test_a_gpus_link_is_what_fetching_rows_reaches_and_its_copy_is_told() -> None:
    """host_link prices a fetch, including the gather; the link's own copy rate is in its origin."""
    machine, found = made(**GPU)
    profile = found.profile
    assert profile.host_link == pytest.approx(machine.host_link, rel=1e-6)
    assert "a plain copy over the link alone reaches 20 GB/s" in profile.origin["host_link"]
    assert "copy" not in made()[1].profile.origin["host_link"]


def test_a_gpu_with_dynamicemb_gets_that_librarys_curves() -> None:
    """dynamicemb's times give x_eff over cache ratio and divisor; bandwidths stay torch's."""
    machine, found = made(**GPU)
    profile = found.profile
    assert profile.host_link == pytest.approx(machine.host_link, rel=1e-6)
    assert profile.ddr == pytest.approx(machine.link, rel=1e-6)
    assert profile.kernel.dynamicemb_divisor == pytest.approx(10.0, rel=1e-4)
    assert profile.hybrid.over == profile.caching.over == "cache_ratio"
    for curve in (profile.hybrid, profile.caching):
        assert [y for _, y in curve.points] == pytest.approx(
            [0.5 * x for x, _ in curve.points], abs=1e-4
        )
    assert profile.uvm_caching.over == "hit_ratio"
    assert profile.name == "fake" and "calibrate" in profile.description


def test_a_gpu_measures_steps_of_training_size() -> None:
    """Beside small steps: of 8k to 64k samples, 1 to 50 ids and up to 26 tables; a CPU has none."""
    cpu, cuda = ([s for s in made(**on)[1].steps if s.batch > 8192] for on in ({}, GPU))
    assert cpu == [] and len(cuda) == 48
    assert {len(spec.tables) for spec in cuda} == {1, 4, 12, 26}
    assert {t.pooling for spec in cuda for t in spec.tables} == {1, 8, 20, 50}
    assert all(spec.batch <= 65536 for spec in cuda)


def test_errors_of_held_out_steps_are_printed_by_size() -> None:
    """One line a part and size, and a GPU's profile says whose optimizers it measured."""
    found = made(True, device="cuda")[1]
    parts = {(row.part, row.size) for row in found.held_out}
    assert {(p, s) for p in ("lookup", "dense") for s in ("small", "training size")} <= parts
    text = drawn(Group(*draw(found)))
    for row in found.held_out:
        assert f"{row.median:.1%}" in text
    assert "torch's sparse optimizers; FBGEMM's fused ones differ" in found.profile.description
    assert [row.to_dict() for row in found.held_out] == found.to_dict()["held_out"]


def test_a_profile_of_fused_tables_says_so() -> None:
    """Description, and origin of the steps, name FBGEMM and its version."""
    profile = made(True, device="cuda", fused=True)[1].profile
    assert "FBGEMM 1.0's TBE" in profile.description
    assert "torch's sparse optimizers" not in profile.description
    assert "one TBE of all tables with its fused optimizer" in profile.step.origin
    assert not profile.step.lookup.hidden_dispatch
