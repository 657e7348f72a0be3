"""The base of every input class: frozen, strict, no unknown fields, to and from dictionaries."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from milp_planner.errors import BadInput
from milp_planner.inputs import quantities
from milp_planner.inputs.problems import problems_of


class Spec(BaseModel):
    """A frozen, strict value with ``from_dict``, ``to_dict`` and a content fingerprint."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    shorthand: ClassVar[tuple[str, ...]] = ()
    """Further fields that a file may have; they stand for fields of the class."""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        """NumPy's scalars and arrays stand for plain numbers and lists."""
        if not isinstance(data, dict):
            return data
        return {key: _plain(value) for key, value in data.items()}

    @classmethod
    def from_dict(cls, data: Any, where: str = "") -> Self:
        """Build from plain values, as read from YAML or JSON or made by ``to_dict``.

        Parameters
        ----------
        data
            A mapping of plain values; sizes may be text such as ``80GiB``.
        where
            Name of the source in error messages, for instance a file name.

        Raises
        ------
        BadInput
            One sentence: field, what was found, what is allowed, nearest valid name; its
            ``problems`` are all findings.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise BadInput.of(problems_of(cls, error, where)) from None

    def to_dict(self) -> dict[str, Any]:
        """Plain values (text, numbers, lists, mappings) that ``from_dict`` reads back as equal.

        Bytes are integers, exact ratios are text such as ``"1/3"``; every default is spelled out.
        """
        return self.model_dump(mode="json", by_alias=True)

    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of the canonical JSON of ``to_dict``: equal content, equal text."""
        return fingerprint_of(self.to_dict())


def fingerprint_of(document: Any) -> str:
    """SHA-256 (hexadecimal) of the canonical JSON of plain values."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.tolist() if type(value).__module__ == "numpy" else value


def as_tuple(value: Any) -> Any:
    """Lists become tuples (YAML and JSON have no tuples); anything else is left to validation."""
    return tuple(value) if isinstance(value, list) else value


One = TypeVar("One")
Other = TypeVar("Other")
Pair = Annotated[tuple[One, Other], BeforeValidator(as_tuple)]
Many = Annotated[tuple[One, ...], BeforeValidator(as_tuple)]
Some = Annotated[tuple[One, ...], BeforeValidator(as_tuple), Field(min_length=1)]
"""A list of two values, of any number, and of at least one."""


def one_or_many(value: Any) -> Any:
    """A single name stands for a list of one."""
    return (value,) if isinstance(value, str) else as_tuple(value)


OneOrSome = Annotated[tuple[One, ...], BeforeValidator(one_or_many), Field(min_length=1)]


_SIZE_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
_RATIO_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string"}]}

Bytes = Annotated[
    int, BeforeValidator(quantities.parse_bytes), WithJsonSchema(_SIZE_SCHEMA, mode="validation")
]
Count = Annotated[
    int,
    BeforeValidator(quantities.parse_count),
    Field(ge=1),
    WithJsonSchema(_SIZE_SCHEMA, mode="validation"),
]
Bandwidth = Annotated[
    int,
    BeforeValidator(quantities.parse_bandwidth),
    Field(gt=0),
    PlainSerializer(lambda rate: f"{rate}B/s", return_type=str),
    WithJsonSchema({"type": "string"}),
]
_AS_TEXT = PlainSerializer(str, return_type=str)
Ratio = Annotated[
    Fraction,
    BeforeValidator(quantities.parse_ratio),
    Field(gt=0, lt=1),
    _AS_TEXT,
    WithJsonSchema(_RATIO_SCHEMA),
]
Percent = Annotated[
    Fraction,
    BeforeValidator(quantities.parse_percent),
    Field(ge=0, le=100),
    _AS_TEXT,
    WithJsonSchema(_RATIO_SCHEMA),
]
Factor = Annotated[
    Fraction,
    BeforeValidator(quantities.parse_factor),
    Field(ge=1, le=100),
    _AS_TEXT,
    WithJsonSchema(_RATIO_SCHEMA),
]
