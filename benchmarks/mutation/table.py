"""Write the table and the list of changes that no test noticed into benchmarks/mutation/README.md.

``python benchmarks/mutation/table.py``; with ``--check`` the exit code tells whether it is current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from benchmarks.pages import update  # noqa: E402


def results() -> dict[str, dict[str, Any]]:
    """The stored result of every room."""
    return {path.stem: json.loads(path.read_text("utf-8"))
            for path in sorted((HERE / "results").glob("*.json"))}  # fmt: skip


def table(found: dict[str, dict[str, Any]]) -> str:
    """File by file: changes there are, tried, noticed, left."""
    lines = ["| room | file | changes | tried | noticed | left | measured |", "|---" * 7 + "|"]
    tried = noticed = 0
    for room, result in found.items():
        for path, file in result["files"].items():
            known, left = file.get("noticed", 0), file["tried"] - file.get("noticed", 0)
            tried, noticed = tried + file["tried"], noticed + known
            lines.append(
                f"| {room} | {path} | {file['changes']:,} | {file['tried']} | {known} | {left} | "
                f"{result['date']}, {result['commit']} |"
            )
    share = f"{noticed / tried:.0%}" if tried else "none"
    return "\n".join([*lines, "", f"Noticed in all: {noticed} of {tried} ({share})."])


def left(found: dict[str, dict[str, Any]]) -> str:
    """The changes that no test noticed, as diffs."""
    lines = list[str]()
    for result in found.values():
        for file in result["files"].values():
            for name, diff in file["left"].items():
                lines += [f"# {name}", *diff, ""]
    return "\n".join(["```diff", *lines[:-1], "```"])


def main() -> int:
    """Write, or with ``--check`` compare."""
    found = results()
    blocks = {
        "score: benchmarks/mutation/table.py": table(found),
        "left: benchmarks/mutation/table.py": left(found),
    }
    return update(HERE / "README.md", blocks, check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
