"""Where output goes: JSON or drawings to stdout, progress and warnings to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100


def out() -> Console:
    """Console on stdout, never wider than 100 columns so that pasted output stays readable."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.width > WIDTH or not console.is_terminal:
        console.width = WIDTH
    return console


def err() -> Console:
    """Console on stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def emit_json(value: object) -> None:
    """Print one JSON value on stdout."""
    json.dump(value, sys.stdout, indent=1)
    sys.stdout.write("\n")
