"""A plan in the format of the trainer that reads it, and back.

Every format is a module with ``write(plan) -> str``, ``notes(plan) -> list[str]`` (what the format
cannot express) and ``read(text, model) -> dict[str, PinSpec]`` (what a file of that format fixes).
A format whose files hold more than placements also has ``workload(text, model)`` and
``unread(text)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs.changes import changed_model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import choice, nearest, problems_of
from milp_planner.inputs.quantities import parse_fraction, show
from milp_planner.inputs.table import Table

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan

FORMATS = {
    "torchrec": "TorchRec ShardingPlan as JSON",
    "torchrec-callback": "Python module that sets the ranks after TorchRec's own planner",
    "torchrec-reshard": "arguments of TorchRec's DMP.reshard, for a re-plan, as JSON",
    "dynamicemb": "dynamicemb table options as JSON, one set per fusion group",
    "tzrec": "TorchEasyRec feature_configs fragment",
    "dlrmv4": "MLPerf DLRMv4 environment variables",
}


class Format(Protocol):
    """Functions of each format's module."""

    def write(self, plan: Plan, settings: Mapping[str, str] = ...) -> str:
        """The plan as text of this format; only formats of trainers with settings take any."""

    def notes(self, plan: Plan) -> list[str]:
        """Sentences about what the format cannot express."""

    def read(self, text: str, model: Model) -> dict[str, PinSpec]:
        """Pins that a text of this format fixes, by table."""


def get(name: str) -> Format:
    """The format of that name; BadInput names the nearest valid one."""
    if name not in FORMATS:
        raise BadInput(f"unknown export format {name!r}; {choice(name, FORMATS)}")
    module: Format = import_module(f"{__name__}.{name.replace('-', '_')}")
    return module


def write(plan: Plan, to: str, settings: Mapping[str, str] | None = None) -> str:
    """A plan as text of a format.

    What the trainer makes of it is for :func:`milp_planner.integrations.replay.judge.judge` to say,
    which also finds ``settings``: further ones of the trainer that the text is to hold.

    Raises
    ------
    BadInput
        For an unknown format, a plan without a placement or with one that the solver-free check
        rejects, or a decision the format cannot hold.
    """
    chosen = get(to)
    if not plan.tables and plan.model.tables:
        raise BadInput(
            f"the plan has no placement ({plan.outcome.status.value}): nothing to export"
        )
    _check(plan)
    if to != "torchrec":
        from milp_planner.integrations.exports.nodes import refuse_nodes

        refuse_nodes(plan, f"the trainer behind {to}")
    return chosen.write(plan, settings) if settings else chosen.write(plan)


def _check(plan: Plan) -> None:
    """Refuse a placement that breaks a constraint or whose cost differs from the plan's."""
    verdict, outcome = plan.verdict, plan.outcome
    if verdict is None:
        return
    problem = verdict.violations[0] if verdict.violations else None
    cost = verdict.objectives.get(plan.instance.objective.value)
    if problem is None and outcome.objective not in (None, cost):
        problem = f"it costs {cost}, not {outcome.objective} as the plan claims"
    if problem is not None:
        raise BadInput(
            f"the plan's placement is refuted: {problem}; nothing was exported "
            "(see milp-planner verify)"
        )


def read(text: str, to: str, model: Model) -> dict[str, PinSpec]:
    """Pins that a file of a format fixes, by table; None for fields that it does not hold.

    BadInput for unknown tables and illegal values, with the nearest valid name.
    """
    return get(to).read(text, model)


def workload(text: str, to: str, model: Model) -> dict[str, Any]:
    """Fields of the model's workload that a file sets; none in most formats."""
    reader = getattr(get(to), "workload", None)
    return {} if reader is None else dict(reader(text, model))


def unread(text: str, to: str) -> list[str]:
    """Sentences about contents of a file that neither pins nor workload hold."""
    reader = getattr(get(to), "unread", None)
    return [] if reader is None else list(reader(text))


MANY = 12
"""Error messages list up to this many table names."""


def with_pins(model: Model, pins: Mapping[str, PinSpec]) -> Model:
    """A copy of a model with its tables pinned; tables not named stay free.

    BadInput for a table the model does not have, or a pin its other constraints exclude.
    """
    for name in pins:
        known(model, name, "pins")
    changes = {f"tables.{name}.constraints.pin": pin.to_dict() for name, pin in pins.items()}
    return changed_model(model, changes, "pinned model")


def with_workload(model: Model, changes: Mapping[str, Any]) -> Model:
    """A copy of a model with fields of its workload changed."""
    named = {f"workload.{name}": value for name, value in changes.items()}
    return changed_model(model, named, "workload as read")


def pin(where: str, **fields: Any) -> PinSpec:
    """A pin of values read from a file."""
    try:
        return PinSpec(**fields)
    except ValidationError as error:
        raise BadInput.of(problems_of(PinSpec, error, where)) from None


def pin_of_share(table: Table, share: Fraction, caching: bool, **more: Any) -> PinSpec:
    """The pin of a dynamicemb table with a share of its values in HBM."""
    ends = {Fraction(0): "HOST_ONLY", Fraction(1): "HBM_ONLY"}
    return pin(
        f"table {table.name!r}", mode=ends.get(share, "CACHING" if caching else "HYBRID"),
        sharding_type="row_wise", cache_ratio=None if share in ends else share, **more,
    )  # fmt: skip


def known(model: Model, name: Any, where: str) -> Table:
    """The model's table of that name; BadInput suggests the nearest name."""
    for table in model.tables:
        if table.name == name:
            return table
    names = [table.name for table in model.tables]
    if len(names) <= MANY:
        raise BadInput(f"{where}: unknown table {str(name)!r}; {choice(str(name), names)}")
    close = nearest(str(name), names)
    hint = f"; did you mean {close}?" if close else ""
    raise BadInput(
        f"{where}: unknown table {str(name)!r} (the model has {len(names)} tables){hint}"
    )


def proper_ratio(value: Any, where: str) -> Fraction:
    """A cache ratio strictly between 0 and 1, from a number or text such as ``"1/3"``."""
    try:
        if isinstance(value, float) and math.isfinite(value):
            ratio = Fraction(str(value))  # as printed, with all digits
        else:
            ratio = parse_fraction(value, "a number between 0 and 1")
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None
    if not 0 < ratio < 1:
        raise BadInput(f"{where}: found {show(value)}; allowed: above 0 and below 1")
    return ratio
