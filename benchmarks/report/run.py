"""Pages of real plans: their sizes, and the screenshots of docs/report.md.

``python benchmarks/report/run.py`` plans, explains, renders, measures and takes the pictures;
``--pictures`` only renders and takes pictures of what an earlier run left in ``--folder``.
Needs Chromium with chromedriver, and poppler (``pdftoppm``, ``pdfinfo``).
"""

from __future__ import annotations

import argparse
import base64
import datetime
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import update  # noqa: E402
from benchmarks.screenshots import TARGET, fewer_colours, save, theme  # noqa: E402
from tests.milp_planner.features.browser import browser  # noqa: E402

HERE = Path(__file__).parent
DOCS = ROOT / "docs"
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
    Case("small", "kuairand-27k", "1xa10", 30, {
        "frontier": [], "sensitivity": ["--draws", "8"],
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
    Shot("dark", "small", "dark", "frontier", 900),
    Shot("infeasible", "infeasible", "dark", "", 700),
    Shot("heat", "large", "light", "memory", 700),
)
PRINTED = ("tight", 2)
"""The case and the page of it that the print preview shows."""


def main() -> None:
    """Plan, explain, render, measure, picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/milp-planner-report"))
    parser.add_argument("--pictures", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    sizes = [measured(case, asked.folder, asked.pictures) for case in CASES]
    pictures(asked.folder)
    for size in sizes:
        pdf = (asked.folder / f"{size['case']}.pdf").read_bytes()
        size["printed_pages"] = len(re.findall(rb"/Type\s*/Page(?![a-zA-Z])", pdf))
    today = datetime.date.today().isoformat()
    (HERE / "results.json").write_text(json.dumps({"date": today, "pages": sizes}, indent=1) + "\n")
    write_sizes(sizes)


def measured(case: Case, folder: Path, keep: bool) -> dict[str, Any]:
    """Make one case's plan, answers and page; their sizes."""
    plan = folder / f"{case.name}.json"
    answers = [folder / f"{case.name}-{question}.json" for question in case.questions]
    if not keep:
        limit = ["--time-limit", str(case.seconds // 2)]
        _planner("plan", case.model, case.cluster, "--time-limit", str(case.seconds),
                 "-o", str(plan))  # fmt: skip
        for path, (question, options) in zip(answers, case.questions.items(), strict=True):
            words = ("explain", str(plan), "--ask", question, *options, *limit, "--json")
            path.write_text(_planner(*words))
    page = folder / f"{case.name}.html"
    _planner("report", str(plan), *map(str, answers), "-o", str(page))
    info = json.loads(_planner("report", str(plan), "--json"))
    return {
        "case": case.name,
        "plan": f"{case.model} on {case.cluster}",
        "tables": 0 if info["tables"] is None else len(info["tables"]["rows"]),
        "ranks": info["num_ranks"],
        "status": info["verdict"]["status"],
        "answers": list(case.questions),
        "bytes": page.stat().st_size,
    }


def _planner(*words: str) -> str:
    """Standard output of a command; exit code 1 is an answer too."""
    print("milp-planner", *words, flush=True)
    done = subprocess.run([*_ENVIRONMENT, *words], capture_output=True, text=True, cwd=ROOT)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr)
    return done.stdout


def pictures(folder: Path) -> None:
    """Every screenshot, and every page printed."""
    with browser() as session:
        for shot in SHOTS:
            theme(session, shot.scheme)
            session.open((folder / f"{shot.case}.html").resolve().as_uri())
            save(session, shot.file, shot.heading, shot.height)
        for case in CASES:
            session.open((folder / f"{case.name}.html").resolve().as_uri())
            found = session.devtools("Page.printToPDF", printBackground=True, paperWidth=8.27,
                                     paperHeight=11.69, preferCSSPageSize=True)  # fmt: skip
            (folder / f"{case.name}.pdf").write_bytes(base64.b64decode(found["data"]))
    name, page = PRINTED
    _out("pdftoppm", "-r", "80", "-png", "-singlefile", "-f", str(page), "-l", str(page),
         folder / f"{name}.pdf", folder / "print")  # fmt: skip
    (TARGET / "print.png").write_bytes(fewer_colours((folder / "print.png").read_bytes()))


def write_sizes(sizes: list[dict[str, Any]]) -> None:
    """The table of docs/report.md, between its marks."""
    lines = [
        "| plan | tables | ranks | answers | page | sheets of A4 |",
        "|---|---|---|---|---|---|",
    ]
    for size in sizes:
        answers = ", ".join(size["answers"]) or "none"
        lines.append(
            f"| {size['plan']} ({size['status']}) | {size['tables']:,} | {size['ranks']} | "
            f"{answers} | {size['bytes'] / 1000:.0f} KB | {size['printed_pages']} |"
        )
    update(DOCS / "report.md", {"sizes": "\n".join(lines)})


def _out(*words: str | Path) -> str:
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
