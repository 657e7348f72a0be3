"""Turns pydantic's findings into one sentence that a user can act on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from milp_planner.errors import MOST_PROBLEMS, BadInput, Problem
from milp_planner.inputs.quantities import show

Loc = tuple[str | int, ...]
"""Path of a value in a document: mapping keys and list positions from the root."""

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text (quote it if it looks like a number)",
    "tuple_type": "a list",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "dict_type": "a mapping of fields",
    "string_too_short": "at least one character",
    "string_too_long": "at most 200 characters",
    "string_pattern_mismatch": "a name without blanks, commas, semicolons, equals signs and "
    "control characters",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


LONG_LIST = 10
"""With more allowed names than this, a sentence that suggests one does not list them all."""

ELSEWHERE = {
    "num_embeddings": "rows", "embedding_dim": "dim", "data_type": "dtype",
    "feature_names": "features", "batch_size": "batch_per_rank",
}  # fmt: skip
"""Our names of fields that TorchRec's configurations call otherwise, and no letters resemble."""

LONG_NAME = 60
"""Longer field names (a damaged file has them) are shortened in sentences."""


def problems_of(cls: type[BaseModel], error: ValidationError, where: str = "") -> list[Problem]:
    """Every finding as a problem, the one that most likely caused the others first."""
    return [
        Problem(explain(cls, finding), show_path(path), where)
        for finding, path in likeliest_first(cls, error)
    ]


def likeliest_first(cls: type[BaseModel], error: ValidationError) -> list[tuple[Any, Loc]]:
    """The first findings with their paths in the data, the likeliest cause first.

    A misspelt field is found twice, as unknown and as missing; the unknown one names the cause.
    """
    findings = sorted(
        error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden"
    )
    several = (each for finding in findings for each in _several(finding))
    return [
        (each, data_path(cls, tuple(each["loc"])) + _deeper(each))
        for each in islice(several, MOST_PROBLEMS)
    ]


def problem_at(message: str, *path: str | int) -> PydanticCustomError:
    """A validator's finding about a field below the value it checks."""
    return problems_at([(message, path)])


def problems_at(found: Sequence[tuple[str, Loc]]) -> PydanticCustomError:
    """A validator's findings, one or more: problem, and path of the field below its value."""
    each = [{"message": message, "path": path} for message, path in found]
    return PydanticCustomError("at", "{message}", {**each[0], "all": each})


