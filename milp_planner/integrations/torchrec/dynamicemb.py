"""Options of dynamicemb tables in TorchRec's planner: recognised, named, and fused with others.

TorchEasyRec's enumerator yields them, marked with ``use_dynamicemb``; of their
``dynamicemb_options`` (dynamicemb's ``DynamicEmbTableOptions``) ``caching`` is read, and where
there, what the runtime fuses by. Neither package is imported.

References
----------
NVIDIA/recsys-examples (main 43465aea), ``corelib/dynamicemb/dynamicemb_config.py``;
alibaba/TorchEasyRec (master 54cac316), ``tzrec/utils/plan_util.py``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from torchrec.distributed.planner.types import ShardingOption

FusionRule = Literal["honoured", "free"]

_KEY = ("training", "external_storage", "index_type", "dist_type", "score_strategy")
_FINEST = 1000
"""Cache ratios are told apart down to one part in so many."""


def is_dynamic(option: ShardingOption) -> bool:
    """Whether an option is a dynamicemb table's."""
    return bool(getattr(option, "use_dynamicemb", False))


def caches(option: ShardingOption) -> bool:
    """Whether it is a dynamicemb table's with a cache over a host store of all rows."""
    return is_dynamic(option) and bool(option.dynamicemb_options.caching)


def _ratio_of(option: ShardingOption) -> Fraction:
    """Share of the rows whose values are in HBM; none set means all, as in TorchEasyRec."""
    factor = option.cache_load_factor
    return Fraction(1) if factor is None else Fraction(factor).limit_denominator(_FINEST)


def _mode_of(option: ShardingOption) -> str:
    """HBM_ONLY at ratio 1, HOST_ONLY at 0, else CACHING or HYBRID."""
    ratio = _ratio_of(option)
    if ratio >= 1:
        return "HBM_ONLY"
    if option.dynamicemb_options.caching:
        return "CACHING"
    return "HYBRID" if ratio > 0 else "HOST_ONLY"


def label(option: ShardingOption) -> str:
    """``row_wise/MODE/ratio``; HBM_ONLY in the group that caches is told apart."""
    mode = _mode_of(option)
    if mode == "HBM_ONLY":
        more = "/caching" if option.dynamicemb_options.caching else ""
        return f"{option.sharding_type}/{mode}{more}"
    return f"{option.sharding_type}/{mode}/{float(_ratio_of(option)):g}"


def fusion(option: ShardingOption) -> tuple[str, int]:
    """Group and level: tables whose grouped keys agree get one share of HBM from the runtime.

    References
    ----------
    NVIDIA/recsys-examples, ``corelib/dynamicemb``: grouped key of batched tables. Tables of
    different modules, or pooled and weighted otherwise, never meet in one.
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
        "optimizer": _optimizer_of(option),
        "pooled": option.is_pooled,
        "weighted": option.is_weighted,
    }
    name = "dynamicemb[" + ",".join(f"{key}={value}" for key, value in fields.items()) + "]"
    return name, round(_ratio_of(option) * _FINEST * _FINEST)


def _optimizer_of(option: ShardingOption) -> str:
    """The optimizer that runs in the backward pass, lower case; ``none`` without one."""
    [kind, *_] = getattr(option.tensor, "_optimizer_classes", None) or [None]
    return "none" if kind is None else str(kind.__name__).lower()
