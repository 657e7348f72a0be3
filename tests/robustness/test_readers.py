"""Every file that a command reads, damaged: an answer or one sentence, never a traceback."""

import io
import json
import random
import re
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from milp_planner.cli.main import run
from tests.milp_planner.cli.conftest import CLUSTER
from tests.robustness.damage import damaged, damaged_text

#: Damaged files of each kind; tens of thousands ran once.
COUNT = 20
MODEL = """\
name: small
workload: {batch_per_rank: 512}
tables:
  - {name: users, rows: 1M, dim: 64, pooling_factor: 2}
  - {name: items, rows: 2M, dim: 64, kind: dynamicemb, pooling_factor: 20}
  - {name: ads, rows: 10k, dim: 32}
"""
SUITE = """\
name: tiny
models: [model.yaml]
clusters: [cluster.yaml]
objectives: [total]
formulations: [greedy]
time_limit: 1
"""

#: What a sentence about one of several wrong rows begins with.
_ROW = re.compile(r"\S+\.csv:\d+: |table [^:]+: ")


@dataclass(frozen=True)
class Reader:
    """A file, and the commands that read it (``FILE`` stands for its damaged copy)."""

    file: str
    commands: tuple[str, ...]


READERS = {
    "plan": Reader(
        "plan.json",
        (
            "verify FILE",
            "report FILE --json",
            "report FILE -o page.html",
            "export FILE --to torchrec",
            "audit FILE model.yaml cluster.yaml -f greedy --time-limit 1",
        ),
    ),
    "outcome": Reader("outcome.json", ("verify FILE --instance instance.json",)),
    "comparison": Reader("compare.json", ("report FILE --json", "report FILE -o page.html")),
    "answers": Reader("answers.json", ("report plan.json FILE -o page.html",)),
    "torchrec": Reader("torchrec.json", ("import-plan FILE model.yaml --from torchrec",)),
    "dynamicemb": Reader("dynamicemb.json", ("import-plan FILE model.yaml --from dynamicemb",)),
    "tzrec": Reader("tzrec.txt", ("import-plan FILE model.yaml --from tzrec",)),
    "dlrmv4": Reader("dlrmv4.txt", ("import-plan FILE model.yaml --from dlrmv4",)),
    "current": Reader(
        "current.csv", ("audit FILE model.yaml cluster.yaml -f greedy --time-limit 1",)
    ),
    "results": Reader("done/results.jsonl", ("report done -o page.html", "report done --json")),
    "sweep": Reader("sweep.csv", ("calibrate --raw FILE --json",)),
}


@dataclass(frozen=True)
class Done:
    """What a run left."""

    code: int
    error: str


def call(command: str) -> Done:
    """Run a command line in this process."""
    out, error = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(error):
        code = run(command.split())
    return Done(code, error.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One sound file of every kind, each accepted by its reader."""
    path = tmp_path_factory.mktemp("readers")
    with chdir(path):
        _write_all()
        yield path


def _write_all() -> None:
    from formulations import Settings, solve, write_instance
    from formulations.result.outcome_file import outcome_to_dict
    from tests.milp_planner.features.example import example

    Path("model.yaml").write_text(MODEL)
    Path("cluster.yaml").write_text(CLUSTER)
    Path("suite.yaml").write_text(SUITE)
    instance = example()
    write_instance(instance, "instance.json")
    outcome = solve(instance, "cpsat", Settings(time_limit=10, workers=1))
    Path("outcome.json").write_text(json.dumps(outcome_to_dict(instance, outcome)))
    both = "model.yaml cluster.yaml --workers 1"
    assert call(f"plan {both} -f cpsat").code == 0
    assert call(f"compare {both} -f greedy,dp --time-limit 2 -o compare.json").code == 0
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(["explain", "plan.json", "--json", "--time-limit", "5"]) == 0
    Path("answers.json").write_text(out.getvalue())
    for kind in ("torchrec", "dynamicemb", "tzrec", "dlrmv4"):
        suffix = "json" if kind in ("torchrec", "dynamicemb") else "txt"
        call(f"export plan.json --to {kind} -o {kind}.{suffix}")
    Path("dlrmv4.txt").write_text(
        "export EMB_PLACEMENT=hbm\nexport EMB_PLACEMENT_OVERRIDES=ads=uvm\n"
    )
    Path("current.csv").write_text(
        "table,mode,ratio,sharding_type,ranks\nusers,HBM_ONLY,,table_wise,0\n"
        "items,HYBRID,0.5,row_wise,all\nads,HBM_ONLY,,data_parallel,all\n"
    )
    assert call("batch suite.yaml -o done --workers 1").code == 0
    Path("sweep.csv").write_text(
        "mode,x,ms\n" + "".join(f"hybrid,{i / 10},{20 - i}\n" for i in range(1, 10))
    )


@pytest.mark.parametrize("kind", READERS)
def test_damaged_files(folder: Path, kind: str) -> None:
    """Codes 0 to 3 only, and bad input is one line, or one for each wrong row of a table."""
    reader = READERS[kind]
    path = folder / reader.file
    raw = path.read_bytes()
    document = json.loads(raw) if path.suffix == ".json" else None
    for seed in range(COUNT):
        content = damaged_text(seed, raw) if document is None else damaged(seed, raw, document)[0]
        target = path if reader.file.startswith("done/") else folder / f"damaged{path.suffix}"
        target.write_bytes(content)
        command = random.Random(seed).choice(reader.commands).replace("FILE", target.name)
        done = call(command)
        path.write_bytes(raw)
        assert done.code in (0, 1, 2, 3), (kind, seed, command, done)
        assert done.code != 2 or _a_sentence_each(done.error), (kind, seed, command, done)


def _a_sentence_each(error: str) -> bool:
    """One line; or several, each about another row of a CSV or another table of a plan."""
    lines = error.removeprefix("milp-planner: ").rstrip("\n").split("\n")
    rows = [_ROW.match(line) for line in lines]
    about = [row.group() for row in rows if row is not None]
    return len(lines) == 1 or len(set(about)) == len(lines)
