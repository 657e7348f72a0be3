"""What a file of the plan in production states: the plan, and under which workload it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.model import Workload
from milp_planner.integrations.exports import (
    dlrmv4,
    read,
    torchrec,
    with_workload,
    workload,
)
from milp_planner.integrations.replay.dlrmv4 import runs_now
from milp_planner.plans.plan_file import is_plan, plan_from_dict, read_document
from milp_planner.start.rows import StartSource, is_json, unpacked_text
from milp_planner.start.torchrec_stats import batch_of, is_stats, read_stats

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
    the TorchRec of that ``version`` where they do not say which. TorchRec's plans in JSON are
    read here. A plan.json holds a model of its own and TorchRec's printout the batch that
    its planner was told: both are compared with the model, which counts.

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
    if is_plan(document):
        plan = plan_from_dict(document, str(path))
        return Stated(plan, model, tuple(_made_for(plan.model.workload, model.workload)))
    if not document and _ASSIGNED.search(text):
        return _of_dlrmv4(text, model, cluster, version)
    if is_stats(text):
        told, batch = batch_of(read_stats(text, str(path))), model.workload.batch_per_rank
        other = told is not None and told != batch
        note = f"the planner was told a batch of {told}; judged with the model's, {batch}"
        return Stated(path, model, (note,) if other else ())
    return Stated(path, model)


def _of_dlrmv4(text: str, model: Model, cluster: Cluster, version: str | None) -> Stated:
    notes = dlrmv4.unlike(text, model)
    if others := [name for name in dlrmv4.assignments(text) if name not in dlrmv4.VARIABLES]:
        notes.append(f"not judged: {', '.join(others)}")
    if dlrmv4.has_host_memory(dlrmv4.assignments(text), version):
        notes.append("replayed with TorchRec 1.9's estimates: an older one may choose otherwise")
    plan = runs_now(text, model, cluster, version)
    return Stated(plan, dlrmv4.stated(text, model), tuple(notes))


def _of_torchrec(text: str, document: dict[str, Any], model: Model, cluster: Cluster) -> Stated:
    plan = read(text, "torchrec", model)
    if document["world_size"] != cluster.num_ranks:
        raise BadInput(
            f"world_size: found {document['world_size']}; allowed: {cluster.num_ranks}, the ranks "
            f"of {cluster.name}"
        )
    runs = with_workload(model, workload(text, "torchrec", model))
    return Stated(plan, runs, tuple(_unlike(runs.workload, model.workload)))


def _unlike(runs: Workload, model: Workload) -> Iterator[str]:
    for field, ours, theirs in _differing(model, runs):
        yield f"the file states {field} {theirs}; the model has {ours}"


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
