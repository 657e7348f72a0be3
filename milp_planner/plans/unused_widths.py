"""Column widths that a user asked for and that no option of the table has."""

from __future__ import annotations

from milp_planner.plans.placement import Plan

NAMED = 3
"""Tables a sentence names."""

_CUT = ("column_wise", "table_column_wise", "grid_shard")


def width_warnings(plan: Plan) -> list[str]:
    """A sentence about placed tables whose ``column_widths`` had no effect: none could be used.

    A width may be too narrow for the number of ranks, or the sharding types that cut columns are
    not offered. Pinned tables ask for one option, which is no surprise.
    """
    first, names = plan.instance.table_options, plan.instance.option_names
    unused = [
        placed.name
        for index, (table, placed) in enumerate(zip(plan.model.tables, plan.tables, strict=False))
        if table.constraints.column_widths is not None
        and table.constraints.pin is None
        and not any(name.startswith(_CUT) for name in names[first[index] : first[index + 1]])
    ]
    if not unused:
        return []
    more = f" and {len(unused) - NAMED} more" if len(unused) > NAMED else ""
    named = ", ".join(unused[:NAMED]) + more
    return [f"No column shard of the asked-for column_widths is possible on this cluster: {named}"]
