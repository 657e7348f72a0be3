"""Mutation score: do the tests notice when the code is changed?

``pip install -e '.[test]' mutmut`` and then ``nice -n 19 python benchmarks/mutation/run.py ROOM``.
`mutmut <https://mutmut.readthedocs.io>`_ changes one operator, constant, argument or text of a copy
of this checkout at a time and runs the room's tests that reach the changed function. For every
file it stores how many changes there are, how many were drawn and tried, how many a test noticed,
and the others as diffs. A change that makes a test run out of time (15 times what it takes, plus a
second) counts as noticed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from datetime import date
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results"

#: Every room: what is changed, and the tests that have to notice.
ROOMS = {
    "check": (
        ["formulations/result/check.py"],
        ["tests/formulations/result/test_check.py", "tests/formulations/test_brute_force.py"],
    ),
    "checker": (
        ["formulations/checker.py"],
        [f"tests/formulations/test_checker{part}.py"
         for part in ("", "_constraints", "_packing", "_page", "_plan", "_reading")],
    ),
    "model": (
        ["formulations/model/*"],
        ["tests/formulations/model", "tests/formulations/goals",
         "tests/formulations/test_fusion.py"],
    ),
    "pricing": (
        ["milp_planner/pricing/storage.py", "milp_planner/pricing/entries.py"],
        ["tests/milp_planner/plans/test_ledger.py", "tests/milp_planner/plans/test_moments.py",
         *(f"tests/milp_planner/pricing/test_{part}.py"
           for part in ("dynamicemb_storage", "ledger", "shard_bytes", "storage"))],
    ),
}  # fmt: skip

#: Left out: the first counts stack frames, of which mutmut adds one a call; the second runs the
#: checker where nothing is installed, not even mutmut.
LEFT_OUT = [
    "tests/formulations/test_checker_packing.py::test_too_many_sizes",
    "tests/formulations/test_checker_plan.py::test_stands_alone",
]

#: mutmut's exit codes of a change that no test noticed (mutmut/stats.py).
SURVIVED, UNREACHED = {0}, {5, 33}


def settings(room: str) -> str:
    """The section for mutmut that a copy's pyproject.toml gets."""
    changed, tests = ROOMS[room]
    arguments = ["-p", "no:cacheprovider", "-m", "not slow", *(f"--deselect={t}" for t in LEFT_OUT)]
    return f"""
[tool.mutmut]
source_paths = ["formulations", "milp_planner"]
only_mutate = {json.dumps(changed)}
also_copy = ["benchmarks", "cuda_routing", "docs", "scenarios"]
pytest_add_cli_args = {json.dumps(arguments)}
pytest_add_cli_args_test_selection = {json.dumps(tests)}
process_isolation = "forkserver"
track_dependencies = false
use_git_change_detection = false
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--each", type=int, default=60, help="changes drawn from every file")
    parser.add_argument("--minutes", type=float, help="end after these, and store what was tried")
    parser.add_argument("--seed", type=int, default=1, help="draws the changes")
    parser.add_argument("--folder", type=Path, help="where to work, and to go on if not empty")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="mutation-"))
    prepare(folder, args.room)
    there = {path: list(codes) for path in sources(folder, args.room)
             if (codes := exit_codes(folder, path))}  # fmt: skip
    random = Random(args.seed)
    drawn = {path: sorted(random.sample(every, min(args.each, len(every))))
             for path, every in there.items()}  # fmt: skip
    names = [name for some in drawn.values() for name in some]
    with suppress(subprocess.TimeoutExpired):
        mutmut(folder, "run", "--max-children", "1", *names, minutes=args.minutes)
    result = {
        "date": f"{date.today()}",
        "commit": git("rev-parse", "--short", "HEAD").strip(),
        "mutmut": version("mutmut"),
        "seed": args.seed,
        "files": {path: judged(folder, path, len(there[path]), drawn[path]) for path in there},
    }
    output = RESULTS / f"{args.room}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def prepare(folder: Path, room: str) -> None:
    """Copy the checkout, unless it is there, and let mutmut write all changes into its copy."""
    if not (folder / "mutants").exists():
        for name in git("ls-files", "-z").split("\0")[:-1]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(settings(room))
        mutmut(folder, "run", "--max-children", "1", "*__mutmut_1")


def sources(folder: Path, room: str) -> list[str]:
    """The files that mutmut changes, as paths in the checkout."""
    return sorted(str(p.relative_to(folder)) for glob in ROOMS[room][0] for p in folder.glob(glob)
                  if p.suffix == ".py")  # fmt: skip


def exit_codes(folder: Path, path: str) -> dict[str, int | None]:
    """How the tests ended, by change; None for one not tried."""
    meta = folder / "mutants" / f"{path}.meta"
    if not meta.exists():
        return {}
    codes: dict[str, int | None] = json.loads(meta.read_text())["exit_code_by_key"]
    return codes


def judged(folder: Path, path: str, there: int, drawn: list[str]) -> dict[str, Any]:
    """What became of the changes of one file."""
    codes = exit_codes(folder, path)
    tried = [name for name in drawn if codes[name] is not None]
    kinds = Counter("survived" if codes[n] in SURVIVED else
                    "unreached" if codes[n] in UNREACHED else "noticed" for n in tried)  # fmt: skip
    left = [name for name in tried if codes[name] in SURVIVED | UNREACHED]
    return {"changes": there, "tried": len(tried), **kinds,
            "left": {name: diff(folder, name) for name in left}}  # fmt: skip


def diff(folder: Path, name: str) -> list[str]:
    """The changed lines of one change."""
    shown = mutmut(folder, "show", name).splitlines()
    return [line for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def mutmut(folder: Path, *arguments: str, minutes: float | None = None) -> str:
    """Run mutmut in the copy; TimeoutExpired after so many minutes."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    limit = None if minutes is None else 60 * minutes
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=limit)
    if done.returncode:
        sys.exit(f"mutmut {arguments[0]}: exit {done.returncode}\n{done.stdout[-5000:]}")
    return done.stdout


def git(*arguments: str) -> str:
    """What git prints about this checkout."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
