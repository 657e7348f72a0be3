"""Validate records read from disk, because reports and assertions compute with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import problems_of
from scenarios.batch.store import FILE, Record

_Cost = Annotated[int, Field(gt=-(2**63), lt=2**63)]
_Scalar = str | int | float | bool | None | list[Any]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")


class _Error(_Strict):
    type: str
    message: str


class _Versions(_Strict):
    milp_planner: str = Field(alias="milp-planner")


class _Record(_Strict):
    """The fields that are read; others, from older and newer versions, are ignored."""

    key: str
    model: str
    cluster: str
    axes: dict[str, _Scalar]
    objective_kind: str
    formulation: str
    seed: int
    status: str
    standing: str | None = None
    versions: _Versions
    options: dict[str, _Scalar] | None = None
    objective: _Cost | None = None
    bound: _Cost | None = None
    bound_source: str | None = None
    certified_bound: _Cost | None = None
    objectives: dict[str, _Cost] | None = None
    gap: float | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    pricing_seconds: Annotated[float, Field(ge=0)] | None = None
    headroom: dict[str, float] | None = None
    hbm_used: float | None = None
    modes: dict[str, str] | None = None
    shape: str | None = None
    samples: Annotated[int, Field(gt=0)] | None = None
    division: str | None = None
    sync: _Cost | None = None
    note: str | None = None
    plan: str | None = None
    finished: str = ""
    error: _Error | None = None


def check_record(record: Record, folder: str | Path) -> Record:
    """Return the record if its fields have the expected types.

    Raises
    ------
    BadInput
        When they do not, because something other than a batch changed the file.
    """
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        where = f"{folder}/{FILE}: the result {str(record['key'])[:12]}"
        told = BadInput.of(problems_of(_Record, error, where))
        raise BadInput(f"{told}; allowed: results that a batch wrote") from None
    return record
