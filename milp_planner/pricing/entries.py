"""The ledger: every byte of a rank's HBM as a named entry, and when in a step it is alive.

An entry belongs to shards (it follows an option to its ranks) or to every rank (it exists under any
placement). Entries alive at the same *moment* of a step add up, others do not: each moment is a
resource of the Instance. Moments that another one implies are dropped.

With ``storage_model: torcheasyrec`` there is one moment, as in that planner: tables, ids and
outputs, nothing encoded and nothing received.

A rank that owns many looked-up rows is fullest when it sends them (``forward_send``) or receives
their gradients (``backward_receive``); what a rank's own batch needs is fullest when it receives
embeddings (``forward_receive``) or sends gradients (``backward_send``). The two sets of buffers
never exist together, so these are four moments and not two.

References
----------
What TorchRec keeps, tensor by tensor: TorchRec 1.8.0, ``distributed/comm_ops.py`` (buffers of the
all-to-alls and reduce-scatters), ``distributed/dist_data.py`` (ids), ``distributed/train_pipeline``
(batches in flight), ``distributed/fbgemm_qcomm_codec.py`` with fbgemm's ``quantize_comm`` (the
codec's clamp). Peaks of 2.5 times the input for the stock codec, and of 1.5 times for a casting
one: mlcommons/training PR 889. Compared with live tensors: docs/trust/memory.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.pricing.units import IntArray

FORWARD_SEND, FORWARD_RECEIVE, DENSE = "forward_send", "forward_receive", "dense_part"
BACKWARD_SEND, BACKWARD_RECEIVE, UPDATE = "backward_send", "backward_receive", "update"
CHECKPOINT = "checkpoint"
"""The moment at which DDR is fullest, if checkpoints are staged there."""
MOMENTS = (FORWARD_SEND, FORWARD_RECEIVE, DENSE, BACKWARD_SEND, BACKWARD_RECEIVE, UPDATE)
"""Moments of a step at which memory can be fullest, in order."""
REHASH = "rehash"
"""A further moment, if a dynamicemb table grows: its keys go to larger maps, before a lookup."""
_ALWAYS = frozenset((*MOMENTS, REHASH))
_FORWARD = frozenset({FORWARD_SEND, FORWARD_RECEIVE})
_LOOKUPS = _FORWARD | {BACKWARD_RECEIVE, UPDATE}
_OWNERS = frozenset({FORWARD_SEND, BACKWARD_RECEIVE})
"""Moments at which a replica's gradient is counted. It exists in the backward pass only; counting
it in the forward exchange too makes that moment imply the other, which saves a resource for a few
bytes too many."""


class Entry(NamedTuple):
    """One line of the ledger."""

    name: str
    moments: frozenset[str]
    """When it is alive."""
    what: str
    """What it is, with its formula."""


SHARD_ENTRIES = (
    Entry("weights", _ALWAYS, "rows · columns · element, of the part in HBM"),
    Entry("stashed", _ALWAYS - {DENSE}, "weights that are in host memory in the dense part"),
    Entry("state", _ALWAYS, "optimizer state of these rows"),
    Entry("metadata", _ALWAYS, "dynamicemb: keys, scores, digests, counters, admission"),
    Entry("old_keys", frozenset({REHASH}), "dynamicemb: metadata of the capacity before doubling"),
    Entry("cache_index", _ALWAYS, "TorchRec caching: 4 bytes a row, 16 a slot"),
    Entry("inputs", _ALWAYS, "8 · ids the shard receives · batches in flight; sequences twice"),
    Entry("lengths", _ALWAYS, "16 · bags of the global batch · batches in flight; sequences twice"),
    Entry("prefetch", _ALWAYS, "8 · ids of a cached shard · (1 + 6/passes), if fetched ahead"),
    Entry("output", frozenset({FORWARD_SEND}), "rows it returns · columns · element"),
    Entry("send_buffer", frozenset({FORWARD_SEND}), "the output once more, as it is sent"),
    Entry("encoding", frozenset({FORWARD_SEND}), "output · (wire/element + 1 if the codec clamps)"),
    Entry("gradients", frozenset({BACKWARD_RECEIVE}), "output · (1 + wire/element); sequences + 1"),
    Entry("gradient_bucket", _ALWAYS, "data-parallel: as the weights"),
    Entry("dense_gradients", _OWNERS, "data-parallel: as the weights, before the bucket"),
    Entry("gathered_weights", _LOOKUPS, "2D, fully sharded: the whole weights, to be looked up"),
    Entry("padded_weights", _FORWARD, "2D: a padded copy, if replicas do not divide the weights"),
)
"""Entries of shards, in the order of ``Entries.ledger``'s columns."""
SHARD_NAMES = tuple(entry.name for entry in SHARD_ENTRIES)

