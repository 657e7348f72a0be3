"""The tables of docs/replan.md, from the stored results.

``python -m benchmarks.drift.table [RESULT] [--check]``; RESULT is what default settings gave.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.drift.cases import CHANGES, subjects
from benchmarks.pages import command
from milp_planner.drawing.units import show_bytes

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "replan.md"
HEAD = (
    "| model | change | again above fresh | certified gap, again (fresh) | moved, again (fresh) | "
    "seconds to the plan, again (fresh) | in all | verified |\n|---|---|---|---|---|---|---|---|"
)
FEW = (
    "| model | change | moved before | moved now | at least | given up | "
    "certified gap now (before) |\n|---|---|---|---|---|---|---|"
)


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """The text of the page's blocks."""
    limited, before = (
        json.loads((HERE / name).read_text(encoding="utf-8"))
        for name in ("limited.json", "before.json")
    )
    return {"drift": "\n".join(_limited(limited)), "few": "\n".join(_few(result, before))}


def _few(result: dict[str, Any], before: dict[str, Any]) -> Iterator[str]:
    """Moved bytes with default settings, and at the commit before few moves were the default."""
    then = before["rows"]
    now = {name: row for name, row in result["rows"].items() if name.endswith(".again")}
    yield FEW
    for name, row in now.items():
        subject, change, _ = name.split(".")
        value = row["before_goals"] or row["objective"]
        least = row["goals"][0][2]
        known = name in then
        cells = [
            subject, change, _bytes(then[name]) if known else "", _bytes(row),
            "?" if least is None else show_bytes(least),
            f"{row['objective'] / value - 1:.2%}",
            f"{_gap(row)} ({_gap(then[name])})" if known else _gap(row),
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    same = [name for name in now if name in then]
    yield f"| | median of {len(now)} | | {_median(now.values())} | | | |"
    if same:
        sides = _median(then[name] for name in same), _median(now[name] for name in same)
        yield f"| | median of the {len(same)} with both | {' | '.join(sides)} | | | |"
    yield ""
    cores = {row["cores"] for row in now.values()}
    yield (
        f"Measured {result['date']} on {max(cores)} cores, 60 s each. Before: commit "
        "c1890ead, with its own prices and plans of yesterday. Moved: bytes, and their share of "
        "yesterday's tables. Given up: objective above the best plan found."
    )


def _median(rows: Iterable[dict[str, Any]]) -> str:
    """Median share of moved bytes."""
    return f"{median(row['moved_bytes'] / row['held_bytes'] for row in rows):.1%}"


def _bytes(row: dict[str, Any]) -> str:
    return f"{show_bytes(row['moved_bytes'])} ({_moved(row)})"


def _limited(result: dict[str, Any]) -> Iterator[str]:
    """Within limits on moves, beside a fresh solve."""
    rows: dict[str, Any] = result["rows"]
    yield HEAD
    for subject in subjects():
        pairs = [
            (change, rows[f"{subject}.{change}.fresh"], rows[f"{subject}.{change}.again"])
            for change in CHANGES
            if f"{subject}.{change}.fresh" in rows and f"{subject}.{change}.again" in rows
        ]
        yield from (_row(subject, *pair) for pair in pairs)
        drifts = [_above(fresh, again) for name, fresh, again in pairs if name.startswith("drift")]
        known = [value for value in drifts if value is not None]
        if known:
            yield f"| {subject} | median of {len(known)} drifts | {median(known):+.2%} | | | | | |"
    yield ""
    yield from _told(result)


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
    raise SystemExit(command(__doc__, PAGE, HERE, blocks, pattern="default.json"))
