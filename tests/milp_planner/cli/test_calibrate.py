"""``milp-planner calibrate``: files appear whole or not at all, and plan reads the profile.

``milp-planner fit-memory``: lines to paste, JSON, and sentences for unreadable peaks.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from milp_planner.pricing.profile import load_profile
from tests.milp_planner.cli.conftest import Cli
from tests.milp_planner.features.calibrate.fake import FakeMachine

CPU_CLUSTER = """\
name: cpu
machines: 1
ranks_per_machine: 2
hbm: 0B
ddr: 64GB
interconnect: {intra_machine: 10GB/s}
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """An invented machine in place of the real one."""
    from milp_planner.features.calibrate import run

    machine = FakeMachine()
    monkeypatch.setattr(run, "find_machine", lambda *_args, **_fields: machine)
    return machine


def test_the_profile_prices_a_plan(fake: FakeMachine, cli: Cli, tmp_path: Path) -> None:
    """A plan with the new profile is proved optimal, embeds the profile, and verifies."""
    (tmp_path / "cpu.yaml").write_text(CPU_CLUSTER)
    done = cli("calibrate", "-o", "mine.yaml")
    assert done.code == 0
    assert "backward 3 × forward" in done.out and "--profile mine.yaml" in done.out
    raw = json.loads((tmp_path / "mine.raw.json").read_text())
    assert raw["profile"] == load_profile(tmp_path / "mine.yaml").to_dict()
    for cluster in ("cluster.yaml", "cpu.yaml"):
        asked = ("plan", "model.yaml", cluster, "--profile", "mine.yaml", "-f", "cpsat", "--json")
        planned = cli(*asked)
        assert planned.code == 0
        assert planned.json["outcome"]["status"] == "optimal"
        (tmp_path / "plan.json").write_text(planned.out)
        (tmp_path / "mine.yaml").rename(tmp_path / "gone.yaml")  # the plan carries the profile
        assert cli("verify", "plan.json").code == 0
        (tmp_path / "gone.yaml").rename(tmp_path / "mine.yaml")


def test_a_profile_with_constants_is_written_and_exits_with_1(
    fake: FakeMachine, cli: Cli, tmp_path: Path
) -> None:
    """A script stops before it plans with the constants of a GPU; --json says the same."""
    fake.wild = ("HBM_ONLY",)
    done = cli("calibrate", "--quick", "-o", "mine.yaml")
    assert done.code == 1
    assert "not measured, but TorchRec's constants: hbm, ddr, host_link" in done.err
    assert "next:" not in done.out
    assert "NOT measured" in load_profile(tmp_path / "mine.yaml").description
    done = cli("calibrate", "--quick", "--json")
    assert done.code == 1
    assert done.json["not_measured"][:2] == ["hbm", "ddr"]


def test_a_faster_machine_makes_a_cheaper_plan(fake: FakeMachine, cli: Cli) -> None:
    """With twice every bandwidth and half the launch, the model costs half, the exchange aside."""
    objectives = []
    for _ in range(2):
        assert cli("calibrate", "--quick", "-o", "mine.yaml").code == 0
        plan = cli("plan", "model.yaml", "cluster.yaml", "--profile", "mine.yaml", "--json",
                   "-f", "cpsat", "--objective", "total").json  # fmt: skip
        objectives.append(plan["outcome"]["objective"])
        fake.hbm, fake.link = 2 * fake.hbm, 2 * fake.link
        fake.launch_seconds /= 2
    assert 0.49 < objectives[1] / objectives[0] < 0.6


def test_the_sweep_that_is_written_fits_to_the_same_curves(
    fake: FakeMachine, cli: Cli, tmp_path: Path
) -> None:
    """The sweep that calibrate wrote gives its own curves again through --raw."""
    assert cli("calibrate", "--quick", "-o", "mine.yaml").code == 0
    assert cli("calibrate", "--raw", "mine.raw.json", "-o", "again.yaml").code == 0
    first, second = (load_profile(tmp_path / name) for name in ("mine.yaml", "again.yaml"))
    assert (first.hbm, first.host_link) == (second.hbm, second.host_link)
    assert first.caching == second.caching and first.hybrid == second.hybrid


def test_noise_writes_nothing(fake: FakeMachine, cli: Cli, tmp_path: Path) -> None:
    """Too much noise: exit code 1, one sentence, no file."""
    fake.noise = 0.5
    before = set(tmp_path.iterdir())
    done = cli("calibrate", "--quick", "-o", "mine.yaml", "--max-spread", "0.01")
    assert (done.code, done.out) == (1, "")
    assert "its repeats spread by" in done.err and done.err.count("\n") == 1
    assert set(tmp_path.iterdir()) == before


NOISY = """\
mode,x,ms,spread
HBM_ONLY,1,1.0,0.1
CACHING,0.1,5,0.95
CACHING,0.5,6,0.95
HYBRID,0.1,2.5,0.2
"""


