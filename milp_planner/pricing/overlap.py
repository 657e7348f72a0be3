"""A step whose exchanges hide behind other work: phases, prices and what is hidden of each.

On a rank, the lookup of a batch follows the gradients and the update of the one before: ranks meet
once, so these are one phase, ``compute``, which also has the all-reduce and the update of replicas.
Nothing hides it. Both exchanges of embeddings hide behind what the dense part does meanwhile. The
exchange of ids, and prefetching, hide behind the dense part if the pipeline does them for the next
batch; they would hide behind lookups and updates as well, which depend on the plan, so that a step
may take less than this objective says, never more.

References
----------
HugeCTR, ``src/pybind/model_pipeline.cpp``; TorchRec, ``train_pipeline/train_pipelines.py``, and for
the exchange of ids ``planner/estimator`` (pull request 3575).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.inputs.model import DensePart, Workload
from milp_planner.pricing.options import PHASES, SYNC, Options
from milp_planner.pricing.units import IntArray, picoseconds

PIPELINED = ("compute", "fwd_comms", "bwd_comms", "ids", "prefetch")
"""Phases of a pipelined step, followed by ``SYNC`` if sharding groups are averaged."""


class Overlapped(NamedTuple):
    """The phases of a pipelined step."""

    phases: tuple[str, ...]
    cost: IntArray
    """Picoseconds; int64 array [entries, phases]."""
    hidden: tuple[int, ...]
    """Picoseconds of each phase that other work hides."""


def overlapped(options: Options) -> Overlapped:
    """Phases, prices and hidden times of a pipelined step."""
    workload = options.model.workload
    whole, replicated = options.entries.cost, _replicated(options)
    forward, out, backward, back, prefetch = (whole[:, i] for i in range(len(PHASES)))
    compute = forward + backward + np.where(replicated, back, 0)
    columns = [compute, out, np.where(replicated, 0, back), ids_time(options), prefetch]
    phases: tuple[str, ...] = PIPELINED
    hidden = hidden_times(workload)
    if SYNC in options.phases:
        columns.append(whole[:, options.phases.index(SYNC)])
        phases, hidden = (*phases, SYNC), (*hidden, 0)
    return Overlapped(phases, np.stack(columns, axis=1), hidden)


def ids_time(options: Options) -> IntArray:
    """Picoseconds in which each shard receives its ids; int64 array [entries].

    8 bytes an id, after deduplication and with the shard's share of its table's ids, at the
    bandwidth of an all-to-all; 0 for replicas. Like TorchRec, we leave out the exchange of lengths.
    """
    seconds = options.entries.incoming / options.links.all_to_all
    return picoseconds(np.where(_replicated(options), 0.0, seconds))


def hidden_times(workload: Workload) -> tuple[int, ...]:
    """Picoseconds that the dense part hides of each of ``PIPELINED``.

    ``none``: the exchange of ids and prefetching are for the batch at hand, so nothing hides them.
    ``sparse_dist`` and ``hugectr``: ids of the next batch are exchanged beside the dense part; with
    ``prefetch_pipeline``, beside its forward pass, and rows are then fetched beside its backward.
    """
    dense = workload.dense_part or DensePart()
    ids = prefetch = 0.0
    if workload.prefetch_pipeline:
        ids, prefetch = dense.forward_ms, dense.backward_ms
    elif workload.pipelined != "none":
        ids = dense.forward_ms + dense.backward_ms
    beside = dense.beside_forward_exchange_ms, dense.beside_backward_exchange_ms
    milliseconds = np.array([0.0, *beside, ids, prefetch])
    return tuple(picoseconds(milliseconds / 1000).tolist())


def _replicated(options: Options) -> np.ndarray:
    """Shard entries of replicated tables; bool array [entries]."""
    choices, index = options.distinct
    every = np.array([choice.sharding == "data_parallel" for choice in choices], dtype=np.bool_)
    return np.repeat(every[index], np.diff(options.entries.first))
