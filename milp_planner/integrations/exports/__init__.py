"""A plan in the words of the trainer that reads it, and back.

Every format is a module with ``write(plan) -> str``, ``notes(plan) -> list[str]`` (what the format
cannot say) and ``read(text, model) -> dict[str, Pin]`` (what a file of that format fixes). One
whose files say more than placements also has ``workload(text, model)`` and ``unread(text)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice

if TYPE_CHECKING:
    from milp_planner.inputs.model import Model
    from milp_planner.inputs.table import Pin
    from milp_planner.plans.placement import Plan

FORMATS = {
    "torchrec": "TorchRec ShardingPlan as JSON",
    "dynamicemb": "dynamicemb table options as JSON, one set a fusion group",
    "tzrec": "TorchEasyRec feature_configs fragment",
    "dlrmv4": "MLPerf DLRMv4 environment variables",
}


class Format(Protocol):
    """What each module of this package offers."""

    def write(self, plan: Plan) -> str:
        """The plan as text of this format."""

    def notes(self, plan: Plan) -> list[str]:
        """Sentences about what the format cannot say."""

    def read(self, text: str, model: Model) -> dict[str, Pin]:
        """What a text of this format fixes, by table."""


def get(name: str) -> Format:
    """The format of that name.

    Raises
    ------
    BadInput
        For an unknown name, with the nearest valid one.
    """
    if name not in FORMATS:
        raise BadInput(f"unknown export format {name!r}; {choice(name, FORMATS)}")
    module: Format = import_module(f"{__name__}.{name}")
    return module


def write(plan: Plan, to: str) -> str:
    """A plan as text of a format.

    Raises
    ------
    BadInput
        For an unknown format, a plan without a placement, or a decision the format cannot hold.
    """
    chosen = get(to)
    if not plan.tables and plan.model.tables:
        raise BadInput(
            f"the plan has no placement ({plan.outcome.status.value}): nothing to export"
        )
    return chosen.write(plan)


def read(text: str, to: str, model: Model) -> dict[str, Pin]:
    """What a file of a format fixes for the tables of a model.

    Returns
    -------
    dict of table name to Pin
        Fields the format does not hold are None.

    Raises
    ------
    BadInput
        For unknown tables and illegal values, with the nearest valid name.
    """
    return get(to).read(text, model)


def workload(text: str, to: str, model: Model) -> dict[str, Any]:
    """Fields of the model's workload that a file sets; none in most formats."""
    reader = getattr(get(to), "workload", None)
    return {} if reader is None else dict(reader(text, model))


def unread(text: str, to: str) -> list[str]:
    """What a file says and neither pins nor workload hold, in sentences."""
    reader = getattr(get(to), "unread", None)
    return [] if reader is None else list(reader(text))
