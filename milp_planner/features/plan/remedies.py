"""What may help where nothing fits, tried by solving: changes of the model, more machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from formulations import Instance, InstanceError, Outcome, Settings
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from formulations.result.outcome import StoppedBy, nothing
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.changes import changed_at_scale, changed_cluster, changed_model
from milp_planner.inputs.table import Table
from milp_planner.plans.compile import Compiled, compile_for
from milp_planner.plans.forced import NAMED, Forced, forced_overflow, without_ratio
from milp_planner.pricing.exchange import wire_bytes
from milp_planner.pricing.options import WHOLE_ROWS

#: Shares of the remaining time: for one change, and for one number of machines.
CHANGE_SHARE, MACHINES_SHARE = 0.4, 0.3
COLUMN_WISE = "column_wise"
HALVES = ("fp16", "bf16")


def with_remedies(
    outcome: Outcome, compiled: Compiled, settings: Settings, seconds: float
) -> Outcome:
    """Add ``diagnosis["forced"]`` and ``diagnosis["remedies"]`` to an infeasible outcome.

    ``forced`` holds the ranks that overflow in every plan, with the tables that fill them
    (:mod:`milp_planner.plans.forced`), or None; ``caches``, if there are any, says which tables
    share a cache and have no ratio in common. ``remedies`` are changes of the model, each with
    ``fits``: true or false if proved within ``seconds``, else None. The sharding of more and more
    tables is changed; the first such change that fits is kept, or else the last.
    """
    diagnosis = outcome.detail.get("diagnosis")
    if not isinstance(diagnosis, Mapping):
        return outcome
    budget = Budget(replace(settings, time_limit=seconds, options={}, work_limit=None))
    forced, unlike = forced_overflow(compiled.options), without_ratio(compiled.options)
    remedies: dict[str, dict[str, Any]] = {}
    for change, model in _changes(compiled.model, compiled.cluster, forced):
        kind, known = change["kind"], remedies.get(change["kind"])
        if known is None or not known["fits"]:
            remedies[kind] = {**change, "fits": _fits(budget, model, compiled.cluster)}
    added = {
        "forced": None if forced is None else forced.to_dict(),
        **({} if unlike is None else {"caches": unlike[0]}),
        "remedies": [*remedies.values()],
    }
    return outcome.with_(detail={**outcome.detail, "diagnosis": {**diagnosis, **added}})


def _fits(budget: Budget, model: Model, cluster: Cluster) -> bool | None:
    try:
        instance = compile_for(model, cluster, "total").instance
    except (BadInput, InstanceError):  # such as no column width legal on the cluster
        return False
    return budget.fits(instance, CHANGE_SHARE)


def _changes(
    model: Model, cluster: Cluster, forced: Forced | None
) -> Iterator[tuple[dict[str, Any], Model]]:
    """Changes that may help, each with the changed model."""
    names = [each.name for each in forced.tables if each.buffers] if forced else []
    split = [name for name in names if _could_cut_columns(model.table(name))][:NAMED]
    for count in range(1, len(split) + 1):
        change = {"kind": "sharding", "tables": split[:count], "value": COLUMN_WISE}
        paths = [f"tables.{name}.constraints.sharding_types" for name in split[:count]]
        yield change, changed_model(model, dict.fromkeys(paths, (COLUMN_WISE,)))
    halves = {t.dtype for t in model.tables if _could_return_its_own(t)}
    if len(halves) == 1:
        dtypes = {f"tables.{t.name}.output_dtype": t.dtype for t in model.tables
                  if _could_return_its_own(t)}  # fmt: skip
        yield {"kind": "output_dtype", "value": halves.pop()}, changed_model(model, dtypes)
    workload = model.workload
    coded = any(wire_bytes(workload, t) != (t.output_bytes, t.output_bytes) for t in model.tables)
    stock = workload.codec == "stock" and workload.codec_peak_factor is None
    if stock and coded and cluster.num_ranks > 1:
        yield (
            {"kind": "codec", "value": "low_memory"},
            changed_model(model, {"codec": "low_memory"}),
        )
    if not workload.dedup and any(table.output == "sequence" for table in model.tables):
        yield {"kind": "dedup", "value": True}, changed_model(model, {"dedup": True})


def _could_return_its_own(table: Table) -> bool:
    """Whether rows of 16 bits are assumed to be returned as fp32, as FBGEMM does unless told."""
    return table.kind == "torchrec" and table.output_dtype is None and table.dtype in HALVES


def _could_cut_columns(table: Table) -> bool:
    """Whether only its constraints prevent column-wise sharding of the table."""
    allowed = table.constraints.sharding_types
    limited = allowed is not None and WHOLE_ROWS.isdisjoint(allowed)
    return table.kind == "torchrec" and table.constraints.pin is None and limited


#: Most machines to try, as a multiple of the present number.
MOST_TIMES = 16


def with_more_machines(
    outcome: Outcome, model: Model, cluster: Cluster, settings: Settings, seconds: float
) -> Outcome:
    """Add ``diagnosis["machines"]`` to an infeasible outcome, if all machines are alike.

    The number is doubled until a plan exists, then bisected, within ``seconds``. ``now`` is the
    present number; ``enough`` a number with a plan (None: none was found); ``too_few`` the largest
    smaller number proved to have none; ``tried`` the largest tried. The global batch stays as it
    is. Only memory decides: a link between machines that the cluster does not describe counts as
    fast as the link inside one.
    """
    diagnosis = outcome.detail.get("diagnosis")
    alike = len(set(cluster.machines)) == 1 and cluster.replicas == 1
    if not isinstance(diagnosis, Mapping) or not alike:
        return outcome
    budget = Budget(replace(settings, time_limit=seconds, options={}, work_limit=None))
    found = _search(model, _linked(cluster), budget)
    return outcome.with_(detail={**outcome.detail, "diagnosis": {**diagnosis, "machines": found}})


def _linked(cluster: Cluster) -> Cluster:
    links = cluster.interconnect
    inside = "1GB/s" if links is None else f"{links.intra_machine}B/s"
    fields = {"intra_machine": inside, "inter_machine": inside}
    stated = () if links is None else [n for n in fields if getattr(links, n) is not None]
    missing = {f"interconnect.{n}": rate for n, rate in fields.items() if n not in stated}
    return changed_cluster(cluster, missing)


def _search(model: Model, cluster: Cluster, budget: Budget) -> dict[str, int | None]:
    """The numbers of :func:`with_more_machines`."""

    def made(count: int) -> Instance:
        return compile_for(*changed_at_scale(model, cluster, {"machines": count}), "total").instance

    def fitted(count: int, share: float) -> Outcome:
        try:
            return budget.try_to_fit(made(count), share)
        except (BadInput, InstanceError):  # such as sums too large for an Instance
            return nothing("", StoppedBy.EXHAUSTED)

    curve = Curve(made, None, budget, ask=fitted)
    now = len(cluster.machines)
    tried = too_few = now  # the solve proved that these are too few
    fits: bool | None = None
    while not fits and tried < MOST_TIMES * now and not budget.over():
        tried *= 2
        fits = curve.solve(tried, MACHINES_SHARE).reaches(None)
        too_few = tried if fits is False else too_few
    enough = None
    if fits:
        enough, refuted = curve.least(tried // 2, tried, share=MACHINES_SHARE)
        too_few = refuted if refuted > tried // 2 else too_few
    return {"now": now, "enough": enough, "too_few": too_few, "tried": tried}
