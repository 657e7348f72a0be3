"""Write stored results between the marks of a page.

A block of a page begins with ``<!-- NAME -->`` and ends with ``<!-- end -->``, each on a line of
its own.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def stored(source: Path, pattern: str = "*.json") -> dict[str, Any]:
    """A stored result; of a folder the newest, as file names begin with their date."""
    path = max(source.glob(pattern)) if source.is_dir() else source
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def replaced(page: str, blocks: Mapping[str, str]) -> str:
    """The page with new text in the named blocks.

    Raises
    ------
    ValueError
        For a block that the page does not hold exactly once, or that has no end.
    """
    for name, text in blocks.items():
        begin, end = f"<!-- {name} -->\n", "\n<!-- end -->"
        head, *rest = page.split(begin)
        if len(rest) != 1:
            raise ValueError(f"the page holds {begin.strip()} {len(rest)} times, not once")
        old, mark, tail = rest[0].partition(end)
        if not mark or "<!-- " in old:
            raise ValueError(f"{begin.strip()} has no {end.strip()}")
        page = f"{head}{begin}{text}{end}{tail}"
    return page


def update(path: Path, blocks: Mapping[str, str], *, check: bool = False) -> int:
    """Write the page anew, or only say by the exit code (1) that it is out of date."""
    old = path.read_text(encoding="utf-8")
    new = replaced(old, blocks)
    if check:
        return int(new != old)
    path.write_text(new, encoding="utf-8")
    return 0


def command(
    about: str | None,
    page: Path,
    results: Path,
    blocks: Callable[[dict[str, Any]], Mapping[str, str]],
    draw: Callable[[dict[str, Any]], None] | None = None,
    pattern: str = "*.json",
) -> int:
    """The command line of a script that shows a stored result: ``[RESULT] [--check]``.

    Parameters
    ----------
    about
        Its help.
    page
        The page that holds the blocks.
    results
        Folder of results, the newest of which (with ``pattern``) is the default.
    blocks, draw
        The text of every block, and the figure, from the result.

    Returns
    -------
    int
        Exit code: 1 with ``--check``, which writes nothing, when the page is out of date.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("result", type=Path, nargs="?", help="default: the newest")
    parser.add_argument("--check", action="store_true", help="only tell whether it is up to date")
    given = parser.parse_args()
    document = stored(given.result or results, pattern)
    if draw is not None and not given.check:
        draw(document)
    return update(page, blocks(document), check=given.check)
