"""Quantities as people write them: ``80GiB``, ``2M``, ``15%``, ``1/3``, ``450GB/s``.

Every parser returns an exact value (``int`` or ``Fraction``) and raises ``ValueError`` with one
clause that says what was found and what is allowed. No parser rounds: a text that does not
denote a whole number of bytes is refused.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

SIZE_UNITS = {
    "B": 1,
    **{f"{p}B": 1000 ** (i + 1) for i, p in enumerate("kMGTP")},
    **{f"{p}iB": 1024 ** (i + 1) for i, p in enumerate("KMGTP")},
}
"""Bytes per unit: decimal kB … PB and binary KiB … PiB. ``GB`` is 10⁹ bytes, ``GiB`` is 2³⁰."""

COUNT_UNITS = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9, "G": 10**9}
"""Counts of rows, ids or samples: thousand, million, billion."""

TIME_UNITS = {"s": 10**12, "ms": 10**9, "us": 10**6, "µs": 10**6, "ns": 10**3, "ps": 1}
"""Picoseconds per unit."""

FINEST_RATIO = 100
"""Largest denominator of a cache ratio: hundredths, 1/3 and 3/7 are allowed, 1/128 is not."""

_LARGEST = 2**53
_NUMBER = r"(?P<number>\d{1,3}(?:_\d{3})+|\d{1,20})(?P<decimals>\.\d{1,12})?"
_QUANTITY = re.compile(rf"\s*{_NUMBER}\s*(?P<unit>[A-Za-z]*(?:/s)?)\s*", re.ASCII)
_TIME = re.compile(rf"\s*(\d{{1,15}}(?:\.\d{{1,12}})?)\s*({'|'.join(TIME_UNITS)})\s*", re.ASCII)
_FRACTION = re.compile(r"\d{1,15}(\.\d{1,15})?(e-?\d{1,2})?|\d{1,120}/\d{1,120}", re.ASCII)
"""A decimal, or any fraction that such a decimal is written as (15 digits and e-99)."""


def parse_bytes(value: Any) -> int:
    """A size in bytes from an int, or from text such as ``80GiB`` or ``1.5TB``."""
    return _whole(value, SIZE_UNITS, "a size such as 80GiB, 1.5TB or a whole number of bytes")


def parse_count(value: Any) -> int:
    """A count from an int, or from text such as ``2_000_000``, ``2M`` or ``12.5M``."""
    return _whole(value, COUNT_UNITS, "a whole number such as 1024, 2_000_000 or 2M")


def parse_bandwidth(value: Any) -> int:
    """Bytes per second from text such as ``450GB/s``; refuses bits (``Gb/s``) and bare numbers."""
    allowed = "a bandwidth with its unit, such as 450GB/s or 12.5GiB/s"
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(f"found {value} without a unit; allowed: {allowed}")
    return _whole(value, {f"{unit}/s": size for unit, size in SIZE_UNITS.items()}, allowed)


def parse_ratio(value: Any) -> Fraction:
    """An exact ratio, no finer than hundredths, from ``"1/3"``, ``35%``, 0.35 or a ``Fraction``.

    A float stands for its printed decimal, so 0.1 is exactly one tenth.
    """
    ratio = parse_fraction(value, "a ratio such as 0.35, 35% or 1/3")
    if ratio.denominator > FINEST_RATIO:
        raise ValueError(
            f"found {value}, which is finer than 1/{FINEST_RATIO}; "
            f"allowed: ratios whose denominator is at most {FINEST_RATIO}"
        )
    return ratio


def parse_percent(value: Any) -> Fraction:
    """A percentage as a ``Fraction`` of 100: 15, ``12.5`` and ``"15%"`` are 15, 25/2 and 15."""
    allowed = "a percentage such as 15 or 15%"
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return parse_fraction(value.rstrip()[:-1], allowed)
    return parse_fraction(value, allowed)


def parse_factor(value: Any) -> Fraction:
    """A factor as an exact ``Fraction``, from 1.5 or ``"3/2"``."""
    return parse_fraction(value, "a factor such as 1.5")


def _whole(value: Any, units: dict[str, int], allowed: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _bounded(value, value, allowed)
    if not isinstance(value, str):
        raise ValueError(f"found {show(value)}; allowed: {allowed}")
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise ValueError(f"found {show(value)}; allowed: {allowed}")
    unit = match["unit"]
    if unit not in units:
        raise ValueError(f"found {show(value)}; allowed: {allowed}{_unit_hint(unit, units)}")
    exact = Fraction(match["number"].replace("_", "") + (match["decimals"] or "")) * units[unit]
    if exact.denominator != 1:
        raise ValueError(f"found {show(value)}, which is not a whole number; allowed: {allowed}")
    return _bounded(exact.numerator, value, allowed)


def _bounded(number: int, value: Any, allowed: str) -> int:
    if not 0 <= number < _LARGEST:
        raise ValueError(f"found {show(value)}; allowed: {allowed}, from 0 to below 2^53")
    return number


def _unit_hint(unit: str, units: dict[str, int]) -> str:
    if not unit:
        return " (the unit is missing)"
    for known in units:
        if known and known.lower() == unit.lower():
            return f" (did you mean the unit {known}?)"
    return f" (units: {', '.join(u for u in units if u)})"


def parse_fraction(value: Any, allowed: str) -> Fraction:
    """An exact number from 0 up with a limited number of digits; ``allowed`` describes it."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"found {show(value)}; allowed: {allowed}")
    text = str(value).strip()
    percent = text.endswith("%")
    text = text[:-1].strip() if percent else text
    if _FRACTION.fullmatch(text) is None:
        raise ValueError(f"found {show(value)}; allowed: {allowed}")
    try:
        exact = Fraction(text)
    except ZeroDivisionError:
        raise ValueError(f"found {show(value)}, a division by zero; allowed: {allowed}") from None
    return exact / 100 if percent else exact


def show(value: Any) -> str:
    """A found value as error sentences print it: quoted text, shortened to 60 characters."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse_time(value: Any) -> int:
    """Picoseconds above 0 from an int, or from text such as ``2.5ms``."""
    allowed = "a time such as 2.5ms (s, ms, us, ns, ps)"
    if type(value) is int and value > 0:
        return value
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    exact = Fraction(0) if match is None else Fraction(match[1]) * TIME_UNITS[match[2]]
    if exact < 1:
        raise ValueError(f"found {show(value)}; allowed: {allowed}")
    return int(exact)
