"""The table of docs/replan.md, from the stored results.

``python -m benchmarks.drift.table [RESULT] [--check]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.drift.cases import CHANGES, subjects
from benchmarks.pages import command

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "replan.md"
HEAD = (
    "| model | change | again above fresh | certified gap, again (fresh) | moved, again (fresh) | "
    "seconds to the plan, again (fresh) | in all | verified |\n|---|---|---|---|---|---|---|---|"
)


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """The text of the page's block."""
    rows: dict[str, Any] = result["rows"]
    lines = [HEAD]
    for subject in subjects():
        pairs = [
            (change, rows[f"{subject}.{change}.fresh"], rows[f"{subject}.{change}.again"])
            for change in CHANGES
            if f"{subject}.{change}.fresh" in rows and f"{subject}.{change}.again" in rows
        ]
        lines += [_row(subject, *pair) for pair in pairs]
        drifts = [_above(fresh, again) for name, fresh, again in pairs if name.startswith("drift")]
        known = [value for value in drifts if value is not None]
        if known:
            lines.append(
                f"| {subject} | median of {len(known)} drifts | {median(known):+.2%} | | | | | |"
            )
    return {"drift": "\n".join([*lines, "", *_told(result)])}


def _row(subject: str, change: str, fresh: dict[str, Any], again: dict[str, Any]) -> str:
    above = _above(fresh, again)
    cells = [
        subject, change, "no plan" if above is None else f"{above:+.2%}",
        f"{_gap(again)} ({_gap(fresh)})", f"{_moved(again)} ({_moved(fresh)})",
        f"{_to_plan(again)} ({_to_plan(fresh)})", f"{again['wall_seconds']:.0f}",
        "yes" if again["verified"] else "no",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _above(fresh: dict[str, Any], again: dict[str, Any]) -> float | None:
    if fresh["objective"] is None or again["objective"] is None:
        return None
    return float(again["objective"] / fresh["objective"] - 1)


def _gap(row: dict[str, Any]) -> str:
    if row["objective"] is None or row["certified_bound"] is None:
        return "?"
    return f"{1 - row['certified_bound'] / row['objective']:.2%}"


def _moved(row: dict[str, Any]) -> str:
    return f"{row['moved_bytes'] / row['held_bytes']:.1%}" if row.get("held_bytes") else "?"


def _to_plan(row: dict[str, Any]) -> str:
    """When a plan within a ten-thousandth of the returned one's cost was first known."""
    if row["objective"] is None:
        return "?"
    near = row["objective"] * (1 + 1e-4)
    known = [seconds for seconds, value, *_ in row["trace"] if value is not None and value <= near]
    return f"{min(known):.1f}" if known else "?"


def _told(result: dict[str, Any]) -> Iterator[str]:
    rows = list(result["rows"].values())
    loads, shared = [row["load"] for row in rows], any(row["shared"] for row in rows)
    told = f", **shared with other work (load {min(loads):.0f} to {max(loads):.0f})**"
    yield (
        f"Measured {result['date']} on {rows[0]['cores']} cores{told if shared else ''}. Moved: "
        "share of the bytes of yesterday's tables. In all: pricing, search, certificate and its "
        "check."
    )


if __name__ == "__main__":
    raise SystemExit(command(__doc__, PAGE, HERE, blocks, pattern="results.json"))
