"""Validate records read from disk, because reports and assertions compute with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import problems_of
from scenarios.batch.store import FILE, Record

_Cost = Annotated[int, Field(gt=-(2**63), lt=2**63)]
_Seconds = Annotated[float, Field(ge=0)]
_Scalar = str | int | float | bool | None | list[Any]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)


class _Error(_Strict):
    type: str
    message: str


class _Versions(_Strict):
    milp_planner: str = Field(alias="milp-planner")


class Result(_Strict):
    """What is read of a record; other fields, of older and newer versions, are ignored."""

    key: str
    model: str
    cluster: str
    axes: dict[str, _Scalar]
    """Value of each swept axis."""
    objective_kind: str
    formulation: str
    options: dict[str, _Scalar] | None = None
    """The formulation's settings given by the suite."""
    seed: int
    status: str
    """The Outcome's status, or ``failed`` or ``not_covered``."""
    standing: str | None = None
    """The status in words, including what is certified."""
    stopped_by: str | None = None
    objective: _Cost | None = None
    bound: _Cost | None = None
    """Picoseconds."""
    bound_source: str | None = None
    certified_bound: _Cost | None = None
    """Bound proved by the scenario's own certificate."""
    objectives: dict[str, _Cost] | None = None
    gap: float | None = None
    """Gap to the scenario's own bound."""
    seconds: _Seconds | None = None
    pricing_seconds: _Seconds | None = None
    headroom: dict[str, float] | None = None
    """By resource, the least share that the plan leaves free at any place."""
    hbm_used: float | None = None
    modes: dict[str, str] | None = None
    shape: str | None = None
    solver: str | None = None
    ranks: int | None = None
    samples: Annotated[int, Field(gt=0)] | None = None
    """Samples per step on all ranks; None in old results."""
    tables: int | None = None
    division: str | None = None
    sync: _Cost | None = None
    note: str | None = None
    """The solver's note."""
    plan: str | None = None
    finished: str = ""
    error: _Error | None = None
    versions: _Versions


NESTED = {"axes", "options", "objectives", "headroom", "modes", "error", "versions"}
"""Fields that hold several values."""


def check_record(record: Record, folder: str | Path) -> Record:
    """Return the record if its fields have the expected types.

    Raises
    ------
    BadInput
        When they do not, because something other than a batch changed the file.
    """
    try:
        Result.model_validate(record)
    except ValidationError as error:
        where = f"{folder}/{FILE}: the result {str(record['key'])[:12]}"
        told = BadInput.of(problems_of(Result, error, where))
        raise BadInput(f"{told}; allowed: results that a batch wrote") from None
    return record
