"""Group the keys of a batch by the rank that owns them: the public entry of every path."""

from __future__ import annotations

import functools
import importlib
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuda_routing.errors import BackendUnavailable, RoutingError
from cuda_routing.features import Features, make_features
from cuda_routing.oracle import bucketize_numpy, feature_starts
from cuda_routing.result import Bucketized, Traffic
from cuda_routing.rules import Rule

BACKENDS = ("auto", "numpy", "numba", "torch", "cuda")
WORTH_COMPILING = 1 << 15


@dataclass(frozen=True)
class _Wanted:
    """What to return, and the backend to use."""

    positions: bool
    permute: bool
    dedup: bool
    backend: str
    threads: int | None


def bucketize(  # noqa: PLR0913 - the operation has this many settings, all by keyword
    lengths: Any,
    keys: Any,
    *,
    num_features: int,
    ranks: int,
    rule: Rule | int | str | Any = Rule.ROUNDROBIN,
    block_sizes: Any = None,
    weights: Any = None,
    boundaries: Any = None,
    batch_sizes: Any = None,
    positions: bool = False,
    permute: bool = True,
    dedup: bool = False,
    dynamicemb_int32: bool = False,
    backend: str = "auto",
    threads: int | None = None,
) -> Bucketized:
    """Group keys by owner, keeping their order within each rank.

    Parameters
    ----------
    lengths : int array or tensor [rows]
        Keys in each bag, features one after the other (row = t · B + b).
    keys : int32, int64 or uint64 array or tensor [N]
    num_features, ranks : int
        T and P.
    rule : Rule, int, str, or one per feature
        Which rank owns a key; see :mod:`cuda_routing.rules`.
    block_sizes : int or sequence [T], optional
        Rows of each table that a rank holds, ceil(rows / P); needed by ``continuous`` features.
    weights : float array or tensor [N], optional
        Moved along with the keys; gradients flow through torch tensors.
    boundaries : sequence [T] of (sequence [P + 1] or None), optional
        Custom boundaries of ``continuous`` features.
    batch_sizes : sequence [T], optional
    positions, permute : bool
        Whether to return each key's place inside its bag, and where each input key went.
    dedup : bool
        Send each distinct key of a feature once. ``permute`` then maps several inputs to it,
        ``lengths`` counts keys per (rank, feature), and ``traffic`` says how much was saved.
    dynamicemb_int32 : bool
        dynamicemb's hash of int32 keys; see :func:`cuda_routing.rules.owners`.
    backend : str
        ``auto`` selects the fastest available; ``numpy``, ``numba``, ``torch``, ``cuda`` force one.
    threads : int, optional
        CPU threads of the numba path (all cores when not given).

    Returns
    -------
    Bucketized
        Torch tensors on the device of ``keys`` if they were tensors, else NumPy arrays.

    Raises
    ------
    RoutingError
        Counts that do not fit, unknown rule or backend. (On a GPU lengths are trusted.)
    BackendUnavailable
        The package or device of a forced backend is absent.
    """
    if backend not in BACKENDS:
        raise RoutingError(f"unknown backend {backend!r}: allowed are {', '.join(BACKENDS)}")
    lengths, keys = as_flat(lengths, "lengths"), as_flat(keys, "keys")
    features = make_features(
        num_features, _size(lengths), ranks, rule, block_sizes=block_sizes,
        boundaries=boundaries, batch_sizes=batch_sizes, dynamicemb_int32=dynamicemb_int32,
    )  # fmt: skip
    _check_weights(weights, _size(keys), positions, dedup)
    wanted = _Wanted(positions, permute, dedup, backend, threads)
    if _is_tensor(keys):
        return _tensors(lengths, keys, features, weights, wanted)
    moved = None if weights is None else np.asarray(weights)
    return _arrays(lengths, keys, features, moved, wanted)


def as_flat(values: Any, what: str) -> Any:
    """Return a one-dimensional integer array or tensor, refusing anything else.

    Raises
    ------
    RoutingError
        Not one-dimensional, or not 32 or 64-bit integers.
    """
    array = values if _is_tensor(values) else np.asarray(values)
    if _size(array) == 0 and not _is_tensor(array) and array.dtype.kind == "f":
        array = array.astype(np.int64)
    name = str(array.dtype).removeprefix("torch.")
    if name not in ("int32", "int64", "uint32", "uint64") or array.ndim != 1:
        raise RoutingError(
            f"{what} must be one row of 32 or 64-bit integers, "
            f"got {name} of {array.ndim} dimensions"
        )
    if what == "lengths" and name.startswith("u"):
        raise RoutingError(f"lengths must be int32 or int64, got {name}")
    return array


def choose_cpu(backend: str, keys: int) -> str:
    """CPU backend for this many keys: numba if it is installed and worth its start-up time.

    Raises
    ------
    BackendUnavailable
        The package of a forced backend is absent.
    """
    if backend in ("numpy", "torch"):
        return backend
    if backend == "cuda":
        raise BackendUnavailable("backend 'cuda' needs keys that are a tensor on a CUDA device")
    if backend == "numba" and not have_numba():
        raise BackendUnavailable("backend 'numba' needs numba: pip install numba")
    worth = keys >= WORTH_COMPILING or "cuda_routing.numba_path" in sys.modules
    return "numba" if backend == "numba" or (worth and have_numba()) else "numpy"


@functools.cache
def have_numba() -> bool:
    """Whether numba can be imported and supports this NumPy version."""
    try:
        importlib.import_module("cuda_routing.numba_path")
    except ImportError:
        return False
    return True


