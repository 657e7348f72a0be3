"""Run the commands shown in a docs page and write what they print below them.

``python benchmarks/console.py docs/explain.md`` runs the page's fenced blocks in order, in an empty
folder with a link to ``scenarios``. A block marked ``sh`` is a script, run for the files it writes.
In one marked ``console`` the output below each ``$ milp-planner …`` line is replaced.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(script: str, folder: Path) -> str:
    """What a script prints on stdout, without colours, 100 columns wide."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PATH": path}
    print(script.strip(), flush=True)
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):  # 1: infeasible, or the target is missed
        sys.exit(f"exit {done.returncode}: {done.stderr.strip()}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines()) + "\n"


def block(kind: str, text: str, folder: Path) -> str:
    """One fenced block, with fresh output where it shows any."""
    if kind == "sh":
        run(text, folder)
        return text
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{run(line[2:], folder)}" for line in commands)


def main(page: Path) -> None:
    """Rewrite the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scenarios").symlink_to(ROOT / "scenarios")
        old = page.read_text(encoding="utf-8")
        new = FENCE.sub(lambda m: f"```{m[1]}\n{block(m[1], m[2], folder)}```", old)
    page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
