"""Write the table of the newest (or a given) result into docs/bounds.md.

python benchmarks/rank-patterns/table.py [results/DATE.json]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command, stored

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "bounds.md"
BLOCK = "rank patterns: benchmarks/rank-patterns/table.py"


def table(document: dict[str, Any]) -> str:
    """Gap of every bound to the best plan known, per instance, as Markdown."""
    lines = [
        f"Measured {document['date']}, {document['machine']}, {document['seconds']:g} s each"
        f"{_busy(document)}.",
        "",
        "| options a table, seed | symmetric LP | pooled, integers | whole model, CP-SAT "
        "| rank patterns | s |",
        "|---|---|---|---|---|---|",
        *map(_row, document["rows"]),
    ]
    return "\n".join(lines)


def torchrec(document: dict[str, Any]) -> str:
    """What patterns made of the TorchRec instances left open, as one paragraph."""
    rows = document["rows"]
    said = [
        f"`{r['instance']}` " + ("no lift" if r["patterns"] is None else _gap(r, "patterns"))
        + f" ({r['rounds']} rounds)" for r in rows
    ]  # fmt: skip
    return (
        f"TorchRec instances with an open gap, {document['seconds']:g} s each ({document['date']}, "
        f"{document['machine']}{_busy(document)}): {', '.join(said)}."
    )


def blocks(document: dict[str, Any]) -> dict[str, str]:
    """The block of the page."""
    text = table(document)
    if any((HERE / "results").glob("torchrec-*.json")):
        text += "\n\n" + torchrec(stored(HERE / "results", "torchrec-*.json"))
    return {BLOCK: text}


def _busy(document: dict[str, Any]) -> str:
    load = document["load_before"]
    return f", beside other work (load {load:g})" if load > 2 else ""


def _row(row: dict[str, Any]) -> str:
    options, seed = row["instance"].split("-")[1:]
    gaps = [_gap(row, name) for name in ("lp", "pooled", "cpsat", "patterns")]
    open_ = "" if row["ended"] == "closed" else " (limit)"
    return f"| {options}, {seed} | {' | '.join(gaps)}{open_} | {row['pattern_seconds']:.1f} |"


def _gap(row: dict[str, Any], name: str) -> str:
    bound = row[name]
    return "no lift" if bound is None else f"{100 * (row['plan'] - bound) / row['plan']:.3g}%"


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, pattern="2*.json"))
