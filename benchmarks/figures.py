"""Measure again the figures that a change touched: ``make figures``, or this file with Python.

A page, or a part of one, names in benchmarks/figures.yaml what its figures depend on (``needs``).
It is measured when the code or data there has changed since its commit (documentation, docstrings
and comments do not count); with ``--all`` everything is, with ``--only PAGE#PART …`` what is named.
``--list`` only shows what would run, and how long each took last time. Stored results that a
benchmark would add to are removed first (``fresh``). The commands run in order. One that was done
at the same commit is not repeated, so a run that was interrupted, or ended at a failing command,
resumes where it stopped. When a part is done, its date, commit, machine and duration go to
benchmarks/figures.json and below its figures. It is left out if one of its commands needs a folder
that is not given.

``--behind`` measures nothing and names the pages that a change touched. Its exit code is 0 only if
there is none, as a release should be.
"""

import argparse
import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import update  # noqa: E402
from milp_planner.features.calibrate.machine import processor  # noqa: E402


@dataclass(frozen=True)
class Step:
    """A page, or a part of one, and the commands that measure and write its figures."""

    name: str
    """The page's path; with ``#PART`` where a page has several parts of figures."""
    run: tuple[str, ...]
    minutes: float | None = None
    fresh: tuple[str, ...] = ()
    """Patterns of files and folders that the commands would only complete."""
    needs: tuple[str, ...] = ()
    """Files and folders of the product that its figures depend on."""

    @property
    def page(self) -> str:
        """The page that holds the figures."""
        return self.name.partition("#")[0]

    @property
    def block(self) -> str:
        """The block of the page that says when they were measured."""
        part = self.name.partition("#")[2]
        return f"measured{part and ' ' + part}: benchmarks/figures.py"

    def commands(self, given: Mapping[str, str | None]) -> list[str] | None:
        """The commands with their placeholders filled in; None if one is not given."""
        known = {key: value for key, value in given.items() if value is not None}
        try:
            return [command.format(**known) for command in self.run]
        except KeyError:
            return None


def steps(path: Path) -> list[Step]:
    """The pages and parts of benchmarks/figures.yaml, in order."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Step(
            "#".join(filter(None, (each["page"], each.get("part")))),
            tuple(each["run"]),
            each.get("minutes"),
            tuple(each.get("fresh", ())),
            tuple(chain.from_iterable(each["needs"])),
        )
        for each in found
    ]


class Figures:
    """The steps of a checkout and what is known of them.

    Parameters
    ----------
    root : Path
        The checkout.
    commit : str
    """

    def __init__(self, root: Path, commit: str) -> None:
        self.root, self.commit = root, commit
        self.steps = steps(root / "benchmarks" / "figures.yaml")
        self._stored, self._done = (
            root / "benchmarks" / "figures.json",
            root / "out" / "figures.json",
        )
        self.known: dict[str, dict[str, Any]] = read(self._stored)

    def takes(self, step: Step) -> str:
        """How long a step takes: as measured, else as its README says."""
        seconds = self.known.get(step.name, {}).get("seconds")
        if seconds is not None:
            return f"{seconds / 60:.1f} min"
        return "not timed" if step.minutes is None else f"about {step.minutes:g} min"

    def measure(self, step: Step, commands: list[str]) -> int:
        """Run the commands that are not done at this commit; the exit code of the last."""
        pages = read(self._done).get(self.commit, {})
        done: dict[str, float] = pages.setdefault(step.name, {})  # pages may share a command
        if not done:
            patterns = [pattern.format(today=date.today()) for pattern in step.fresh]
            for path in [path for pattern in patterns for path in self.root.glob(pattern)]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            done["removed"] = 0.0
            write(self._done, {self.commit: pages})
        for command in commands:
            if command in done:
                print(f"   done before: {command}", flush=True)
                continue
            print(f"   {command}", flush=True)
            begun = time.perf_counter()
            code = subprocess.run(shlex.split(command), cwd=self.root, env=environment()).returncode
            if code:
                return code
            done[command] = round(time.perf_counter() - begun, 1)
            write(self._done, {self.commit: pages})
        self.known[step.name] = {
            "date": f"{date.today()}", "commit": self.commit,
            "machine": f"{os.cpu_count()} cores, {processor()}",
            "seconds": sum(done[command] for command in commands),
        }  # fmt: skip
        write(self._stored, self.known)
        return 0

    def apart(self, commit: str) -> dict[str, str]:
        """Pages whose figures depend on what differs at a commit, and why."""
        reasons = {step.name: self._other(step, commit) for step in self.steps}
        return {page: why for page, why in reasons.items() if why}

    def _other(self, step: Step, commit: str) -> str:
        """Why a page's figures may differ at a commit; empty if they cannot."""
        known = self.known.get(step.name)
        if not known:
            return "never measured"
        changed = changes(self.root, known["commit"], commit, step.needs)
        if changed is None:
            return f"measured at {known['commit']}, which this history does not have"
        said = f"measured {known['date']} at {known['commit']}; files that differ: {len(changed)}"
        return said if changed else ""

    def origin(self, step: Step) -> str:
        """When a page was measured, at which commit, by what, and how to do it again."""
        known = self.known[step.name]
        shown = ", ".join(f"`{command}`" for command in step.run)
        return (
            f"Measured {known['date']}, commit {known['commit']}, {known['machine']}. "
            f"Again: {shown} ({self.takes(step)})."
        )

    def sign(self, step: Step, *, check: bool = False) -> int:
        """Write that below the figures, or only say by 1 that it is out of date there."""
        page = self.root / step.page
        if f"<!-- {step.block} -->" not in page.read_text(encoding="utf-8"):
            return 0  # README, whose tables say it themselves
        return update(page, {step.block: self.origin(step)}, check=check)


