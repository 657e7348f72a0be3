"""MLPerf DLRMv4's placement controls: three environment variables, written and read back.

Beside them the variables of :mod:`~milp_planner.integrations.exports.trainer_environment`, which
say what a plan was priced for.

References
----------
mlcommons/training, recommendation_v4 (HSTU on Yambda-5b): ``EMB_PLACEMENT``,
``EMB_PLACEMENT_OVERRIDES``, ``EMB_SHARDING_OVERRIDES``.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import Pin
from milp_planner.inputs.model import Model
from milp_planner.integrations.exports import trainer_environment
from milp_planner.integrations.exports.pins import known, one_of
from milp_planner.plans.placement import PlacedTable, Plan

PLACEMENT = "EMB_PLACEMENT"
PLACEMENT_OVERRIDES = "EMB_PLACEMENT_OVERRIDES"
SHARDING_OVERRIDES = "EMB_SHARDING_OVERRIDES"
VARIABLES = (PLACEMENT, PLACEMENT_OVERRIDES, SHARDING_OVERRIDES)

_PLACEMENTS = {"HBM_ONLY": "hbm", "HOST_ONLY": "uvm", "CACHING": "uvm_caching"}
_MODES = {placement: mode for mode, placement in _PLACEMENTS.items()} | {"auto": None}
_TYPES = (
    "row_wise",
    "column_wise",
    "table_wise",
    "table_row_wise",
    "table_column_wise",
    "data_parallel",
)
_ALIASES: dict[str, str | None] = {
    "auto": None,
    **{name: name for name in _TYPES},
    "rw": "row_wise",
    "cw": "column_wise",
    "tw": "table_wise",
    "twrw": "table_row_wise",
    "twcw": "table_column_wise",
    "dp": "data_parallel",
}


def environment(plan: Plan) -> dict[str, str]:
    """The three variables of a plan: the commonest placement, and what differs from it.

    Raises
    ------
    BadInput
        For a table these controls cannot place: HYBRID, grid_shard, or of dynamicemb.
    """
    placements = {placed.name: _placement(placed) for placed in plan.tables}
    common = Counter(placements.values()).most_common(1)
    default = common[0][0] if common else "auto"
    others = {name: where for name, where in placements.items() if where != default}
    return {
        PLACEMENT: default,
        PLACEMENT_OVERRIDES: _join(others),
        SHARDING_OVERRIDES: _join({p.name: p.sharding_type for p in plan.tables}),
    }


def write(plan: Plan) -> str:
    """The variables as lines a shell can source."""
    variables = environment(plan) | trainer_environment.environment(plan)
    lines = [f"export {key}={shlex.quote(value)}" for key, value in variables.items()]
    return "\n".join(lines) + "\n"


def notes(plan: Plan) -> list[str]:
    """What the variables do not say."""
    found = ["the ranks are left to the trainer's own planner", *trainer_environment.notes(plan)]
    if any(placed.column_shards > 1 for placed in plan.tables):
        found.append("the width of column shards is left to the trainer")
    ratios = sorted({str(p.cache_ratio) for p in plan.tables if p.mode == "CACHING"})
    if ratios:
        found.append(f"the cache ratio of uvm_caching tables ({', '.join(ratios)}) has no variable")
    return found


def read(text: str, model: Model) -> dict[str, Pin]:
    """What a sourced file of these variables fixes; see :func:`read_environment`."""
    return read_environment(_variables(text), model)


def workload(text: str, model: Model) -> dict[str, Any]:
    """Fields of the workload that the file sets: batch, exchange and its codec, deduplication."""
    return trainer_environment.workload_of(_variables(text), model)


def unread(text: str) -> list[str]:
    """What the file says and a model does not hold, in sentences."""
    return trainer_environment.unread(_variables(text), VARIABLES)


def read_environment(variables: Mapping[str, str], model: Model) -> dict[str, Pin]:
    """What the three variables fix for the tables of a model.

    Parameters
    ----------
    variables : mapping
        Such as ``os.environ``; other names are ignored, missing ones mean *auto* and nothing.
    model : Model

    Returns
    -------
    dict of table name to Pin
        Mode and sharding type, each None where it is left to the trainer.

    Raises
    ------
    BadInput
        For unknown tables (where the trainer only warns), unknown placements or sharding types,
        and entries that are not ``table=value``.
    """
    default = one_of(variables.get(PLACEMENT) or "auto", _MODES, PLACEMENT)
    modes = {
        name: one_of(value, _MODES, f"{PLACEMENT_OVERRIDES}: {name}")
        for name, value in _pairs(variables, PLACEMENT_OVERRIDES, model)
    }
    types = {
        name: one_of(value, _ALIASES, f"{SHARDING_OVERRIDES}: {name}")
        for name, value in _pairs(variables, SHARDING_OVERRIDES, model)
    }
    return {
        table.name: Pin(mode=modes.get(table.name, default), sharding_type=types.get(table.name))
        for table in model.tables
    }


def _placement(placed: PlacedTable) -> str:
    where = f"table {placed.name!r}"
    if placed.kind == "dynamicemb":
        raise BadInput(f"{where} is of dynamicemb; DLRMv4's variables place TorchRec tables only")
    if placed.sharding_type not in _TYPES:
        raise BadInput(f"{where} is {placed.sharding_type}; DLRMv4 allows: {', '.join(_TYPES)}")
    return str(one_of(placed.mode, _PLACEMENTS, f"{where}: mode"))


def _join(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in pairs.items())


def _pairs(variables: Mapping[str, str], key: str, model: Model) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in (variables.get(key) or "").split(","))):
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not value:
            raise BadInput(f"{key}: found {entry!r}; allowed: table=value, separated by commas")
        if name in found:
            raise BadInput(f"{key}: table {name!r} is listed twice")
        known(model, name, key)
        found[name] = value
    return list(found.items())


def _variables(text: str) -> dict[str, str]:
    return trainer_environment.assignments(text, VARIABLES)
