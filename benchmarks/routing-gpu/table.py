"""Table of the newest GPU result: ``python benchmarks/routing-gpu/table.py``.

Writes the marked blocks of docs/routing/speed.md; with ``--check`` the exit code tells whether the
page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "routing" / "speed.md"


def machine(result: dict[str, Any]) -> str:
    """Where and when, in a sentence."""
    return (
        f"Measured {result['date']} on one {result['device']}, torch {result['torch']}; a copy "
        f"on the device moves {result['copy_bytes_s'] / 1e12:.2f} TB/s, read and written together."
    )


def rates(result: dict[str, Any]) -> str:
    """Every cell, a line each."""
    lines = [
        "| keys | row length | ranks | dist_type | µs | Gkeys/s | of copy bandwidth | "
        "row-serial ÷ ours | sort ÷ ours |",
        "|---" * 9 + "|",
    ]
    for c in result["cells"]:
        lines.append(
            f"| {c['keys']:,} | {c['row_length']} | {c['ranks']} | {c['rule']} | "
            f"{c['ours_us']:,.0f} | {c['gkeys_s']:.1f} | {c['share_of_copy']:.0%} | "
            f"{times(c['row_serial_us'], c['ours_us'])} | {times(c['sort_us'], c['ours_us'])} |"
        )
    return "\n".join(lines)


def times(theirs: float | None, ours: float) -> str:
    """How many times as long, empty where it was not measured."""
    return f"{theirs / ours:.1f}" if theirs else ""


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """Text of both blocks, by name."""
    return {"gpu machine": machine(result), "gpu rates": rates(result)}


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks))
