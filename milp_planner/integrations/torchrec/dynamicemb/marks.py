"""How an option of a dynamicemb table is recognised, named, and fused with others.

The protocols list the attributes of dynamicemb and TorchEasyRec that are used.

References
----------
NVIDIA/recsys-examples (main 43465aea), ``corelib/dynamicemb``: ``DynamicEmbTableOptions``
(``dynamicemb_config.py``), ``DynamicEmbParameterConstraints`` (``planner/planners.py``),
``KVCounter``. alibaba/TorchEasyRec (master 54cac316), ``tzrec/utils/plan_util.py``: options that
its enumerator marks with ``use_dynamicemb`` and ``dynamicemb_options``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

from torchrec.distributed.planner.types import ShardingOption

KERNEL = "customized_kernel"
"""TorchRec's ``EmbeddingComputeKernel.CUSTOMIZED_KERNEL``, the kernel of dynamicemb tables."""


class TableOptions(Protocol):
    """dynamicemb's ``DynamicEmbTableOptions``, as far as a plan reads or sets it.

    If present, these are read too: ``index_type``, ``score_strategy``, ``admit_strategy``,
    ``external_storage``, ``dist_type``, ``training`` (the runtime's fusion key), and from
    ``admission_counter``, a ``KVCounter``, the slots ``capacity`` and ``bucket_capacity``.
    """

    bucket_capacity: int
    """Slots of a bucket."""
    caching: bool
    """Whether HBM caches a host store that holds all rows (CACHING), or shares them (HYBRID)."""
    local_hbm_for_values: int
    """Bytes of one rank's HBM for values and optimizer state."""
    global_hbm_for_values: int
    """The same over all ranks."""


class DynamicConstraint(Protocol):
    """dynamicemb's ``DynamicEmbParameterConstraints``, with TorchRec's fields and these."""

    use_dynamicemb: bool
    """Whether the table is dynamicemb's."""
    dynamicemb_options: Any
    """Its :class:`TableOptions`."""
    cache_params: Any
    """TorchRec's ``CacheParams``; a ``load_factor`` fixes the cache ratio."""


_KEY = ("training", "external_storage", "index_type", "dist_type", "score_strategy")
_FINEST = 1000
"""Cache ratios are distinguished to one part in this many."""


def is_dynamic(option: ShardingOption) -> bool:
    """Whether an option is marked as a dynamicemb table's, by our enumerator or TorchEasyRec's."""
    return bool(getattr(option, "use_dynamicemb", False))


def caches(option: ShardingOption) -> bool:
    """Whether an option is a dynamicemb table's, with a cache over a host store of all rows."""
    return is_dynamic(option) and bool(option.dynamicemb_options.caching)


def ratio_of(option: ShardingOption) -> Fraction:
    """Share of the rows whose values are in HBM; if not set, all, as in TorchEasyRec."""
    factor = option.cache_load_factor
    return Fraction(1) if factor is None else Fraction(factor).limit_denominator(_FINEST)


def mode_of(option: ShardingOption) -> str:
    """HBM_ONLY at ratio 1, HOST_ONLY at 0, else CACHING or HYBRID."""
    ratio = ratio_of(option)
    if ratio >= 1:
        return "HBM_ONLY"
    if option.dynamicemb_options.caching:
        return "CACHING"
    return "HYBRID" if ratio > 0 else "HOST_ONLY"


def score_words(options: TableOptions) -> int:
    """Words of a key's score: one, or as many as a compound score strategy, a tuple, has."""
    strategy = getattr(options, "score_strategy", None)
    return len(strategy) if isinstance(strategy, tuple) else 1


def label(option: ShardingOption) -> str:
    """``row_wise/MODE/ratio``, with a suffix for HBM_ONLY in the group that caches."""
    mode = mode_of(option)
    if mode == "HBM_ONLY":
        more = "/caching" if option.dynamicemb_options.caching else ""
        return f"{option.sharding_type}/{mode}{more}"
    return f"{option.sharding_type}/{mode}/{float(ratio_of(option)):g}"


def fusion(option: ShardingOption) -> tuple[str, int]:
    """Group and level: tables whose grouped keys agree get one share of HBM from the runtime.

    Source: NVIDIA/recsys-examples, ``corelib/dynamicemb``, grouped key of batched tables. Tables of
    different modules, or with different pooling or weighting, are never in one group.
    """
    options = option.dynamicemb_options
    fields: dict[str, object] = {name: getattr(options, name, None) for name in _KEY}
    admit = getattr(options, "admit_strategy", None)
    tensor = option.tensor
    fields |= {
        "caching": bool(options.caching),
        "admit_strategy": None if admit is None else type(admit).__name__,
        "module": option.path,
        "dim": int(tensor.shape[1]),
        "dtype": tensor.dtype,
        "optimizer": optimizer_of(option),
        "pooled": option.is_pooled,
        "weighted": option.is_weighted,
    }
    name = "dynamicemb[" + ",".join(f"{key}={value}" for key, value in fields.items()) + "]"
    return name, round(ratio_of(option) * _FINEST * _FINEST)


def optimizer_of(option: ShardingOption) -> str:
    """Name of the optimizer that runs in the backward pass: none, sgd, adam, …"""
    [kind, *_] = getattr(option.tensor, "_optimizer_classes", None) or [None]
    if kind is None:
        return "none"
    name = str(kind.__name__).lower()
    return {"rowwiseadagrad": "rowwise_adagrad"}.get(name, name)
