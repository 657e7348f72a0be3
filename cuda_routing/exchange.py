"""Send every rank its keys, and the rows back, over torch.distributed (gloo or NCCL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuda_routing.errors import RoutingError
from cuda_routing.result import Bucketized


@dataclass(frozen=True)
class Received:
    """The keys that this rank received, one source rank after the other.

    Attributes
    ----------
    lengths : tensor [Σ over sources of their rows]
        Keys of each (source, row).
    keys : tensor [K]
        Source by source, in the sender's order.
    weights : tensor [K] or None
    rows_from, keys_from : list of int [P]
        Rows and keys that each source sent.
    keys_to : list of int [P]
        Keys this rank sent to each rank.
    group : process group or None
    """

    lengths: Any
    keys: Any
    weights: Any
    rows_from: list[int]
    keys_from: list[int]
    keys_to: list[int]
    group: Any = None


def exchange(result: Bucketized, *, group: Any = None) -> Received:
    """All-to-all of a bucketized batch.

    Parameters
    ----------
    result : Bucketized
        Torch tensors, bucketized for as many ranks as the group has. Batch sizes may differ between
        ranks; either all ranks send weights, or none does.
    group : process group, optional
        The default group when not given.

    Returns
    -------
    Received

    Raises
    ------
    RoutingError
        The batch was made for another number of ranks, or holds NumPy arrays.

    Notes
    -----
    The sizes are exchanged first, because buffers must be allocated; reading them is the only place
    where the host waits for the device.
    """
    import torch
    import torch.distributed as dist

    ranks = dist.get_world_size(group)
    if result.ranks != ranks:
        raise RoutingError(
            f"the batch was bucketized for {result.ranks} ranks, the group has {ranks}"
        )
    if not isinstance(result.keys, torch.Tensor):
        raise RoutingError("exchange needs torch tensors: bucketize tensors, not NumPy arrays")
    rows = result.lengths.numel() // ranks
    mine = result.keys_per_rank().long()
    sizes = torch.stack([torch.full_like(mine, rows), mine], 1)
    theirs = torch.empty_like(sizes)
    dist.all_to_all_single(theirs, sizes, group=group)
    rows_from, keys_from = (column.tolist() for column in theirs.T)
    keys_to = mine.tolist()
    lengths = _all_to_all(result.lengths, rows_from, [rows] * ranks, group)
    bits = torch.int32 if result.keys.element_size() == 4 else torch.int64
    keys = _all_to_all(result.keys.view(bits), keys_from, keys_to, group).view(result.keys.dtype)
    weights = None
    if result.weights is not None:
        weights = _all_to_all_learning(result.weights, keys_from, keys_to, group)
    return Received(lengths, keys, weights, rows_from, keys_from, keys_to, group)


def send_back(received: Received, values: Any) -> Any:
    """Send one value or row for each received key back to the rank that requested it.

    Parameters
    ----------
    received : Received
    values : tensor [K, …]
        In the order of ``received.keys``.

    Returns
    -------
    tensor
        In the order of the sender's bucketized keys; ``unbucketize`` brings it into input order.
        Gradients flow the other way.

    Raises
    ------
    RoutingError
        There is not one value per key.
    """
    if values.shape[0] != received.keys.numel():
        raise RoutingError(
            f"{values.shape[0]} values do not go with {received.keys.numel()} received keys"
        )
    return _all_to_all_learning(values, received.keys_to, received.keys_from, received.group)


def group_by_feature(received: Received, num_features: int) -> tuple[Any, Any, Any]:
    """Received keys by feature, then source, then row: the order in which a table looks them up.

    Parameters
    ----------
    received : Received
        From sources whose features all have equal batch sizes.
    num_features : int

    Returns
    -------
    lengths, keys : tensors
        By (feature, source, row).
    permute : tensor [K]
        ``values_by_feature[permute]`` is in the order of ``received.keys``, for ``send_back``.

    Raises
    ------
    RoutingError
        A source's rows do not divide over the features.
    """
    import torch

    for source, rows in enumerate(received.rows_from):
        if rows % num_features:
            raise RoutingError(
                f"rank {source} sent {rows} rows, which do not divide over {num_features} features"
            )
    device = received.keys.device
    feature_of_row = torch.cat(
        [
            torch.arange(num_features, device=device).repeat_interleave(rows // num_features)
            for rows in received.rows_from
        ]
    )
    row_order = torch.sort(feature_of_row, stable=True).indices
    feature_of_key = feature_of_row.repeat_interleave(received.lengths.long())
    order = torch.sort(feature_of_key, stable=True).indices
    permute = torch.empty_like(order)
    permute[order] = torch.arange(order.numel(), device=device)
    return received.lengths[row_order], received.keys[order], permute


def _all_to_all(values: Any, receive: list[int], send: list[int], group: Any) -> Any:
    import torch.distributed as dist

    out = values.new_empty((sum(receive), *values.shape[1:]))
    dist.all_to_all_single(out, values.contiguous(), receive, send, group=group)
    return out


def _all_to_all_learning(values: Any, receive: list[int], send: list[int], group: Any) -> Any:
    """Run the same all-to-all, with gradients sent the opposite way."""
    import torch

    class AllToAll(torch.autograd.Function):
        """All-to-all whose gradient is the opposite all-to-all."""

        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            return _all_to_all(tensor, receive, send, group)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return _all_to_all(gradient, send, receive, group)

    return AllToAll.apply(values)
