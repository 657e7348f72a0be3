"""The printed blocks of docs/production.md: every command of the page, run and timed in order.

``python benchmarks/production/run.py PRINTOUT`` takes TorchRec's published printout (gzipped) and
runs the chain in ``--folder``; ``--only NAME,…`` repeats some commands there. Output and time of
each are kept in ``results.json``, from which the page's blocks are written; ``--check`` only says
by the exit code whether they are up to date. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import update  # noqa: E402
from benchmarks.screenshots import save, theme  # noqa: E402
from tests.milp_planner.features.browser import browser  # noqa: E402

PAGE, RESULTS = ROOT / "docs" / "production.md", Path(__file__).parent / "results.json"
PRINTOUT = "sharding_stats_example.txt.gz"
#: Lines of a block that are shown; the rest is counted.
MOST = 24

#: Scripts of the checkout beside the program's commands: which tables are cut or in host memory
#: without need, and what fewer moves cost, which is a table of the page's own.
CHECK, GOALS = "python -m tests.formulations.needless", "python -m benchmarks.production.goals"
#: Name of a block, and the command as it stands there.
COMMANDS = {
    "import": f"import-stats {PRINTOUT} --dtype fp16 --exchange-dtype int8",
    "check": "check model.yaml cluster.yaml",
    "audit": f"audit {PRINTOUT} model.yaml cluster.yaml --objective busiest_rank -o better.json "
    "--page page.html",
    "plan": f"plan model.yaml cluster.yaml --objective busiest_rank --today {PRINTOUT} "
    "-o plan.json",
    "needless": f"{CHECK} better.json",
    "goals": f"{GOALS} better.json {PRINTOUT}",
    "verify": "verify better.json",
    "explain": "explain better.json --ask why --time-limit 30",
    "replan": f"explain better.json --ask replan --today {PRINTOUT} --limits 1,5,20,100 "
    "--time-limit 60",
    "simulate": "simulate better.json --batches 2 --time-limit 60",
    "report": f"report better.json --today {PRINTOUT} -o report.html",
    "export": "export better.json --to torchrec -o sharding.json",
}


def full(command: str) -> str:
    """The command with its program."""
    ours = command.startswith((CHECK, GOALS))
    return command if ours else f"python -m milp_planner.cli.main {command}"


def run(command: str, folder: Path) -> dict[str, Any]:
    """One command's exit code, what it printed, and its seconds on the wall and of processors."""
    words = [sys.executable, *shlex.split(full(command))[1:]]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall = time.perf_counter() - start
    return {
        "command": command, "code": done.returncode, "out": done.stdout, "err": done.stderr,
        "wall_s": round(wall, 1), "processor_s": round(spent, 1),
    }  # fmt: skip


def block(result: dict[str, Any]) -> str:
    """The command, what it printed, and what it took; for the table of goals, the table alone."""
    if result["command"].startswith(GOALS):
        return str(result["out"]).strip()
    lines = [line.rstrip() for line in f"{result['out']}{result['err']}".splitlines()]
    shown = lines[:MOST]
    hidden = len(lines) - len(shown)
    shown += [f"… ({hidden} more lines)"] if hidden else []
    program = "" if result["command"].startswith(CHECK) else "milp-planner "
    text = "\n".join(["```console", f"$ {program}{result['command']}", *shown, "```"])
    return f"{text}\n\n{result['wall_s']:g} s, {result['processor_s']:g} processor seconds."


def picture(page: Path) -> None:
    """Picture what the moves from today's plan bring, as the report draws it."""
    with browser() as session:
        theme(session, "light")
        session.open(page.resolve().as_uri())
        save(session, "moves", "moves", 690)


def cluster_of(page: str) -> str:
    """The cluster.yaml that the page shows."""
    found = re.search(r"```yaml\n(# cluster\.yaml\n.*?)```", page, re.DOTALL)
    assert found is not None, "the page shows no cluster.yaml"
    return found[1]


def main() -> int:
    """Run what was asked for, keep it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("printout", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "production")
    parser.add_argument("--only", default=",".join(COMMANDS))
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not asked.check:
        if asked.printout is None:
            parser.error("needs the printout")
        asked.folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(asked.printout, asked.folder / PRINTOUT)
        (asked.folder / "cluster.yaml").write_text(cluster_of(PAGE.read_text()))
        for name in asked.only.split(","):
            kept[name] = run(COMMANDS[name], asked.folder)
            print(f"{name}: {kept[name]['wall_s']} s", flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        if "report" in asked.only.split(","):
            picture(asked.folder / "report.html")
    blocks = {f"production: {name}": block(result) for name, result in kept.items()}
    return update(PAGE, blocks, check=asked.check)


if __name__ == "__main__":
    raise SystemExit(main())
