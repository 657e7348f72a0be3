"""The arguments of TorchRec's ``DMP.reshard`` for the moves of a re-plan, as JSON.

TorchRec's own delta of two plans compares ranks alone: it would lose a table that changes its
widths on the same ranks. Here every changed table has its new entry, or stands under ``restart``
with the reason why no reshard can move it. Modules are in an order in which each finds room for a
second copy. :mod:`milp_planner.integrations.torchrec.reshard` runs the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from formulations.instance import Instance
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.result.placement import Placement, current_plan
from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.model import Model
from milp_planner.integrations.exports.torchrec import document as sharding_plan
from milp_planner.plans.live import Form, in_order, rebuilt, twice_on, why_not
from milp_planner.plans.placement import PlacedTable, Plan, placed_tables

FORMAT = "milp-planner-torchrec-reshard/1"


def document(plan: Plan, modules: Mapping[str, str] | str = "") -> dict[str, Any]:
    """The calls that bring the running plan to this one, and what they cannot move.

    ``modules`` are paths as in :func:`milp_planner.integrations.exports.torchrec.document`.

    Raises
    ------
    BadInput
        If the plan was not made from an earlier one, or has tables that it did not have.
    """
    before = _before(plan)
    assert plan.outcome.placement is not None
    restart = dict(_stuck(plan, before))
    after = _without(plan.instance, before, plan.outcome.placement, list(restart))
    moving = moved_tables(plan.instance, after)
    free = replace(plan.instance, max_moved_tables=None, max_moved_bytes=None)
    if restart and not check(free, after).feasible:
        why = f"its new place is free only after {listed(list(restart), 3)} moved"
        restart |= {plan.instance.table_names[table]: why for table in moving}
        moving = []
    paths = [modules if isinstance(modules, str) else modules.get(t.name, "") for t in plan.tables]
    rebuilds = [index for index, table in enumerate(plan.model.tables) if rebuilt(table)]
    held = {
        path: [index for index in rebuilds if paths[index] == path]
        for path in dict.fromkeys(paths[t] for t in moving)
    }
    order, full = in_order(plan.instance, before, after, held)
    names = plan.instance.table_names
    for path in full:
        why = f"module {path!r} finds no room for a second copy of its tables"
        restart |= {names[table]: why for table in moving if paths[table] == path}
    shape = sharding_plan(plan, modules)
    calls = [
        _call(plan, path, [t for t in moving if paths[t] == path], shape["plan"][path])
        for path in order
    ]
    head = {key: shape[key] for key in ("world_size", "local_world_size", "compute_device")}
    return {"format": FORMAT, **head, "calls": calls, "restart": restart}


def _call(plan: Plan, path: str, tables: list[int], entries: Mapping[str, Any]) -> dict[str, Any]:
    """One call of ``reshard``; its volume holds rows and optimizer state."""
    names = [plan.instance.table_names[table] for table in tables]
    assert plan.outcome.placement is not None
    amount = moved_bytes(plan.instance, plan.outcome.placement, tables)
    return {
        "module": path,
        "data_volume_mib": amount / 2**20,
        "tables": {name: entries[name] for name in names},
    }


def _before(plan: Plan) -> Placement:
    found = current_plan(plan.instance)
    if found is None:
        known = {now.table for now in plan.instance.current if now.option >= 0}
        new = [n for index, n in enumerate(plan.instance.table_names) if index not in known]
        if plan.instance.current and new:
            raise BadInput(
                f"torchrec-reshard: {listed(new, 3)} {'is' if len(new) == 1 else 'are'} not where "
                "the running plan had them, or new; a reshard needs the same tables: restart from "
                "a checkpoint (export --to torchrec)"
            )
        raise BadInput("torchrec-reshard: the plan was not made with --start, the running plan")
    return found


def _stuck(plan: Plan, before: Placement) -> Iterator[tuple[str, str]]:
    """Changed tables that no reshard can move, and why."""
    assert plan.outcome.placement is not None
    old = placed_tables(plan.model, plan.cluster, plan.instance, before)
    if plan.cluster.replicas > 1:
        raise BadInput("torchrec-reshard: DMPCollection (two_d) has no reshard")
    for index in moved_tables(plan.instance, plan.outcome.placement):
        table, new = plan.model.tables[index], plan.tables[index]
        optimizer = plan.model.optimizer_of(table)
        why = why_not(table, optimizer, _form(old[index]), _form(new))
        if why is None and twice_on(new.ranks):
            why = "two of its shards would share a rank"
        if why is not None:
            yield table.name, why


def _form(placed: PlacedTable) -> Form:
    return Form(
        placed.sharding_type, placed.mode, placed.cache_ratio, placed.column_width, placed.stash
    )


def _without(
    instance: Instance, before: Placement, after: Placement, names: Sequence[str]
) -> Placement:
    """The plan with these tables where they were."""
    options, ranks = np.array(after.options), list(after.ranks)
    for name in names:
        table = instance.table_index(name)
        options[table], ranks[table] = before.options[table], before.ranks[table]
    return Placement(options, ranks)


def write(plan: Plan) -> str:
    """The document as indented JSON."""
    return json_text(document(plan))


def notes(plan: Plan) -> list[str]:
    """What must be restarted, table by table."""
    found = document(plan)
    said = [f"{name}: from a checkpoint: {why}" for name, why in found["restart"].items()]
    if not found["calls"] and not said:
        said.append("nothing moves")
    return said


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Calls of a reshard pin nothing; BadInput."""
    raise BadInput("torchrec-reshard: holds changes of a plan; import-plan reads --from torchrec")
