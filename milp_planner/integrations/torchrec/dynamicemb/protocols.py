"""What is relied upon of dynamicemb and TorchEasyRec, attribute by attribute.

References
----------
NVIDIA/recsys-examples (main 43465aea), ``corelib/dynamicemb``: ``DynamicEmbTableOptions``
(``dynamicemb_config.py``), ``DynamicEmbParameterConstraints`` (``planner/planners.py``),
``KVCounter``. alibaba/TorchEasyRec (master 54cac316), ``tzrec/utils/plan_util.py``: options that
its enumerator marks with ``use_dynamicemb`` and ``dynamicemb_options``.
"""

from __future__ import annotations

from typing import Any, Protocol

KERNEL = "customized_kernel"
"""TorchRec's ``EmbeddingComputeKernel.CUSTOMIZED_KERNEL``, under which dynamicemb tables go."""


class AdmissionCounter(Protocol):
    """dynamicemb's ``KVCounter``."""

    capacity: int
    """Slots on one rank."""
    bucket_capacity: int
    """Slots of one of its buckets."""


class TableOptions(Protocol):
    """dynamicemb's ``DynamicEmbTableOptions``, as far as a plan reads or sets it.

    Read as well, where there: ``index_type``, ``score_strategy``, ``admit_strategy``,
    ``external_storage``, ``dist_type``, ``training`` (what the runtime fuses by).
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
    """dynamicemb's ``DynamicEmbParameterConstraints``: a TorchRec ``ParameterConstraints`` with."""

    use_dynamicemb: bool
    """Whether the table is dynamicemb's."""
    dynamicemb_options: Any
    """Its :class:`TableOptions`."""
    cache_params: Any
    """TorchRec's ``CacheParams``; a ``load_factor`` fixes the cache ratio."""