def test_a_noisy_sweep_is_refused_as_a_noisy_measurement_is(cli: Cli, tmp_path: Path) -> None:
    """Exit code 1 and no file; points beyond the limit are named, and --max-spread moves it."""
    (tmp_path / "noisy.csv").write_text(NOISY)
    before = set(tmp_path.iterdir())
    done = cli("calibrate", "--raw", "noisy.csv", "-o", "fit.yaml")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "CACHING at x = 0.1: its repeats spread by ±95%" in done.err
    assert "CACHING at x = 0.5" in done.err and "HYBRID" not in done.err
    strict = cli("calibrate", "--raw", "noisy.csv", "-o", "fit.yaml", "--max-spread", "0.01")
    assert strict.code == 1 and "HYBRID at x = 0.1" in strict.err and "HBM_ONLY" in strict.err
    assert set(tmp_path.iterdir()) == before
    calm = "\n".join(line.replace("0.95", "0.2") for line in NOISY.splitlines())
    (tmp_path / "calm.csv").write_text(calm)
    assert cli("calibrate", "--raw", "calm.csv", "-o", "fit.yaml").code == 0


def test_the_profile_and_its_measurements_appear_together(
    fake: FakeMachine, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the second file cannot be put in place, the first does not appear either."""
    rename = os.replace

    def refuse(source: str, target: Path) -> None:
        if target.suffix == ".yaml":
            raise OSError(1, "Operation not permitted")
        rename(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    before = set(tmp_path.iterdir())
    done = cli("calibrate", "--quick", "-o", "mine.yaml")
    assert done.code == 2 and "cannot write mine.yaml: Operation not permitted" in done.err
    assert set(tmp_path.iterdir()) == before


def test_an_interrupt_writes_nothing(
    fake: FakeMachine, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during a measurement: exit code 130 and no file."""

    def interrupt(_seconds: float) -> None:
        if len(fake.runs) > 50:
            raise KeyboardInterrupt

    monkeypatch.setattr(fake, "_pass", interrupt)
    before = set(tmp_path.iterdir())
    assert cli("calibrate", "-o", "mine.yaml").code == 130
    assert set(tmp_path.iterdir()) == before


def test_json_is_the_whole_measurement(fake: FakeMachine, cli: Cli, tmp_path: Path) -> None:
    """Stdout has samples, sweep and profile; no file is written."""
    before = set(tmp_path.iterdir())
    value = cli("calibrate", "--json", "--quick").json
    assert {"machine", "profile", "samples", "sweep"} <= set(value)
    assert set(tmp_path.iterdir()) == before


def test_a_published_sweep_is_fitted_without_torch(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--raw with a CSV and --base: the base's numbers fill in what the sweep lacks."""
    monkeypatch.setitem(sys.modules, "torch", None)
    text = "mode,x,ms\nHBM_ONLY,1,0.80\nCACHING,0.1,2.63\nHYBRID,0.1,5.44\n"
    (tmp_path / "other.csv").write_text(text)
    done = cli("calibrate", "--raw", "other.csv", "--base", "h100", "-o", "other.yaml")
    assert done.code == 0 and "caching over cache_ratio" in done.out
    profile, base = load_profile(tmp_path / "other.yaml"), load_profile("h100")
    assert (profile.name, profile.hbm, profile.kernel) == ("other", base.hbm, base.kernel)
    assert profile.hybrid != base.hybrid


def test_a_sweep_in_scientific_notation_and_where_its_bandwidths_are_from(
    cli: Cli, tmp_path: Path
) -> None:
    """1e-3 in CSV and 1e9 in JSON are numbers; a bandwidth that is not in it has a source."""
    (tmp_path / "s.csv").write_text("mode,x,ms\nHBM_ONLY,1,1e-2\nHOST_ONLY,0,1e-1\n")
    done = cli("calibrate", "--raw", "s.csv", "-o", "s.yaml")
    assert done.code == 0, done.err
    assert "hbm: TorchRec 1.8.0, planner/constants.py (HBM_MEM_BW" in " ".join(done.out.split())
    sweep = {
        "name": "s", "source": "by hand", "moved_bytes": 1e9,
        "points": [{"mode": "HBM_ONLY", "x": 1, "ms": 1}, {"mode": "HOST_ONLY", "x": 0, "ms": 9}],
    }  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(sweep))
    assert cli("calibrate", "--raw", "s.json", "-o", "s.yaml").code == 0


def test_lines_to_paste(cli: Cli, planned: Path) -> None:
    """Of two ranks' peaks, the larger remainder appears in the lines for the model's file. Tools
    print values such as 1.7 GiB, which is not a whole number of bytes."""
    peaks = [f"{planned}:0=1900MiB", f"{planned}:1=1.7GiB"]
    found = cli("fit-memory", *peaks, "--json").json
    assert [rank["measured"] for rank in found["ranks"]] == [1900 * 2**20, round(1.7 * 2**30)]
    left = [r["measured"] - r["embeddings"] for r in found["ranks"]]
    assert found["outside"] == -(-max(left) // 2**20) * 2**20
    done = cli("fit-memory", *peaks)
    assert done.code == 0
    assert f"measured_peak: {found['outside'] // 2**20}MiB" in done.out
