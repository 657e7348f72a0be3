"""Invented records of a batch."""

import random
from typing import Any


def record(**changes: Any) -> dict[str, Any]:
    """One record as a run writes it."""
    return {
        "key": "k", "suite": "s", "model": "m", "cluster": "c", "axes": {},
        "objective_kind": "total", "formulation": "dp", "options": {}, "seed": 0,
        "status": "feasible", "objective": 10**9, "bound": None, "bound_source": None,
        "gap": None, "headroom": {"hbm": 0.25}, "seconds": 0.5, "pricing_seconds": 0.1,
        "note": "", "error": None, "versions": {"milp-planner": "1"}, "finished": "2026-01-01",
        **changes,
    }  # fmt: skip


def proved(objective: int, **changes: Any) -> dict[str, Any]:
    """A record whose plan is proved in integers."""
    return record(status="optimal", objective=objective, bound=objective, gap=0.0,
                  bound_source="cpsat, exact", formulation="cpsat", **changes)  # fmt: skip


def failed(**changes: Any) -> dict[str, Any]:
    """A record of an error."""
    error = {"type": "BadInput", "message": "<b>no</b> such thing", "traceback": ""}
    whole = record(status="failed", error=error, **changes)
    for name in ("objective", "bound", "gap", "headroom", "seconds", "pricing_seconds", "note"):
        del whole[name]
    return whole


def many(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Two memories per model; for every instance, the heuristic's bins and two proofs."""
    draw = random.Random(seed)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        best = draw.randrange(10**8, 10**11)
        instance, pair = len(found) // 5, len(found) // 10
        where = {
            "model": f"generated:tables={4 + 7 * pair % 96},seed={pair},kind=mixed",
            "axes": {"hbm": [2**28, 2**30][instance % 2], "growth": ["0", "50"][pair // 2 % 2]},
            "objective_kind": ["total", "busiest_rank"][pair % 2],
        }
        for bins in (10, 100, 400):
            worse = best if draw.random() < 0.4 else int(best * (1 + draw.random() ** 4))
            found.append(record(objective=worse, options={"hbm_bins_per_device": bins},
                                seconds=draw.random(), **where))  # fmt: skip
        found.append(record(formulation="mip", status="optimal", objective=best, bound=best,
                            gap=0.0, bound_source="highs, floating point",
                            seconds=3 * draw.random(), **where))  # fmt: skip
        found.append(proved(best, seconds=2 * draw.random(), **where))
    return found[:count]
