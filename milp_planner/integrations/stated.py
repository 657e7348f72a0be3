"""What a file of the plan in production states: the plan, and under which workload it runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_planner.drawing.units import listed
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.model import Workload
from milp_planner.integrations.exports import (
    dlrmv4,
    dynamicemb,
    read,
    torchrec,
    tzrec,
    with_workload,
    workload,
)
from milp_planner.integrations.exports.shell import without_commands
from milp_planner.integrations.replay import hstu
from milp_planner.integrations.replay.dlrmv4 import runs_now
from milp_planner.integrations.replay.dynamicemb import runs_now as dynamicemb_now
from milp_planner.integrations.replay.dynamicemb import same_world
from milp_planner.integrations.replay.tzrec import runs_now as tzrec_now
from milp_planner.plans.plan_file import is_plan, plan_from_dict, read_document
from milp_planner.start.rows import StartSource, is_json, unpacked_text
from milp_planner.start.torchrec_stats import batch_of, is_stats, read_stats

_FEATURES = re.compile(r"(?m)^\s*feature_configs\s*[:{]")
_ASSIGNED = re.compile(rf"(?m)^[^#\n]*?\b({'|'.join(dlrmv4.VARIABLES)})=")


@dataclass(frozen=True)
class Stated:
    """The plan of a file, and the model to judge it on."""

    plan: StartSource
    model: Model
    """The given one, under what the file states and its trainer's defaults for the rest."""
    notes: tuple[str, ...] = ()
    """Sentences: what differs from the given model, and what is not judged."""


def read_stated(path: Path, model: Model, cluster: Cluster, version: str | None = None) -> Stated:
    """The plan that a file holds, told by its content, and what the file states beside it.

    DLRMv4's variables are replayed: the plan is what the trainer's own planner makes of them, with
    the TorchRec of that ``version`` where they do not say which. So are TorchEasyRec's configs and
    the gin files of recsys-examples; TorchRec's plans and dynamicemb's options in JSON are read. A
    plan.json holds a model of its own and TorchRec's printout the batch that its planner was told:
    both are compared with the model, which counts.

    Raises
    ------
    BadInput
        For a file that does not fit the model or the cluster.
    FallsShort
        If the trainer would stop.
    """
    text = unpacked_text(path)
    document = read_document(path) if is_json(text) else {}
    if document.get("format") == torchrec.FORMAT:
        return _of_torchrec(text, document, model, cluster)
    if document.get("format") == dynamicemb.FORMAT:
        runs = with_workload(model, workload(text, "dynamicemb", model))
        pins, assumed = dynamicemb_now(text, runs, cluster)
        return Stated(pins, runs, (*_unlike(runs, model), *assumed))
    if is_plan(document):
        plan = plan_from_dict(document, str(path))
        return Stated(plan, model, tuple(_made_for(plan.model.workload, model.workload)))
    if not document and _ASSIGNED.search(text):
        return _of_dlrmv4(text, model, cluster, version)
    if not document and _FEATURES.search(text):
        runs = tzrec.stated(text, model)
        notes = [*_unlike(runs, model, TZREC_DEFAULTS), *tzrec.open_tables(text, runs)]
        return Stated(tzrec_now(text, runs, cluster), runs, tuple(notes))
    if not document and hstu.is_gin(text):
        runs = hstu.stated(text, model)
        pins, assumed = hstu.runs_now(text, runs, cluster)
        return Stated(pins, runs, (*_unlike(runs, model), *assumed))
    if is_stats(text):
        told, batch = batch_of(read_stats(text, str(path))), model.workload.batch_per_rank
        other = told is not None and told != batch
        note = f"the planner was told a batch of {told}; judged with the model's, {batch}"
        return Stated(path, model, (note,) if other else ())
    return Stated(path, model)


def _of_dlrmv4(text: str, model: Model, cluster: Cluster, version: str | None) -> Stated:
    text, commands = without_commands(text, dlrmv4.VARIABLES)
    notes = dlrmv4.unlike(text, model)
    if commands:
        notes.append(f"commands are not run: line {listed(list(map(str, commands)), 3)}")
    if others := [name for name in dlrmv4.assignments(text) if name not in dlrmv4.VARIABLES]:
        notes.append(f"not judged: {', '.join(others)}")
    if dlrmv4.has_host_memory(dlrmv4.assignments(text), version):
        notes.append("replayed with TorchRec 1.9's estimates: an older one may choose otherwise")
    plan = runs_now(text, model, cluster, version)
    return Stated(plan, dlrmv4.stated(text, model), tuple(notes))


def _of_torchrec(text: str, document: dict[str, Any], model: Model, cluster: Cluster) -> Stated:
    plan = read(text, "torchrec", model)
    same_world(document, cluster)
    runs = with_workload(model, workload(text, "torchrec", model))
    return Stated(plan, runs, tuple(_unlike(runs, model)))


TZREC_DEFAULTS = ("exchange_dtype", "exchange_dtype_backward", "dedup")
"""What no config of TorchEasyRec states, as its sharders are TorchRec's."""


def _unlike(runs: Model, model: Model, defaults: Collection[str] = ()) -> Iterator[str]:
    for field, ours, theirs in _differing(model.workload, runs.workload):
        who = "the trainer has" if field in defaults else "the file states"
        yield f"{who} {field} {theirs}; the model has {ours}"
    for field in ("kind", "rows", "dim", "optimizer"):
        pairs = zip(runs.tables, model.tables, strict=True)
        found = [(getattr(there, field), getattr(here, field), here.name) for there, here in pairs]
        unlike = [each for each in found if each[0] != each[1]]
        if unlike:
            theirs, ours, name = unlike[0]
            more = f"; so of {len(unlike) - 1} more tables" if unlike[1:] else ""
            yield f"the file states {field} {theirs} of {name}; the model has {ours}{more}"


def _made_for(own: Workload, model: Workload) -> Iterator[str]:
    for field, ours, theirs in _differing(model, own):
        yield f"the plan was made for {field} {theirs}; judged with the model's, {ours}"


def _differing(ours: Workload, theirs: Workload) -> Iterator[tuple[str, object, object]]:
    """Fields that differ; a backward type that is not stated is the forward one."""
    pairs = [
        {**work, "exchange_dtype_backward": work["exchange_dtype_backward"] or sent}
        for work in (ours.to_dict(), theirs.to_dict())
        for sent in [work["exchange_dtype"]]
    ]
    for field in Workload.model_fields:
        if pairs[0][field] != pairs[1][field]:
            yield field, pairs[0][field], pairs[1][field]
