"""``milp-planner plan --for``: what a trainer can be made to run, and what bounds it.

``--two-d`` divides the cluster into sharding groups from the command line.
"""

import json
from pathlib import Path

from tests.milp_planner.cli.conftest import Cli

MODEL = {
    "name": "m",
    "workload": {"batch_per_rank": 8},
    "defaults": {"dim": 512, "output": "sequence"},
    "tables": [
        {"name": "a", "rows": 5000, "sequence_length": 100},
        {"name": "b", "rows": 700, "sequence_length": 50},
    ],
}


def test_it_exports_exactly(cli: Cli, tmp_path: Path) -> None:
    """The printout names trainer and bound; the export of the plan runs as it is, and the trainer's
    own file, replayed, costs what was planned."""
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL))
    inputs = ("m.yaml", "cluster.yaml", "--time-limit", "4")
    done = cli("plan", *inputs, "--for", "dlrmv4", "-o", "p.json")
    assert done.code == 0, done.err
    words = " ".join(done.out.split())
    assert "dlrmv4 runs this plan as it is, at" in words and "no plan at all is below" in words
    exported = cli("export", "p.json", "--to", "dlrmv4", "--json").json
    assert exported["runs"]["exact"] and cli("verify", "p.json").code == 0
    (tmp_path / "env.sh").write_text(exported["text"])
    audit = cli("audit", "env.sh", *inputs, "-f", "greedy", "--json").json
    planned = json.loads((tmp_path / "p.json").read_text())["outcome"]["objective"]
    assert audit["fits"] and audit["objective"] == planned


ASK = ("plan", "model.yaml", "cluster.yaml", "-f", "cpsat")


def test_the_table_of_divisions(cli: Cli) -> None:
    """The table lists every division, one of them chosen; verify re-derives that none is better."""
    done = cli(*ASK, "--two-d", "sync_interval=4", "-o", "two.json")
    assert done.code == 0
    assert "divisions into sharding groups" in done.out
    assert done.out.count("chosen") == 1
    told = cli("verify", "two.json")
    assert told.code == 0
    assert "none holds a better plan" in " ".join(told.out.split())


def test_one_division(cli: Cli) -> None:
    """If the division is given in full, nothing is chosen; the plan is that of one group."""
    fields = ("sharding_group_size=1", "layout=strided", "strategy=default")
    done = cli(*ASK, *(word for field in fields for word in ("--two-d", field)), "--json")
    assert done.code == 0
    assert "divisions" not in done.json
    assert done.json["instance"]["ranks"] == 1
    assert done.json["instance"]["phases"][-1] == "sync"
