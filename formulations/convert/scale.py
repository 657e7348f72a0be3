"""Numbers with decimals as exact integers."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from formulations.errors import InstanceError

#: More decimals than this are refused.
MAX_DECIMALS = 6


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
