"""Planning again, with one number of :mod:`formulations.search.near` changed at a time.

Yesterday's plan is a counted solve. Overnight some tables have grown and some are new, as in
benchmarks/drift, and few bytes may move. Without a clock the length of a pass is fixed, so every
run repeats exactly.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.ablation.parts import Variant
from formulations import Instance, Placement, Settings, read_instance, solve
from formulations.instance import Current
from formulations.result.certificate import Certificate
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.search import near
from formulations.search.numbers import NEAR

#: Units of yesterday's solve; share of the tables that grow, by how much, and how many are new.
_UNITS, _GROWING, _GROWTH, _NEW = 6.0, 0.05, 1.2, 3
#: Share of the bytes that may move.
_MAY_MOVE = 0.09


def _variant(name: str, how: str, value: Any) -> Variant:
    changed = replace(NEAR, **{name: value})
    return Variant(f"{name} {how}", switch=lambda: patch.object(near, "NEAR", changed))


def _step(name: str, method: str) -> Variant:
    """A step of the search that gives back the plan it was given."""

    def same(_: near._Search, plan: Placement, *given: object) -> Placement:
        return plan

    return Variant(name, switch=lambda: patch.object(near._Search, method, same))


def variants() -> tuple[Variant, ...]:
    """What is taken out, halved and doubled."""
    off = {
        "tries": NEAR.tries[-1:], "patience": 1, "less": 1.0, "weak": 0.0, "worth": 1e9, "room": 0,
    }  # fmt: skip
    scaled = ("moves", "tables", "patience", "step", "longest", "worth")
    found = [_variant(name, "off", value) for name, value in off.items()]
    found += [_step("new tables first", "_chosen"), _step("tables that go home", "_homed")]
    for how, factor in (("halved", 0.5), ("doubled", 2.0)):
        for name in scaled:
            now = getattr(NEAR, name)
            value = now * factor if isinstance(now, float) else max(1, int(now * factor))
            found.append(_variant(name, how, value))
        heats = tuple(factor * heat for heat in NEAR.heats)
        found.append(_variant("heats", how, heats))
    return tuple(found)


@cache
def _yesterday(path: Path) -> tuple[Instance, Placement, Certificate | None]:
    """An instance whose shards move with all their bytes, its plan and its multipliers."""
    plain = read_instance(path)
    instance = replace(plain, shard_move=plain.shard_use.sum(axis=1))
    outcome = solve(instance, "auto", Settings(work_limit=_UNITS, time_limit=None, workers=1))
    assert outcome.placement is not None
    return instance, outcome.placement, outcome.certificate


def again(path: Path, variant: Variant, seed: int, limited: bool) -> dict[str, Any]:
    """One plan from yesterday's: its cost where few bytes may move, or else the bytes that move."""
    before, plan, prices = _yesterday(path)
    draw, tables = random.Random(seed), range(before.num_tables)
    grown = draw.sample(tables, max(1, round(_GROWING * len(tables))))
    new = draw.sample(tables, _NEW)
    use = before.shard_use.copy()
    for table in grown:
        some = _entries(before, table)
        use[some] = np.ceil(_GROWTH * use[some])
    places = [[] if table in new else plan.ranks[table] for table in tables]
    wish = Placement(np.where(np.isin(tables, new), -1, plan.options), places)
    current = tuple(
        Current(table, int(plan.options[table]), tuple(tuple(map(int, b)) for b in places[table]))
        for table in tables if table not in new
    )  # fmt: skip
    size = moved_bytes(before, plan, [now.table for now in current])
    most = int(_MAY_MOVE * size) if limited else None
    today = replace(before, shard_use=use, current=current, max_moved_bytes=most)
    with variant.switch():
        found = near.settled(today, wish, prices, seed=seed)
    value = None
    if found is not None and limited:
        value = check(today, found).objectives[today.objective.value]
    elif found is not None:
        value = moved_bytes(today, found, moved_tables(today, found))
    return {"objective": value, "bound": None, "status": "none" if found is None else "a plan"}


def _entries(instance: Instance, table: int) -> slice:
    """Shard entries of a table's options."""
    blocks = instance.option_blocks[instance.table_options[table : table + 2]]
    return slice(*instance.block_shards[blocks].tolist())
