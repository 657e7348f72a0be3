"""Numbers of literature files, each mistake one sentence; those with decimals as exact integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import MAX_VALUE

#: More decimals than this are refused.
MAX_DECIMALS = 6


def positive(document: dict[str, Any], field: str, what: str) -> int:
    """A field that must be a whole number of 1 or more."""
    value = document[field]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InstanceError(f"{what}: {field} must be a whole number, 1 or more, found {value!r}")
    return value


def one_of(document: dict[str, Any], field: str, allowed: Sequence[str], what: str) -> str:
    """A text field with few values; the first is the default."""
    value = document.get(field, allowed[0])
    if value not in allowed:
        raise InstanceError(f"{what}: {field} is {value!r}, allowed: {' or '.join(allowed)}")
    return str(value)


def numbers(values: Any, count: int, what: str, whole: bool = True) -> list[int | float]:
    """A list of ``count`` numbers; whole ones must be 0 or more."""
    if not isinstance(values, list) or len(values) != count:
        size = f"{len(values)} numbers" if isinstance(values, list) else repr(values)[:40]
        raise InstanceError(f"{what} must list {count} numbers, found {size}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InstanceError(f"{what}: a number is needed, found {value!r}")
        if abs(value) >= MAX_VALUE or value != value:
            raise InstanceError(f"{what}: {value!r} is out of range")
        if whole and (value != int(value) or value < 0):
            raise InstanceError(f"{what}: whole numbers of 0 or more are needed, found {value!r}")
    return values


def matrix(values: Any, rows: int, columns: int, what: str) -> list[list[int | float]]:
    """A list of ``rows`` lists of ``columns`` numbers: whole for weights, any for values."""
    if not isinstance(values, list) or len(values) != rows:
        size = f"{len(values)} rows" if isinstance(values, list) else repr(values)[:40]
        raise InstanceError(f"{what} must have {rows} rows, found {size}")
    whole = "weight" in what.rsplit(": ", 1)[-1]
    return [numbers(row, columns, f"{what}[{i}]", whole) for i, row in enumerate(values)]


def common_scale(values: Iterable[Any], what: str) -> int:
    """The smallest power of ten that makes every value an integer.

    Raises
    ------
    InstanceError
        For a value that is no finite number, or has more than :data:`MAX_DECIMALS` decimals.
    """
    decimals = 0
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InstanceError(f"{what}: a number is needed, found {value!r}")
        # repr gives the shortest decimal that reads back: what the file said.
        exponent = Decimal(repr(value)).normalize().as_tuple().exponent
        if not isinstance(exponent, int):
            raise InstanceError(f"{what}: {value!r} is not a number")
        decimals = max(decimals, -exponent)
    if decimals > MAX_DECIMALS:
        raise InstanceError(f"{what}: more than {MAX_DECIMALS} decimals")
    return int(10**decimals)


def scaled(value: int | float, scale: int) -> int:
    """A value times a scale that :func:`common_scale` found."""
    return int(Decimal(repr(value)) * scale)
