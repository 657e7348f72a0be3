"""Turns pydantic's findings into one sentence a user can act on."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError


def first_problem(cls: type[BaseModel], error: ValidationError, where: str = "") -> str:
    """One sentence about the first finding: where, what was found, what is allowed."""
    finding = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in finding["loc"])
    return f"{where + ': ' if where else ''}{path or cls.__name__}: {finding['msg']}"