def explain(cls: type[BaseModel], finding: Any) -> str:
    """What was found and what is allowed, without its place."""
    kind, context, found = finding["type"], finding.get("ctx", {}), finding["input"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "at":
        return str(context["message"])
    if kind == "extra_forbidden":
        return _unknown_field(cls, tuple(finding["loc"]))
    if kind == "missing":
        return "is missing"
    if kind in ("literal_error", "union_tag_invalid"):
        return _unknown_choice(found, context, finding)
    if kind == "union_tag_not_found":
        kinds = "unknown, zipf, histogram, frequency, top_ids, miss_rate, sample"
        return f"the field kind is missing; allowed: {kinds}"
    if kind in _BOUNDS:
        key, word = _BOUNDS[kind]
        return f"found {show(found)}; allowed: {word} {context[key]}"
    if kind == "too_short":
        return (
            f"found {context['actual_length']} entries; allowed: at least {context['min_length']}"
        )
    if kind in _EXPECTED:
        return f"found {show(found)}; allowed: {_EXPECTED[kind]}"
    return f"found {show(found)}: {finding['msg']}"


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name closest to ``name``, or None if nothing is close.

    A name that begins with it is closer than one that differs in some letters, and that closer than
    one that contains it.
    """
    names = list(allowed)
    folded = {each.lower(): each for each in reversed(names)}
    wanted = str(name).lower()
    begun = [each for each in folded if len(wanted) >= 3 and each.startswith(wanted)]
    close = difflib.get_close_matches(wanted, begun or folded, n=1, cutoff=0.0 if begun else 0.6)
    if not close and len(wanted) >= 3:
        close = sorted((each for each in folded if wanted in each), key=len)
    return folded[close[0]] if close else None


def choice(name: str, allowed: Iterable[str]) -> str:
    """``allowed: a, b, c; did you mean b?`` for a name that is not among them."""
    names = list(allowed)
    close = nearest(name, names)
    if close and len(names) > LONG_LIST:
        return f"did you mean {close}?"
    hint = f"; did you mean {close}?" if close else ""
    return f"allowed: {', '.join(names)}{hint}"


class UnknownName(BadInput, KeyError):
    """No such name in a mapping: also a KeyError, for those who look one up."""

    __str__ = Exception.__str__


def unknown_table(name: object, names: Sequence[str]) -> UnknownName:
    """The error of a lookup by a name that no table has."""
    close = nearest(str(name), names)
    hint = f"; did you mean {close}?" if close else ""
    known = ", ".join(names) if len(names) <= LONG_LIST else f"{len(names):,} tables"
    return UnknownName(f"no table is called {show(name)}{hint} (there are: {known})")


def one_of(value: Any, allowed: Mapping[str, Any] | tuple[str, ...], where: str) -> Any:
    """A value that must be among the allowed ones, or its meaning if they are a mapping."""
    if not isinstance(value, str) or value not in allowed:
        raise BadInput(f"{where}: found {show(value)}; {choice(str(value), allowed)}")
    return allowed[value] if isinstance(allowed, Mapping) else value


def show_path(path: Loc) -> str:
    """A path in its usual form: ``tables[3].rows``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        name = part if len(part) <= LONG_NAME else part[: LONG_NAME - 3] + "..."
        text += f".{name}" if text else name
    return text


def data_path(cls: type[BaseModel], loc: Loc) -> Loc:
    """The path in the user's data: pydantic's location without the tags of unions."""
    path: list[str | int] = []
    classes = [cls]
    for part in loc:
        tagged = _tagged(classes, part)
        if tagged:
            classes = tagged
            continue
        path.append(part)
        if isinstance(part, str):
            classes = _classes_of(classes, part)
    return tuple(path)


def _several(finding: Any) -> list[Any]:
    """A finding, or all findings that :func:`problems_at` joined."""
    if finding["type"] != "at":
        return [finding]
    return [{**finding, "ctx": each} for each in finding["ctx"]["all"]]


def _deeper(finding: Any) -> Loc:
    return tuple(finding["ctx"]["path"]) if finding["type"] == "at" else ()


def _unknown_field(cls: type[BaseModel], loc: Loc) -> str:
    classes = [cls]
    for part in loc[:-1]:
        if isinstance(part, str):
            classes = _tagged(classes, part) or _classes_of(classes, part)
    names = list(dict.fromkeys(name for each in classes for name in _written(each)))
    return unknown_field(str(loc[-1]), names)


def unknown_field(name: str, allowed: Sequence[str]) -> str:
    """The sentence about a field that does not exist."""
    same = ELSEWHERE.get(name)
    return f"unknown field; {f'did you mean {same}?' if same in allowed else choice(name, allowed)}"


def _unknown_choice(found: Any, context: dict[str, Any], finding: Any) -> str:
    names = re.findall(r"'([^']*)'", context.get("expected") or context["expected_tags"])
    if finding["type"] == "union_tag_invalid":
        found = context["tag"]
    return f"found {show(found)}; {choice(str(found), names)}"


def _written(cls: type[BaseModel]) -> list[str]:
    """Names of the fields that a file may have: those of the class, and its shorthand."""
    return [*_fields(cls), *getattr(cls, "shorthand", ())]


def _fields(cls: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info.annotation for name, info in cls.model_fields.items()}


def _tagged(classes: list[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    """Classes whose ``kind`` is ``part``, pydantic's tag for a branch of a union."""
    return [
        cls
        for cls in classes
        if "kind" in cls.model_fields and get_args(cls.model_fields["kind"].annotation) == (part,)
    ]


def _classes_of(classes: list[type[BaseModel]], part: str) -> list[type[BaseModel]]:
    held = (_fields(cls)[part] for cls in classes if part in _fields(cls))
    return [each for annotation in held for each in specs_in(annotation)]


def specs_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The input classes that a field can hold, looked up through tuples and unions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from specs_in(argument)
