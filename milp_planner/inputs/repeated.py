"""Lines that stand for many equal tables: ``names: t0..t99`` instead of ``name``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from milp_planner.inputs.problems import Loc, problem_at, problems_at
from milp_planner.inputs.quantities import show
from milp_planner.inputs.table import Table

MOST_TABLES = 100_000
"""Most tables of a model, those of all lines together."""

_RANGE = re.compile(r"(?P<stem>.*?)(?P<first>\d+)\.\.(?P=stem)(?P<last>\d+)")


def written_names(table: dict[Any, Any]) -> list[str]:
    """Names of the tables that a line stands for; a wrong range is one name."""
    text = table.get("names", table.get("name"))
    return (_range(text) if "names" in table else None) or [str(text)]


def count_tables(lines: Any) -> int:
    """Number of tables that the lines of a model stand for; 0 if it has no list of them."""
    if not isinstance(lines, list | tuple):
        return 0
    ranges = (_parts(line.get("names")) if isinstance(line, dict) else None for line in lines)
    return sum(1 if found is None else len(found[1]) for found in ranges)


def check_count(lines: Any) -> None:
    """Refuse more tables than a model may have, before any line becomes tables."""
    count = count_tables(lines)
    if count > MOST_TABLES:
        raise problem_at(f"found {count:,} tables; allowed: {MOST_TABLES:,} in all", "tables")


def spread(value: Any, check: Callable[[Any], tuple[Table, ...]]) -> tuple[Table, ...]:
    """Check every line once and replace it by its tables; names are unique over all lines."""
    if not isinstance(value, tuple):
        return check(value)
    lines = [_named(number, line) for number, line in enumerate(value)]
    tables = check(tuple(line for line, _ in lines))
    spread_out = [
        (table if name == table.name else table.model_copy(update={"name": name}), number)
        for number, (table, (_, names)) in enumerate(zip(tables, lines, strict=True))
        for name in names or (table.name,)
    ]
    _check_unique(spread_out)
    return tuple(table for table, _ in spread_out)


def _named(number: int, line: Any) -> tuple[Any, list[str] | None]:
    """A line with ``name``, and its names if it has ``names`` instead."""
    if not isinstance(line, dict) or "names" not in line:
        return line, None
    for other in ("name", "features"):
        if other in line:
            raise problem_at(f"excludes {other}; allowed: one of them", number, "names")
    names = _range(line["names"])
    if names is None:
        allowed = f"two names of rising numbers, as in t0..t99, at most {MOST_TABLES:,} tables"
        raise problem_at(f"found {show(line['names'])}; allowed: {allowed}", number, "names")
    rest = {key: each for key, each in line.items() if key != "names"}
    return {**rest, "name": names[0]}, names


def _range(text: Any) -> list[str] | None:
    """``t08..t11`` as t08, t09, t10, t11; None if it is not such a range."""
    found = _parts(text)
    if found is None:
        return None
    stem, numbers, width = found
    return [f"{stem}{each:0{width}}" for each in numbers]


def _parts(text: Any) -> tuple[str, range, int] | None:
    """Stem, numbers and width of a range of names; None if it is not one."""
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if found is None or max(len(found["first"]), len(found["last"])) > 18:
        return None
    first, last, width = int(found["first"]), int(found["last"]), len(found["first"])
    rises = first <= last < first + MOST_TABLES and f"{last:0{width}}" == found["last"]
    return (found["stem"], range(first, last + 1), width) if rises else None


def _check_unique(tables: list[tuple[Table, int]]) -> None:
    seen: dict[str, int] = {}
    again: list[tuple[str, Loc]] = []
    for table, number in tables:
        if table.name in seen:
            what = f"found {table.name!r} again (as in tables[{seen[table.name]}])"
            again.append((f"{what}; allowed: names used once", (number, "name")))
        seen.setdefault(table.name, number)
    if again:
        raise problems_at(again)
