"""Changes of the model that may help where nothing fits, each tried by solving."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from formulations import InstanceError, Outcome, Settings
from formulations.capacity.budget import Budget
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.table import Table
from milp_planner.plans.compile import Compiled, compile_for
from milp_planner.plans.forced import NAMED, Forced, forced_overflow
from milp_planner.pricing.exchange import wire_bytes
from milp_planner.pricing.options import WHOLE_ROWS

#: Share of the remaining time for one change.
SHARE = 0.4
COLUMN_WISE = "column_wise"
HALVES = ("fp16", "bf16")


def with_remedies(
    outcome: Outcome, compiled: Compiled, settings: Settings, seconds: float
) -> Outcome:
    """Add ``diagnosis["forced"]`` and ``diagnosis["remedies"]`` to an infeasible outcome.

    ``forced`` holds the ranks that overflow in every plan, with the tables that fill them
    (:mod:`milp_planner.plans.forced`), or None. ``remedies`` are changes of the model, each with
    ``fits``: true or false if proved within ``seconds``, else None. The sharding of more and more
    tables is changed; the first such change that fits is kept, or else the last.
    """
    diagnosis = outcome.detail.get("diagnosis")
    if not isinstance(diagnosis, Mapping):
        return outcome
    budget = Budget(replace(settings, time_limit=seconds, options={}, work_limit=None))
    forced = forced_overflow(compiled.options)
    remedies: dict[str, dict[str, Any]] = {}
    for change, model in _changes(compiled.model, compiled.cluster, forced):
        kind, known = change["kind"], remedies.get(change["kind"])
        if known is None or not known["fits"]:
            remedies[kind] = {**change, "fits": _fits(budget, model, compiled.cluster)}
    added = {
        "forced": None if forced is None else forced.to_dict(),
        "remedies": [*remedies.values()],
    }
    return outcome.with_(detail={**outcome.detail, "diagnosis": {**diagnosis, **added}})


def _fits(budget: Budget, model: Model, cluster: Cluster) -> bool | None:
    try:
        instance = compile_for(model, cluster, "total").instance
    except (BadInput, InstanceError):  # such as no column width legal on the cluster
        return False
    return budget.fits(instance, SHARE)


def _changes(
    model: Model, cluster: Cluster, forced: Forced | None
) -> Iterator[tuple[dict[str, Any], Model]]:
    """Changes that may help, each with the changed model."""
    names = [each.name for each in forced.tables if each.buffers] if forced else []
    split = [name for name in names if _could_cut_columns(model.table(name))][:NAMED]
    for count in range(1, len(split) + 1):
        change = {"kind": "sharding", "tables": split[:count], "value": COLUMN_WISE}
        yield change, _with_columns(model, split[:count])
    halves = {t.dtype for t in model.tables if _could_return_its_own(t)}
    if len(halves) == 1:
        yield {"kind": "output_dtype", "value": halves.pop()}, _returning_their_own(model)
    workload = model.workload
    coded = any(wire_bytes(workload, t) != (t.output_bytes, t.output_bytes) for t in model.tables)
    stock = workload.codec == "stock" and workload.codec_peak_factor is None
    if stock and coded and cluster.num_ranks > 1:
        yield {"kind": "codec", "value": "low_memory"}, _with_workload(model, codec="low_memory")
    if not workload.dedup and any(table.output == "sequence" for table in model.tables):
        yield {"kind": "dedup", "value": True}, _with_workload(model, dedup=True)


def _could_return_its_own(table: Table) -> bool:
    """Whether rows of 16 bits are assumed to be returned as fp32, as FBGEMM does unless told."""
    return table.kind == "torchrec" and table.output_dtype is None and table.dtype in HALVES


def _returning_their_own(model: Model) -> Model:
    tables = (
        t.model_copy(update={"output_dtype": t.dtype}) if _could_return_its_own(t) else t
        for t in model.tables
    )
    return model.model_copy(update={"tables": tuple(tables)})


def _could_cut_columns(table: Table) -> bool:
    """Whether only its constraints prevent column-wise sharding of the table."""
    allowed = table.constraints.sharding_types
    limited = allowed is not None and WHOLE_ROWS.isdisjoint(allowed)
    return table.kind == "torchrec" and table.constraints.pin is None and limited


def _with_columns(model: Model, names: list[str]) -> Model:
    return model.model_copy(
        update={"tables": tuple(_cut(t) if t.name in names else t for t in model.tables)}
    )


def _cut(table: Table) -> Table:
    limits = table.constraints.model_copy(update={"sharding_types": (COLUMN_WISE,)})
    return table.model_copy(update={"constraints": limits})


def _with_workload(model: Model, **changes: Any) -> Model:
    return model.model_copy(update={"workload": model.workload.model_copy(update=changes)})
