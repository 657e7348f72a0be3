"""Output: JSON or drawings go to stdout, progress and warnings to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from milp_planner.errors import printable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

WIDTH = 100


def out() -> Console:
    """Console on stdout, never wider than 100 columns so that pasted output stays readable."""
    console = _console()
    if console.width > WIDTH or not console.is_terminal:
        console.width = WIDTH
    return console


def err() -> Console:
    """Console on stderr."""
    return _console(stderr=True)


def _console(**options: bool) -> Console:
    """A console that prints text literally, without markup, emoji codes or escape sequences."""
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class Literal(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else printable(segment.text)
                yield segment._replace(text=text)

    return Literal(highlight=False, markup=False, emoji=False, **options)  # type: ignore[arg-type]


def tell(
    json: bool, value: Callable[[], object], drawn: Callable[[], Iterable[RenderableType]],
    *written: Path | None,
) -> None:  # fmt: skip
    """Print the answer as JSON, or draw it and name the files that were written."""
    if json:
        emit_json(value())
        return
    for part in drawn():
        out().print(part)
    for path in filter(None, written):
        out().print(f"written: {path}")


def emit_json(value: object) -> None:
    """Print one JSON value on stdout."""
    json.dump(value, sys.stdout, indent=1)
    sys.stdout.write("\n")