RANK_ENTRIES = (
    Entry(
        "receive_buffer", frozenset({FORWARD_SEND}), "embeddings of the rank's batch on the wire"
    ),
    Entry("activations", frozenset({FORWARD_RECEIVE, DENSE}), "embeddings of the rank's batch"),
    Entry("received", frozenset({FORWARD_RECEIVE}), "the same as received, and as decoded"),
    Entry("activation_gradients", frozenset({DENSE, BACKWARD_SEND}), "one for each activation"),
    Entry("sent_gradients", frozenset({BACKWARD_SEND}), "gradients in order, encoded, as sent"),
    Entry(
        "held_gradients", frozenset({BACKWARD_RECEIVE}), "pooled and not encoded: until received"
    ),
)
"""Entries of the exchange on every rank under any placement."""
RANK_NAMES = tuple(entry.name for entry in RANK_ENTRIES)


ROWS = ("weights", "stashed", "state", "metadata", "cache_index")
"""Entries of shards that do not change during a step."""
ROWS_OF_A_MOMENT = ("stashed", "gathered_weights", "padded_weights", "old_keys")
"""Entries that come and go but belong to no exchange."""


def moments_of(grows: bool) -> tuple[str, ...]:
    """The moments that count: a rehash, too, if a table grows."""
    return (*MOMENTS, REHASH) if grows else MOMENTS


def alive_outside_exchange(moment: str) -> IntArray:
    """Which shard entries are alive at a moment at which the shard exchanges nothing.

    0 or 1 each, int64 array [entries].
    """
    return np.array(
        [
            DENSE in entry.moments or (entry.name in ROWS_OF_A_MOMENT and moment in entry.moments)
            for entry in SHARD_ENTRIES
        ],
        dtype=np.int64,
    )


def stored() -> IntArray:
    """Which shard entries are rows with their state: 0 or 1 each, int64 array [entries]."""
    return np.isin(SHARD_NAMES, ROWS).astype(np.int64)


def alive(moment: str) -> IntArray:
    """Which shard entries are alive at a moment: 0 or 1 each, int64 array [entries]."""
    return np.array([moment in entry.moments for entry in SHARD_ENTRIES], dtype=np.int64)


MERGED = 200
"""Moments are merged if their room differs by at most one part in this many."""


def binding(
    use: dict[str, IntArray], room: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Moments that no other implies, in order, with the room of each rank.

    A moment is implied by another at which no shard uses less and no rank has more room. If the
    other has more room, but by at most one part in :data:`MERGED`, it gets the smaller room: never
    looser than the machine, and one constraint fewer. Of two moments with equal use, the one with
    less room remains.
    """
    left = dict(room)
    for moment in use:
        others = [
            m for m in left
            if m != moment and bool((use[m] >= use[moment]).all())
            and (left[m] <= left[moment] or bool((use[m] > use[moment]).any()))
        ]  # fmt: skip
        near = [
            m for m in others
            if all(a - b <= b // MERGED for a, b in zip(left[m], left[moment], strict=True))
        ]  # fmt: skip
        if near:
            pairs = zip(left[near[0]], left.pop(moment), strict=True)
            left[near[0]] = tuple(min(pair) for pair in pairs)
    return left
