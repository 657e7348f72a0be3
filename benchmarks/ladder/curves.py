"""Figures of a ladder row: gap over time, time to a gap, and how that grows."""

from __future__ import annotations

from typing import Any

import numpy as np

Row = dict[str, Any]


#: Above this load at the start of a run, other work was running (a run before it leaves 2).
_BUSY = 3.5


def busy(row: Row) -> bool:
    """Whether a row was measured beside other work, so that its times are upper limits."""
    return bool(row["load_before"] > _BUSY)


def gap_curve(row: Row) -> tuple[list[float], list[float]]:
    """Seconds and gap (percent) at every point of the trace where plan and bound are known."""
    seconds, gaps = [], []
    best, bound = None, None
    for at, objective, lower, _ in row["trace"]:
        best = objective if best is None or (objective is not None and objective < best) else best
        bound = lower if bound is None or (lower is not None and lower > bound) else bound
        if best is not None and bound is not None:
            seconds.append(at)
            gaps.append(100 * (best - bound) / max(1, abs(best)))
    return seconds, gaps


def time_to(row: Row, percent: float) -> float | None:
    """Seconds until the gap was at most ``percent``; None: never."""
    for at, gap in zip(*gap_curve(row), strict=True):
        if gap <= percent:
            return float(at)
    return None


def growth(rows: list[Row], percent: float = 1.0) -> dict[str, Any] | None:
    """Exponents of the least-squares fit seconds ~ c · tables^a · ranks^b.

    Returns
    -------
    dict or None
        ``tables`` and ``ranks`` (a, b), ``explained`` (share of the variance of the logarithms),
        ``size`` (exponent of tables × ranks alone) and ``runs`` (those that reached the gap); None
        with fewer than four.
    """
    reached = [(r["tables"], r["ranks"], time_to(r, percent)) for r in rows]
    points = [(t, n, s) for t, n, s in reached if s is not None and s > 0]
    if len(points) < 4:
        return None
    tables, ranks, seconds = (np.log(np.asarray(column)) for column in zip(*points, strict=True))
    ones = np.ones_like(tables)
    columns = np.column_stack([tables, ranks, ones])
    both = np.linalg.lstsq(columns, seconds, rcond=None)[0]
    left = float(np.var(seconds - columns @ both) / np.var(seconds))
    size = np.polyfit(tables + ranks, seconds, 1)[0]
    return {
        "tables": float(both[0]), "ranks": float(both[1]), "explained": 1 - left,
        "size": float(size), "runs": len(points),
    }  # fmt: skip
