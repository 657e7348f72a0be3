"""The process of a job: what it reports, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from formulations.settings import News as Progress
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.files import build
from milp_planner.inputs.model import Model
from milp_planner.inputs.strict_yaml import read_yaml
from milp_planner.serve.child import APART, News
from tests.milp_planner.serve.served import CLUSTER, MODEL


def test_news_come_apart_and_only_improve() -> None:
    """A worse plan or bound is not reported; news that follow too soon wait for the next line."""
    lines: list[str] = []
    now = [0.0]
    news = News(lines.append, lambda: now[0])
    points = ((0.0, 9, None, None), (0.1, 7, 3, 3), (APART, 8, 5, None), (9.0, None, 2, 2))
    for at, objective, bound, certified in points:
        now[0] = at
        news.note(Progress(at, objective, bound, "auto", certified))
    told = [json.loads(line) for line in lines]
    assert [(each["objective"], each["bound"]) for each in told] == [(9, None), (7, 5), (7, 5)]
    assert [each["certified_bound"] for each in told] == [None, 3, 3]
    assert [each["certified_gap"] for each in told] == [None, 4 / 7, 4 / 7]
    assert all(each["chart"].startswith("<svg") for each in told)


def test_it_ends_when_the_service_does(tmp_path: Path) -> None:
    """When stdin closes, the process ends, even in the middle of a long solve."""
    inputs = {
        "model": build(Model, read_yaml(MODEL, "model")).to_dict(),
        "cluster": build(Cluster, read_yaml(CLUSTER, "cluster")).to_dict(),
    }
    job = {
        "objective": "step_time", "time_limit": 600.0, "seed": 0, "workers": 1,
        "folder": str(tmp_path), "gap": 0.0,
        "cache": str(tmp_path / "cache"),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "milp_planner.serve.child"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("".join(f"{json.dumps(line)}\n" for line in (job, inputs)).encode())
    process.stdin.close()
    assert process.wait(60) == 130
    assert not [path for path in tmp_path.iterdir() if path.is_file()]
