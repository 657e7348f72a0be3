"""The ledger: every byte of a rank's HBM as a named entry, and when in a step it is alive.

An entry belongs to shards (it follows an option to its ranks) or to every rank (it is there
wherever tables lie). What is alive at the same *moment* of a step adds up, what is not does not:
each moment is a resource of the Instance. Moments that another one implies are dropped.

With ``storage_model: torcheasyrec`` there is one moment, as in that planner: tables, ids and
outputs, nothing encoded and nothing received.

References
----------
What TorchRec keeps, tensor by tensor: TorchRec 1.8.0, ``distributed/dist_data.py`` (all-to-alls of
ids and embeddings), ``distributed/fbgemm_qcomm_codec.py`` and ``fp16`` casts of fbgemm (the codec's
clamp), ``distributed/train_pipeline`` (batches in flight). That the stock codec needs 2.5 times its
input at its peak and a casting one 1.5 times: mlcommons/training PR 889.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.inputs.model import Workload
from milp_planner.pricing.units import IntArray

FORWARD, DENSE, BACKWARD, UPDATE = "forward_exchange", "dense_part", "backward_exchange", "update"
CHECKPOINT = "checkpoint"
"""The moment at which DDR is fullest where checkpoints are staged there."""
MOMENTS = (FORWARD, DENSE, BACKWARD, UPDATE)
"""Moments of a step at which memory can be fullest, in order."""
_ALWAYS = frozenset(MOMENTS)


class Entry(NamedTuple):
    """One line of the ledger."""

    name: str
    moments: frozenset[str]
    """When it is alive."""
    what: str
    """What it is, with its formula."""


SHARD_ENTRIES = (
    Entry("weights", _ALWAYS, "rows · columns · element, of the part in HBM"),
    Entry("state", _ALWAYS, "optimizer state of these rows"),
    Entry("metadata", _ALWAYS, "dynamicemb: keys, scores, digests, counters, admission"),
    Entry("cache_index", _ALWAYS, "TorchRec caching: 4 bytes a row, 16 a slot"),
    Entry("inputs", _ALWAYS, "8 · ids the shard receives · batches in flight"),
    Entry("output", frozenset({FORWARD}), "rows it returns · columns · element"),
    Entry("encoding", frozenset({FORWARD}), "output · (wire/element + 1 if the codec clamps)"),
    Entry("gradients", frozenset({BACKWARD}), "output · (1 + wire/element): received, decoded"),
    Entry("dense_gradients", frozenset({BACKWARD, UPDATE}), "data-parallel: as the weights"),
)
"""What shards hold, in the order of ``Entries.ledger``'s columns."""
SHARD_NAMES = tuple(entry.name for entry in SHARD_ENTRIES)

RANK_ENTRIES = (
    Entry("activations", frozenset({FORWARD, DENSE}), "embeddings of the rank's batch"),
    Entry("received", frozenset({FORWARD}), "the same on the wire, until decoded"),
    Entry("activation_gradients", frozenset({DENSE, BACKWARD}), "one for each activation"),
    Entry("sent_gradients", frozenset({BACKWARD}), "gradients · (wire/element + 1 if clamped)"),
)
"""What every rank holds of the exchange wherever tables lie."""
RANK_NAMES = tuple(entry.name for entry in RANK_ENTRIES)


def alive(entries: tuple[Entry, ...], moment: str) -> IntArray:
    """Which entries are alive at a moment: 0 or 1 each, int64 array [entries]."""
    return np.array([moment in entry.moments for entry in entries], dtype=np.int64)


def batches_in_flight(workload: Workload) -> int:
    """Batches whose ids are on the device at once.

    1 without a pipeline, 2 with TorchRec's TrainPipelineSparseDist, 3 where caches prefetch
    besides; a training workload that says nothing is taken to use the first pipeline.

    References
    ----------
    TorchRec 1.8.0, ``planner/shard_estimators.py``, ``calculate_pipeline_io_cost``: two times the
    input, three times with prefetch.
    """
    if workload.prefetch_pipeline:
        return 3
    pipeline = workload.pipeline or ("sparse_dist" if workload.trains else "none")
    return {"none": 1, "sparse_dist": 2}[pipeline]


def send_share(wire: IntArray, element: IntArray, clamps: bool) -> tuple[IntArray, IntArray]:
    """What a codec holds while it encodes, over its input, as numerators and denominators.

    0 where the wire has the element's own type: nothing is encoded. Else wire/element for the
    encoded copy, and 1 for the copy that a codec makes when it clamps before it casts.
    """
    extra = wire + (element if clamps else 0)
    return np.where(wire == element, 0, extra), element


MERGED = 200
"""Moments whose room differs by less than one part in so many are one: the smaller room counts."""


def binding(
    use: dict[str, IntArray], room: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Moments that no other implies, in order, with the room of each rank.

    One is implied by another at which no shard uses less and no rank has more room. Where the other
    has more room, but by less than one part in :data:`MERGED`, it gets the smaller room: never
    looser than the machine, and one constraint fewer.
    """
    left = dict(room)
    for moment in use:
        others = [m for m in left if m != moment and bool((use[m] >= use[moment]).all())]
        near = [
            m for m in others
            if all(a - b <= b // MERGED for a, b in zip(left[m], left[moment], strict=True))
        ]  # fmt: skip
        if near:
            pairs = zip(left[near[0]], left.pop(moment), strict=True)
            left[near[0]] = tuple(min(pair) for pair in pairs)
    return left
