"""Bucketize a KeyedJaggedTensor: what a trainer calls before its all-to-all."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuda_routing.bucketize import bucketize
from cuda_routing.errors import RoutingError
from cuda_routing.rules import Rule


@dataclass(frozen=True)
class BucketizedKjt:
    """A batch grouped by the rank that owns each key.

    Attributes
    ----------
    kjt : KeyedJaggedTensor
        All features once per rank, those of rank 0 first, so that ``KJTAllToAll`` can split them
        evenly. Keys are as the owning rank stores them, in input order within each (rank, feature,
        sample).
    unbucketize_permute : tensor [N] or None
        Where each input key went: ``values[unbucketize_permute]`` are in input order.
    positions : tensor [N] or None
        Place of each key inside its original bag, in the order of ``kjt.values()``.
    """

    kjt: Any
    unbucketize_permute: Any
    positions: Any


def bucketize_kjt(  # noqa: PLR0913 - one keyword per setting of bucketize
    kjt: Any,
    *,
    ranks: int,
    rule: Rule | int | str | Sequence[Any] | Mapping[str, Any] = Rule.ROUNDROBIN,
    block_sizes: int | Sequence[int] | Mapping[str, int] | None = None,
    boundaries: Sequence[Any] | Mapping[str, Any] | None = None,
    positions: bool = False,
    permute: bool = True,
    dynamicemb_int32: bool = True,
    backend: str = "auto",
    threads: int | None = None,
) -> BucketizedKjt:
    """Group the keys of a KeyedJaggedTensor by owner; lengths and weights go along.

    The result equals that of TorchRec's ``bucketize_kjt_before_all2all`` (FBGEMM's
    ``block_bucketize_sparse_features``) for rules that it has, and always the definition in
    :mod:`cuda_routing.rules`.

    Parameters
    ----------
    kjt : torchrec.sparse.jagged_tensor.KeyedJaggedTensor
        F features; batch sizes may differ by feature.
    ranks : int
        P.
    rule, block_sizes, boundaries
        As in :func:`cuda_routing.bucketize`: one value, or one per feature, by order or by name.
        Features that a mapping does not name get roundrobin, no block size and no boundaries.
    positions, permute : bool
        Whether to return each key's place inside its bag, and where each input key went.
    dynamicemb_int32 : bool
        Route int32 keys as dynamicemb's runtime does (:func:`cuda_routing.rules.owners`).
    backend, threads
        As in :func:`cuda_routing.bucketize`.

    Returns
    -------
    BucketizedKjt
        On the device of the keys; gradients flow through the weights.

    Raises
    ------
    RoutingError
        Settings that do not go with the features, or a name that is not among them.
    BackendUnavailable
        The package or device of a forced backend is absent.
    """
    names = list(kjt.keys())
    if not names:
        raise RoutingError("a KeyedJaggedTensor without features has nothing to route")
    varies = kjt.variable_stride_per_key()
    found = bucketize(
        kjt.lengths().view(-1),
        kjt.values(),
        num_features=len(names),
        ranks=ranks,
        rule=_by_feature(rule, names, Rule.ROUNDROBIN, "rule"),
        block_sizes=_by_feature(block_sizes, names, None, "block_sizes"),
        boundaries=_by_feature(boundaries, names, None, "boundaries"),
        weights=kjt.weights_or_none(),
        batch_sizes=kjt.stride_per_key() if varies else None,
        positions=positions,
        permute=permute,
        dynamicemb_int32=dynamicemb_int32,
        backend=backend,
        threads=threads,
    )
    strides = {"stride_per_key_per_rank": kjt.stride_per_key_per_rank() * ranks} if varies else {
        "stride": kjt.stride()
    }  # fmt: skip
    grouped = type(kjt)(
        keys=names * ranks, values=found.keys, weights=found.weights, lengths=found.lengths,
        **strides,
    )  # fmt: skip
    return BucketizedKjt(grouped, found.permute, found.positions)


def _by_feature(value: Any, names: list[str], default: Any, what: str) -> Any:
    """A mapping by feature name as a list in the order of the features; others as they are."""
    if not isinstance(value, Mapping):
        return value
    for name in value:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RoutingError(
                f"{what} names feature {name!r}, but the features are {', '.join(names)}{hint}"
            )
    return [value.get(name, default) for name in names]
