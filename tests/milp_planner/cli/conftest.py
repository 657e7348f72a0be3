"""Small inputs on disk, their plan, and a way to run the command line in the test's own process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from milp_planner import plan
from milp_planner.cli.main import run

MODEL = """\
name: small
workload: {batch_per_rank: 512}
tables:
  - {name: users, rows: 1M, dim: 64, pooling_factor: 2}
  - {name: items, rows: 2M, dim: 64, pooling_factor: 20}
  - {name: ads, rows: 10k, dim: 32}
"""
CLUSTER = """\
name: pair
profile: h100
machines: 1
ranks_per_machine: 2
hbm: 2GiB
ddr: 4GiB
interconnect: {intra_machine: 450GB/s}
reservations: {hbm_percent: 10}
"""


@dataclass
class Done:
    """What a run left behind: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as JSON; fails if anything else is there."""
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run ``milp-planner`` in a folder with ``model.yaml`` and ``cluster.yaml``."""
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        code = run([str(a) for a in arguments])
        shown = capsys.readouterr()
        return Done(code, shown.out, shown.err)

    return call


@pytest.fixture(scope="session")
def one_plan(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The plan.json of the small inputs, proved optimal."""
    folder = tmp_path_factory.mktemp("planned")
    inputs = [folder / "model.yaml", folder / "cluster.yaml"]
    for path, text in zip(inputs, (MODEL, CLUSTER), strict=True):
        path.write_text(text)
    return plan(*inputs, formulation="cpsat").save(folder / "plan.json").read_bytes()


@pytest.fixture
def planned(cli: Cli, one_plan: bytes, tmp_path: Path) -> Path:
    """It, beside the inputs."""
    (tmp_path / "plan.json").write_bytes(one_plan)
    return tmp_path / "plan.json"
