"""Pictures of docs/report.md: ``python benchmarks/suites/pictures.py``.

Renders the pages of the newest stored runs of dp-vs-exact and growth, and of the newest stored
comparison; they are not solved anew. Needs Chromium with chromedriver, and poppler (``pdftoppm``).
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.screenshots import TARGET, save, theme  # noqa: E402
from tests.milp_planner.features.browser import browser  # noqa: E402

SHOTS = (
    ("batch-light", "batch", "light", "profiles", 545),
    ("batch-dark", "growth", "dark", "sweeps", 500),
    ("batch-rows", "batch", "light", "every", 415),
    ("compare", "compare", "light", "", 1010),
)
"""File, page, theme, heading to begin with, height in pixels."""
PRINTED = 5
"""The printed page that is shown: the first of the long table."""


def main() -> None:
    """Render, picture, print."""
    runs = sorted(HERE.glob("dp-vs-exact/*/suite.json"))
    growth = sorted(HERE.glob("growth/*/suite.json"))
    sources = {
        "batch": runs[-1].parent,
        "growth": growth[-1].parent,
        "compare": sorted(HERE.glob("compare/*.json"))[-1],
    }
    with tempfile.TemporaryDirectory() as name, browser() as session:
        folder = Path(name)
        for page, source in sources.items():
            command = [sys.executable, "-m", "milp_planner.cli.main", "report", str(source), "-o"]
            subprocess.run([*command, str(folder / f"{page}.html")], check=True)
        for file, page, scheme, heading, height in SHOTS:
            theme(session, scheme)
            session.open((folder / f"{page}.html").as_uri())
            save(session, file, heading, height)
        session.open((folder / "batch.html").as_uri())
        found = session.devtools("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        (folder / "batch.pdf").write_bytes(base64.b64decode(found["data"]))
        one = ["-f", str(PRINTED), "-l", str(PRINTED), "-singlefile"]
        _run("pdftoppm", "-r", "70", "-png", *one, str(folder / "batch.pdf"),
             str(TARGET / "batch-print"))  # fmt: skip


def _run(*words: str) -> None:
    subprocess.run([*words], check=True)


if __name__ == "__main__":
    main()
