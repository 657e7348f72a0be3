"""The screenshots of docs/report.md.

``python benchmarks/report/run.py`` plans, explains, renders and takes the pictures; ``--pictures``
only renders and takes pictures of what an earlier run left in ``--folder``.
Needs Chromium with chromedriver.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.screenshots import save, theme  # noqa: E402
from tests.milp_planner.features.browser import browser  # noqa: E402

_ENVIRONMENT = [sys.executable, "-m", "milp_planner.cli.main"]


@dataclass(frozen=True)
class Case:
    """One plan and what is asked about it; answers are limited to half its seconds each."""

    name: str
    model: str
    cluster: str
    seconds: int
    questions: dict[str, list[str]] = field(default_factory=dict)


CASES = (
    Case("tight", "dlrmv4-yambda5b", "8xb200-tight", 60, {
        "why": [], "frontier": [], "smallest": [],
        "sensitivity": ["--draws", "8"],
    }),
    Case("infeasible", "dlrmv4-yambda5b", "1xa10", 20),
    Case("large", "generated:tables=1000,seed=0,kind=torchrec", "16x8xh100", 60),
)  # fmt: skip


@dataclass(frozen=True)
class Shot:
    """A picture: of a page from one heading, so many pixels high."""

    file: str
    case: str
    scheme: str
    heading: str
    height: int


SHOTS = (
    Shot("light", "tight", "light", "", 1380),
    Shot("infeasible", "infeasible", "dark", "", 700),
    Shot("heat", "large", "light", "memory", 700),
)


def main() -> None:
    """Plan, explain, render, picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/milp-planner-report"))
    parser.add_argument("--pictures", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        make(case, asked.folder, asked.pictures)
    with browser() as session:
        for shot in SHOTS:
            theme(session, shot.scheme)
            session.open((asked.folder / f"{shot.case}.html").resolve().as_uri())
            save(session, shot.file, shot.heading, shot.height)


def make(case: Case, folder: Path, keep: bool) -> None:
    """Make one case's plan, answers and page."""
    plan = folder / f"{case.name}.json"
    answers = [folder / f"{case.name}-{question}.json" for question in case.questions]
    if not keep:
        limit = ["--time-limit", str(case.seconds // 2)]
        _planner("plan", case.model, case.cluster, "--time-limit", str(case.seconds),
                 "-o", str(plan))  # fmt: skip
        for path, (question, options) in zip(answers, case.questions.items(), strict=True):
            words = ("explain", str(plan), "--ask", question, *options, *limit, "--json")
            path.write_text(_planner(*words))
    _planner("report", str(plan), *map(str, answers), "-o", str(folder / f"{case.name}.html"))


def _planner(*words: str) -> str:
    """Standard output of a command; exit code 1 is an answer too."""
    print("milp-planner", *words, flush=True)
    done = subprocess.run([*_ENVIRONMENT, *words], capture_output=True, text=True, cwd=ROOT)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