def changes(root: Path, before: str, after: str, needs: Sequence[str]) -> list[str] | None:
    """Files in which more than documentation differs between two commits, of those that are needed.

    None if the history has not both.
    """
    command = ["git", "diff", "--name-only", before, after, "--", *needs, ":(exclude)*.md"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if found.returncode:
        return None

    def code(commit: str, name: str) -> str | None:
        """A Python file without comments and docstrings; None if it is not there."""
        shown = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=root, capture_output=True)
        return None if shown.returncode else without_documentation(shown.stdout.decode("utf-8"))

    return [
        name for name in found.stdout.splitlines()
        if not name.endswith(".py") or code(before, name) != code(after, name)
    ]  # fmt: skip


def without_documentation(source: str) -> str:
    """What Python code says to Python: its syntax tree without strings that stand alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [
                each for each in node.body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]  # fmt: skip
    return ast.dump(tree)


def read(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no file."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def write(path: Path, document: dict[str, Any]) -> None:
    """Write JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def environment() -> dict[str, str]:
    """This process's environment, with this Python and its milp-planner first in the path."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show what would run, and run nothing")
    parser.add_argument("--all", action="store_true", help="every page, not only those behind")
    parser.add_argument(
        "--only", nargs="+", metavar="PAGE", help="pages whose path contains one of these"
    )
    parser.add_argument("--instances", help="folder of the torchrec_*.json.gz instances")
    parser.add_argument("--lists", help="folder of published table lists and known instances")
    parser.add_argument("--rebalancer", help="a Python that has Meta's Rebalancer")
    parser.add_argument("--check", action="store_true", help="only say whether pages say when")
    parser.add_argument(
        "--behind", action="store_true", help="only name pages that a change touched"
    )
    args = parser.parse_args(arguments)
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    figures = Figures(ROOT, head.stdout.strip())
    if args.check:
        return int(any(figures.sign(step, check=True) for step in figures.steps))
    behind = figures.apart("HEAD") if args.behind or not (args.all or args.only) else {}
    if args.behind:
        print("\n".join(f"{page}: {why}" for page, why in behind.items()) or "no page is behind")
        return int(bool(behind))
    given = {
        "today": f"{date.today()}",
        "instances": args.instances,
        "rebalancer": args.rebalancer,
        "lists": args.lists,
    }
    pages = [step.name for step in figures.steps]
    for part in args.only or ():
        if not any(part in page for page in pages):
            parser.error(f"--only {part}: no page is called so; pages: {', '.join(pages)}")
    for step in figures.steps:
        wanted = step.name in behind or args.all
        if not (any(part in step.name for part in args.only) if args.only else wanted):
            continue
        commands = step.commands(given)
        print(f"== {step.name} ({figures.takes(step)})", flush=True)
        if commands is None:
            print("   left out: it needs --instances, --lists or --rebalancer")
        elif args.list:
            print("\n".join(f"   {command}" for command in commands))
        elif code := figures.measure(step, commands):
            print(f"exit code {code}; the same command goes on here")
            return code
        else:
            figures.sign(step)
    return 0


if __name__ == "__main__":
    sys.exit(main())
