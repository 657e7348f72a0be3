"""From the plan run today to the plan shipped: obstacles that a new user met, one test each. They
use only the command line and the public calls, so that they can run on any version.

Tables that today's plan lacks are new and free to place.
"""

import signal
import subprocess
import sys
from pathlib import Path

from tests.milp_planner.cli.conftest import MODEL, Cli


def test_an_interrupt_in_python_returns_the_best_plan() -> None:
    """SIGINT during plan() raises nothing and returns the best plan known by then."""
    code = """
import os, signal, threading
from formulations import Settings
from milp_planner import plan
signal.signal(signal.SIGINT, signal.default_int_handler)
pressed = []
def press(point):
    if point.objective is not None and not pressed:
        pressed.append(threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)))
        pressed[0].start()
from scenarios import catalog
model = catalog.find_model("generated:tables=60,seed=3,kind=torchrec")
found = plan(model, catalog.find_cluster("8xh100"),
             settings=Settings(time_limit=300, on_progress=press))
print("kept", len(found.tables))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode not in (130, -signal.SIGABRT), done.stderr
    assert done.stdout.split() == ["kept", "60"], done.stderr


def test_the_real_model_is_said_exactly(cli: Cli, tmp_path: Path) -> None:
    """8-bit exchange by direction and table, several poolings, idle tables, names by pattern."""
    (tmp_path / "exact.yaml").write_text(
        "name: exact\n"
        "workload: {batch_per_rank: 512, exchange_dtype: int8, exchange_dtype_backward: bf16}\n"
        "patterns: {'side_*': {constraints: {modes: [HBM_ONLY]}}}\n"
        "tables:\n"
        "  - {name: side_a, rows: 1M, dim: 64, pooling_factor: 0}\n"
        "  - {name: side_b, rows: 1M, dim: 64, num_poolings: 168, exchange_dtype: fp16}\n"
    )
    done = cli("plan", "exact.yaml", "cluster.yaml", "-f", "greedy", "--json")
    assert done.code == 0, done.err
    assert {t["mode"] for t in done.json["tables"]} == {"HBM_ONLY"}


CSV = """\
table, mode, ratio, sharding_type, ranks
users, HBM_ONLY, , table_wise, 0
items, HBM_ONLY, , table_wise, 0
"""


def test_a_new_table_is_placed_and_no_move(cli: Cli, tmp_path: Path) -> None:
    """``plan`` places ads; since nothing old may get worse or move, ads alone is new."""
    (tmp_path / "today.csv").write_text(CSV)
    done = cli(
        "plan", "model.yaml", "cluster.yaml", "--today", "today.csv", "-f", "cpsat", "--json"
    )
    assert done.code == 0, done.err
    assert [t["name"] for t in done.json["tables"]] == ["users", "items", "ads"]
    assert list(done.json["instance"]["current"]) == ["users", "items"]


def test_moves_and_a_replan_from_today(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """The new table is not among the moves; those of old tables are. A re-plan for a grown model
    names what is new, and at limit 0 nothing moves for it."""
    (tmp_path / "today.csv").write_text(CSV)
    (tmp_path / "grown.yaml").write_text(f"{MODEL}  - {{name: new, rows: 20k, dim: 32}}\n")
    ask = ("--ask", "moves,replan", "--today", "today.csv", "--model", "grown.yaml")
    done = cli("explain", planned, *ask, "--limits", "0", "-f", "cpsat", "--json")
    assert done.code == 0, done.err
    moved = {each["table"] for each in done.json["moves"]["tables"]}
    assert "items" in moved and "ads" not in moved
    assert done.json["replan"]["new_tables"] == ["ads", "new"]
    assert done.json["replan"]["steps"][0]["moved"] == []
