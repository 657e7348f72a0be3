"""The Outcome as JSON: what ``solve --json`` prints, ``verify`` reads and plan.json embeds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import Instance, Objective, strict_json
from formulations.instance.strict_json import Reader, shown
from formulations.result.certificate import certificate_from_dict, certificate_to_dict
from formulations.result.outcome import BoundSource, GoalReached, Outcome, Status, StoppedBy
from formulations.result.placement import Placement
from formulations.settings import GOALS, MOVED_BYTES, STASHED, TracePoint

_KEYS = {
    "status", "stopped_by", "objective", "objective_kind", "bound", "bound_source",
    "certified_bound", "gap", "objectives", "formulation", "seconds", "solver", "version",
    "settings", "note", "instance", "tables", "certificate", "trace", "detail",
    "goals", "before_goals",
}  # fmt: skip


def outcome_to_dict(
    instance: Instance, outcome: Outcome, identity: str | None = None
) -> dict[str, Any]:
    """The document of an Outcome (see docs/outcome.md); None, not 0, for what is unknown.

    It calls its instance ``identity``, by default its fingerprint.
    """
    source = outcome.bound_source
    certificate = outcome.certificate
    others = {} if instance.objective == Objective.PIPELINED_STEP else {Objective.PIPELINED_STEP}
    return {
        "status": outcome.status.value,
        "stopped_by": outcome.stopped_by.value,
        "objective": outcome.objective,
        "objective_kind": instance.objective.value,
        "bound": outcome.bound,
        "bound_source": None
        if source is None
        else {"method": source.method, "exact": source.exact},
        "certified_bound": outcome.certified_bound,
        "gap": outcome.gap,
        "objectives": {
            o.value: outcome.objectives.get(o.value) for o in Objective if o not in others
        },
        "formulation": outcome.formulation,
        "seconds": outcome.seconds,
        "solver": outcome.solver,
        "version": outcome.version,
        "settings": outcome.settings,
        "note": outcome.note,
        "instance": identity or instance.fingerprint,
        "tables": None
        if outcome.placement is None
        else tables_to_dict(instance, outcome.placement),
        "certificate": None if certificate is None else certificate_to_dict(certificate),
        "trace": [[p.seconds, p.objective, p.bound, p.source] for p in outcome.trace],
        "detail": outcome.detail,
        "goals": [asdict(goal) for goal in outcome.goals],
        "before_goals": outcome.before_goals,
    }


def tables_to_dict(instance: Instance, placement: Placement) -> dict[str, Any]:
    """Option and ranks of every table."""
    return {
        name: {
            "option": instance.option_names[int(placement.options[t])],
            "ranks": placement.to_lists(t),
        }
        for t, name in enumerate(instance.table_names)
    }


def outcome_from_dict(
    instance: Instance, document: Any, what: str = "outcome", identity: str | None = None
) -> Outcome:
    """Rebuild an Outcome from its document.

    Claims (objective, bound, status) are kept as written;
    :func:`formulations.evidence.verify.verify` judges them.

    Parameters
    ----------
    instance : Instance
    document : dict
    what : str
        Names the document in errors.
    identity : str, optional
        What the document must call its instance; default: the instance's fingerprint.

    Raises
    ------
    InstanceError
        When a field is malformed, names a table or option that the instance does not have, or says
        that the outcome belongs to another instance.
    """
    top = Reader(document, what, _KEYS)
    ours = {k: v for k, v in document.items() if k not in ("certificate", "settings")}
    strict_json.check_numbers(ours, what)
    _same_instance(instance, top, identity or instance.fingerprint)
    tables = top.value("tables")
    certificate = top.value("certificate")
    outcome = Outcome(
        status=Status(top.choice("status", [s.value for s in Status])),
        stopped_by=StoppedBy(top.choice("stopped_by", [s.value for s in StoppedBy])),
        formulation=top.get("formulation", str),
        placement=None if tables is None else placement_from_dict(instance, document, what),
        objective=_optional(top, "objective"),
        objectives=_objectives(top),
        bound=_optional(top, "bound"),
        bound_source=_source(top),
        certificate=None if certificate is None else certificate_from_dict(certificate, what),
        certified_bound=_optional(top, "certified_bound"),
        seconds=_seconds(top, top.value("seconds"), "seconds"),
        trace=tuple(_point(top, i, point) for i, point in enumerate(top.items("trace"))),
        solver=top.get("solver", str, ""),
        version=top.get("version", str, ""),
        settings=top.get("settings", dict, {}),
        note=top.get("note", str, ""),
        detail=top.get("detail", dict, {}),
        goals=tuple(_goal(top, i, g) for i, g in enumerate(_list(top, "goals"))),
        before_goals=_optional(top, "before_goals") if top.has("before_goals") else None,
    )
    _same_gap(top, outcome)
    return outcome


def _same_instance(instance: Instance, top: Reader, identity: str) -> None:
    kind = top.choice("objective_kind", [o.value for o in Objective])
    if kind != instance.objective.value:
        raise InstanceError(
            f"{top.what}: minimises {kind}, the instance asks for {instance.objective.value}"
        )
    if top.get("instance", str) != identity:
        raise InstanceError(
            f"{top.what}: answers another instance, or was written before version 0.2.0 (its "
            f"fingerprint is {shown(top.value('instance'))}, this one's "
            f"{shown(identity)}); solve again"
        )


def _objectives(top: Reader) -> dict[str, int]:
    reader = Reader(
        top.value("objectives"), f"{top.what}: objectives", {o.value for o in Objective}
    )
    given = {o.value: _optional(reader, o.value) for o in Objective if reader.has(o.value)}
    return {name: value for name, value in given.items() if value is not None}


def _seconds(top: Reader, value: Any, key: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value < float("inf"):
        raise InstanceError(f"{top.what}: {key} must be seconds from 0, found {shown(value)}")
    return float(value)


def _point(top: Reader, index: int, value: Any) -> TracePoint:
    key = f"trace[{index}]"
    top.is_a(value, list, key)
    if len(value) != 4:
        raise InstanceError(
            f"{top.what}: {key} must be [seconds, objective, bound, source], found {shown(value)}"
        )
    seconds, objective, bound, source = value
    for found in (objective, bound):
        if found is not None:
            top.is_a(found, int, key)
    top.is_a(source, str, key)
    return TracePoint(_seconds(top, seconds, key), objective, bound, source)


def _list(top: Reader, key: str) -> list[Any]:
    return top.items(key) if top.has(key) else []  # missing in older files


def _goal(top: Reader, index: int, value: Any) -> GoalReached:
    reader = Reader(
        value, f"{top.what}: goals[{index}]", {"goal", "scope", "value", "bound", "met"}
    )
    return GoalReached(
        reader.choice("goal", [*GOALS, MOVED_BYTES, STASHED]), reader.get("scope", str),
        reader.get("value", int),
        _optional(reader, "bound"), reader.get("met", bool),
    )  # fmt: skip


def _same_gap(top: Reader, outcome: Outcome) -> None:
    claimed, actual = top.value("gap"), outcome.gap
    number = isinstance(claimed, (int, float)) and not isinstance(claimed, bool)
    agree = claimed is None if actual is None else number
    if not agree or (actual is not None and abs(claimed - actual) > 1e-12):
        raise InstanceError(
            f"{top.what}: gap is {shown(claimed)}, its own objective and bound give {actual}"
        )


def _optional(top: Reader, key: str) -> int | None:
    value = top.value(key)
    if value is not None:
        top.is_a(value, int, key)
    return value


def _source(top: Reader) -> BoundSource | None:
    value = top.value("bound_source")
    if value is None:
        return None
    source = Reader(value, f"{top.what}: bound_source", {"method", "exact"})
    return BoundSource(source.get("method", str), source.get("exact", bool))


def placement_from_dict(instance: Instance, document: Any, what: str = "outcome") -> Placement:
    """The placement in the document of an Outcome, which may be another instance's: tables and
    options are found by their names.

    Raises
    ------
    InstanceError
        When a table or an option is missing, or is none of the instance's.
    """
    top = Reader(document, what, _KEYS)
    tables = top.get("tables", dict)
    missing = [n for n in instance.table_names if n not in tables]
    if missing:
        raise InstanceError(f"{top.what}: table {missing[0]!r} is missing from tables")
    names = set(instance.table_names)
    extra = [n for n in tables if n not in names]
    if extra:
        raise InstanceError(top.unknown("table", extra[0], list(instance.table_names)))
    options, ranks = [], []
    for table, name in enumerate(instance.table_names):
        reader = Reader(tables[name], f"{top.what}: tables.{name}", {"option", "ranks"})
        options.append(_option(instance, table, reader))
        blocks = reader.items("ranks")
        lists = [reader.integers(b, f"ranks[{i}]") for i, b in enumerate(blocks)]
        ranks.append([np.asarray(block, dtype=np.int64) for block in lists])
    return Placement(np.asarray(options, dtype=np.int64), ranks)


def _option(instance: Instance, table: int, reader: Reader) -> int:
    name = reader.get("option", str)
    try:
        return instance.option_index(table, name)
    except KeyError:
        names = [instance.option_names[o] for o in instance.options_of(table)]
        raise InstanceError(reader.unknown("option", name, names)) from None
