"""Values of a request: what a program gives, or a person writes, checked and in one unit.

Text is read where a person has written it, which ``info.context`` says by being True.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import show
from milp_planner.inputs.quantities import COUNT_UNITS, parse_bytes, parse_time

GIVEN_UP = 0.005
"""Share of the objective that a re-plan may give up for bytes that stay, unless told otherwise."""
SURELY_A_SHARE = 0.01
"""Files and command lines write a share from here on with its sign, as 0.5 could mean 0.5%."""
_NUMBER = re.compile(r"[-+]?[0-9]{1,40}(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_PERCENT = re.compile(r"\s*(\d+(\.\d*)?)\s*%\s*", re.ASCII)


@dataclass(frozen=True)
class Moves:
    """Limits on what may move from the earlier plan, and what fewer moves are worth."""

    tables: int | None = None
    bytes: int | None = None
    share: float | None = None
    """Of the bytes that the earlier plan holds; None, for all three: no limit."""
    within: float = GIVEN_UP
    """Share of the objective that may be given up for bytes that stay."""

    def __post_init__(self) -> None:
        least = min(self.tables or 0, self.bytes or 0, self.share or 0.0)
        if least < 0 or (self.share or 0.0) > 1 or not 0 <= self.within < 1:
            raise BadInput(
                f"max_moved: found {self}; allowed: a number of tables or bytes from 0, or a share "
                "of the bytes from 0 to 1; within a share of the objective below 1"
            )


_RATE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kMBG]?)\s*(?:samples?)?\s*/\s*s\s*", re.ASCII)


@dataclass(frozen=True)
class Rate:
    """Samples a second, above 0."""

    samples: Fraction


def target(value: Any) -> Any:
    """An objective in picoseconds, from text such as ``2.5ms``, or a Rate from ``200k/s``."""
    if isinstance(value, Rate):
        return value
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    rate = Fraction(0) if match is None else Fraction(match[1]) * COUNT_UNITS[match[2]]
    if rate:
        return Rate(rate)
    try:
        return parse_time(value)
    except ValueError as error:
        text = str(error).replace(" (s, ms, us, ns, ps)", "")
        raise ValueError(f"{text}, or a rate such as 200k samples/s") from None


def number(value: Any, info: ValidationInfo) -> Any:
    """NumPy's numbers are plain ones, and so is text that people write."""
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None and info.context is True:
        return float(value) if found[1] or found[2] else int(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _share(value: Any, info: ValidationInfo) -> float:
    """``0.5%`` or 0.005, from a program or as a person has written it."""
    return _filed_share(value) if info.context is True else _as_share(value, number(value, info))


def _filed_share(value: Any) -> float:
    """The same in a file, where 0.5 may be meant as a percentage, and is asked about."""
    text = str(value)
    share = float(text) if _NUMBER.fullmatch(text) else value
    if isinstance(share, float) and 100 > share >= SURELY_A_SHARE:
        also = f", or {100 * share:g}%" if share < 1 else ""
        raise ValueError(
            f"found {show(value)}; allowed: a share such as 0.5% or 0.005; did you mean "
            f"{share:g}%{also}?"
        )
    return _as_share(value, share)


def _as_share(value: Any, share: Any) -> float:
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    share = share if percent is None else float(percent[1]) / 100
    if type(share) not in (int, float) or not 0 <= share < 1:
        raise ValueError(f"found {show(value)}; allowed: a share below 1, such as 0.5% or 0.005")
    return float(share)


def _moves(value: Any, info: ValidationInfo) -> Any:
    """20 tables, ``10GB``, or ``5%`` of the bytes."""
    value = number(value, info)
    try:
        if isinstance(value, str) and (percent := _PERCENT.fullmatch(value)):
            return Moves(share=float(percent[1]) / 100)
        if isinstance(value, str):
            return Moves(bytes=parse_bytes(value.strip()))
        return Moves(tables=value) if type(value) is int else value
    except (ValueError, BadInput):
        raise ValueError(
            f"found {show(value)}; allowed: a number of tables such as 20, a size such as 10GB, or"
            " a percentage such as 5%"
        ) from None


def _pairs(read: Callable[[str], Any], example: str) -> BeforeValidator:
    """A mapping, or its parts written as NAME=VALUE; ``read`` reads a value."""

    def parse(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        found: dict[str, Any] = {}
        for pair in value:
            name, equals, text = (part.strip() for part in str(pair).partition("="))
            if not (name and equals and text):
                raise ValueError(f"found {pair!r}; needs FIELD=VALUE, such as {example}")
            if name in found:
                raise ValueError(f"found {pair!r}; {name} is given twice")
            found[name] = read(text)
        return found

    return BeforeValidator(parse)


def _plain(text: str) -> Any:
    """Text as YAML reads it."""
    from milp_planner.inputs.strict_yaml import plain_scalar

    return plain_scalar(text, in_yaml=False)


def _json(text: str) -> Any:
    """A number, a truth value or a list in JSON, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(read: Callable[[str], Any], plain: Callable[[Any], Any]) -> BeforeValidator:
    """A value, made by ``plain``, or text that ``read`` reads."""

    def parse(value: Any) -> Any:
        try:
            return read(value) if isinstance(value, str) else plain(value)
        except BadInput as error:
            raise ValueError(str(error).partition(": ")[2]) from None

    return BeforeValidator(parse)


def _ranks(text: str) -> tuple[int, ...]:
    from milp_planner.start.rows import parse_ranks

    found = None if text.strip() in ("", "all") else parse_ranks(text, "ranks")
    if found is None:
        raise ValueError(f"found {text!r}; needs ranks such as 13,40-47")
    return found


def _price(text: str) -> Fraction:
    from milp_planner.plans.moving import parse_price

    return parse_price(text)


_IS_SHARE = WithJsonSchema(
    {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1},
               {"type": "string", "pattern": r"^\d+(\.\d*)?%$"}]}
)  # fmt: skip
_IS_LIMIT = WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]})

Share = Annotated[float, BeforeValidator(_share), _IS_SHARE]
"""A share: 0.5% or 0.005."""
FiledShare = Annotated[
    float, BeforeValidator(_filed_share), _IS_SHARE,
    PlainSerializer(lambda share: f"{100 * share:.12g}%", return_type=str),
]  # fmt: skip
"""The same in a file, with its sign from 1% on, as 0.5 could mean 0.5%."""
Target = Annotated[int | Rate, BeforeValidator(target)]
"""An objective in picoseconds, or samples a second."""
Seconds = Annotated[float, BeforeValidator(number), Field(gt=0)]
Work = Annotated[float, BeforeValidator(number), Field(gt=0)]
Seed = Annotated[int, BeforeValidator(number), Field(ge=0, lt=2**31)]
Workers = Annotated[int, BeforeValidator(number), Field(ge=1, le=1024)]
Objective = Literal["step_time", "pipelined_step", "busiest_rank", "total"]
Pairs = Annotated[dict[str, Any], _pairs(_plain, "hbm_percent=10")]
Options = Annotated[dict[str, Any], _pairs(_json, "solver=cbc")]
Changes = Annotated[dict[str, Any], _pairs(str, "cluster.hbm=96GB")]
"""Values by path; text stays text, as its sign says whether it is added."""
Ranks = Annotated[tuple[int, ...], _text(_ranks, lambda ranks: tuple(map(int, ranks)))]
Price = Annotated[Fraction, _text(_price, Fraction)]
"""Picoseconds a byte, or text such as ``1ms/GB``."""
MostMoved = Annotated[Moves, BeforeValidator(_moves), _IS_LIMIT]