def _arrays(
    lengths: Any, keys: Any, features: Features, weights: Any, wanted: _Wanted
) -> Bucketized:
    path = choose_cpu(wanted.backend, keys.size)
    if path == "torch":
        return _through_torch(lengths, keys, features, weights, wanted)
    if wanted.dedup:
        return _deduplicated(lengths, keys, features, wanted, path)
    options = {"weights": weights, "positions": wanted.positions, "permute": wanted.permute}
    if path == "numba":
        from cuda_routing.numba_path import bucketize_numba

        return bucketize_numba(lengths, keys, features, threads=wanted.threads, **options)
    check_sizes(lengths, keys.size)
    return bucketize_numpy(lengths, keys, features, **options)


def check_sizes(lengths: Any, keys: int) -> None:
    """Refuse lengths that are negative or do not add up to the number of keys."""
    least = int(lengths.min()) if lengths.size else 0
    total = int(lengths.sum(dtype=np.int64))
    if least < 0:
        raise RoutingError(f"lengths must not be negative, found {least}")
    if total != keys:
        raise RoutingError(f"lengths add up to {total}, but there are {keys} keys")


def _through_torch(
    lengths: Any, keys: Any, features: Features, weights: Any, wanted: _Wanted
) -> Bucketized:
    """Bucketize NumPy arrays by torch operations (unsigned keys travel as bit patterns)."""
    import torch

    check_sizes(lengths, keys.size)
    bits = keys.view(np.dtype(f"i{keys.dtype.itemsize}"))
    moved = None if weights is None else torch.from_numpy(np.ascontiguousarray(weights))
    tensors = torch.from_numpy(lengths), torch.from_numpy(np.ascontiguousarray(bits))
    found = _tensors(*tensors, features, moved, wanted)
    arrays: dict[str, Any] = {name: _numpy(getattr(found, name)) for name in _FIELDS}
    arrays["keys"] = arrays["keys"].view(keys.dtype)
    return replace(found, **arrays)


_FIELDS = ("lengths", "keys", "weights", "positions", "permute")


def _numpy(tensor: Any) -> Any:
    return None if tensor is None else tensor.numpy()


def _tensors(
    lengths: Any, keys: Any, features: Features, weights: Any, wanted: _Wanted
) -> Bucketized:
    """Bucketize torch tensors, keeping gradients through the weights."""
    learn = weights is not None and weights.requires_grad
    inner = replace(wanted, permute=wanted.permute or learn)
    found = _tensors_plain(lengths, keys, features, None if learn else weights, inner)
    if not learn:
        return found
    moved = weights.new_zeros(weights.shape).index_copy(0, found.permute.long(), weights)
    return replace(found, weights=moved, permute=found.permute if wanted.permute else None)


def _tensors_plain(
    lengths: Any, keys: Any, features: Features, weights: Any, wanted: _Wanted
) -> Bucketized:
    import torch

    if keys.device != lengths.device:
        raise RoutingError(f"lengths are on {lengths.device}, keys on {keys.device}")
    options = {"weights": weights, "positions": wanted.positions, "permute": wanted.permute}
    if keys.device.type == "cpu" and choose_cpu(wanted.backend, keys.numel()) != "torch":
        arrays = [None if x is None else x.detach().numpy() for x in (lengths, keys, weights)]
        result = _arrays(arrays[0], arrays[1], features, arrays[2], wanted)
        fields: dict[str, Any] = {name: getattr(result, name) for name in _FIELDS}
        for name, array in fields.items():
            fields[name] = None if array is None else torch.from_numpy(array)
        return replace(result, **fields)
    if wanted.dedup:
        return _deduplicated(lengths, keys, features, wanted, "torch")
    if keys.device.type == "cuda":
        from cuda_routing.cuda_path import bucketize_cuda

        return bucketize_cuda(lengths, keys, features, backend=wanted.backend, **options)
    from cuda_routing.torch_path import bucketize_torch

    return bucketize_torch(lengths, keys, features, **options)


def _deduplicated(
    lengths: Any, keys: Any, features: Features, wanted: _Wanted, path: str
) -> Bucketized:
    """De-duplicate each feature's keys, then group the rest."""
    from cuda_routing import unique

    if path == "torch":
        import torch

        ends = torch.cumsum(lengths.long(), 0)
        starts = torch.cat([ends.new_zeros(1), ends])[
            torch.from_numpy(features.row_starts).to(ends.device)
        ]
        kept, counts, inverse = unique.unique_torch(keys, starts)
    else:
        check_sizes(lengths, keys.size)
        find = unique.unique_numba if path == "numba" else unique.unique_numpy
        kept, counts, inverse = find(keys, feature_starts(lengths, features))
    inner = replace(wanted, dedup=False, permute=True)
    route = _tensors_plain if path == "torch" else _arrays
    found = route(counts, kept, features.one_row_each(), None, inner)
    width = keys.element_size() if _is_tensor(keys) else keys.itemsize
    before, after = _size(keys), _size(kept)
    traffic = Traffic(before, after, before * width, after * width)
    where = found.permute[inverse] if wanted.permute else None
    return replace(found, lengths=_like(found.lengths, lengths), permute=where, traffic=traffic)


def _like(values: Any, model: Any) -> Any:
    return values.to(model.dtype) if _is_tensor(values) else values.astype(model.dtype)


def _check_weights(weights: Any, keys: int, positions: bool, dedup: bool) -> None:
    if dedup and weights is not None:
        raise RoutingError(
            "weights cannot travel with de-duplicated keys, which stand for several lookups: "
            "apply them to the rows that come back"
        )
    if dedup and positions:
        raise RoutingError("a de-duplicated key has no single position in a bag")
    if weights is not None and _size(weights) != keys:
        raise RoutingError(f"{_size(weights)} weights do not go with {keys} keys")


def _is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor (torch is not imported to find out)."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _size(value: Any) -> int:
    return int(value.numel()) if _is_tensor(value) else int(np.asarray(value).size)
