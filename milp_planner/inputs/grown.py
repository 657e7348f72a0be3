"""A model whose tables have more rows, each table by a percentage of its own."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from fractions import Fraction

from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import nearest
from milp_planner.inputs.quantities import parse_percent


def grown(rows: int, percent: Fraction) -> int:
    """Rows after a growth by a percentage, rounded up."""
    return -int(-rows * (100 + percent) // 100)


def with_growth(model: Model, growth: Mapping[str, Fraction]) -> Model:
    """The model with more rows in the tables whose names match.

    Parameters
    ----------
    model : Model
    growth : mapping of str to Fraction
        Percentage by name, or by pattern such as ``user_*``; the first that matches counts.

    Raises
    ------
    BadInput
        When a name matches no table, or a table gets too many rows.
    """
    names = [table.name for table in model.tables]
    for pattern in growth:
        if not any(fnmatchcase(name, pattern) for name in names):
            close = nearest(pattern, names)
            hint = f"; did you mean {close}?" if close else ""
            raise BadInput(f"growth: the model {model.name} has no table {pattern!r}{hint}")
    data = model.to_dict()
    for table in data["tables"]:
        matching = (each for name, each in growth.items() if fnmatchcase(table["name"], name))
        table["rows"] = grown(table["rows"], next(matching, Fraction(0)))
    return Model.from_dict(data, model.name)


def parse_growth(text: str) -> dict[str, Fraction]:
    """``items=50%,user_*=10%`` as percentages by name; ValueError if it is anything else."""
    allowed = "names and percentages, such as items=50%,user_*=10%"
    found: dict[str, Fraction] = {}
    for part in text.split(","):
        name, equals, percent = (each.strip() for each in part.partition("="))
        if not name or not equals or name in found:
            raise ValueError(f"found {text!r}; allowed: {allowed}")
        found[name] = parse_percent(percent)
        if found[name] < 0:
            raise ValueError(f"found {text!r}; allowed: {allowed}, from 0%")
    return found
