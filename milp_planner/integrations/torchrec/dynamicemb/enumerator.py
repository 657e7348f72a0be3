"""TorchRec's enumerator with the options of dynamicemb tables: mode × cache ratio, row-wise."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from torch import nn
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.shard_estimators import EmbeddingPerfEstimator
from torchrec.distributed.planner.types import (
    ParameterConstraints,
    ShardEstimator,
    ShardingOption,
    Storage,
    Topology,
)
from torchrec.distributed.types import (
    CacheParams,
    CacheStatistics,
    ModuleSharder,
)

from milp_planner.errors import BadInput
from milp_planner.inputs.model import StorageModel
from milp_planner.integrations.torchrec.dynamicemb.marks import (
    KERNEL,
    DynamicConstraint,
    TableOptions,
    optimizer_of,
    ratio_of,
    score_words,
)
from milp_planner.integrations.torchrec.rating import OncePerSize
from milp_planner.pricing import lookup
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.runtimes import torcheasyrec
from milp_planner.pricing.runtimes.torcheasyrec import planner_value_bytes, torcheasyrec_tiers
from milp_planner.pricing.storage import (
    TierBytes,
    admission_counter,
    runtime_tiers,
    runtime_value_bytes,
)


@dataclass(frozen=True)
class Rows:
    """The part of a table on one rank."""

    rows: int
    dim: int
    element_bytes: int
    optimizer: str
    """As :func:`milp_planner.integrations.torchrec.dynamicemb.marks.optimizer_of`."""


def table_bytes(
    held: Rows, options: TableOptions, ratio: Fraction, caching: bool, model: StorageModel
) -> tuple[int, int]:
    """HBM and DDR of one rank's rows, keys, scores and admission counter; no buffers.

    ``ratio`` is the share of the values in HBM, 0 to 1; ``model`` selects the runtime's allocation
    or TorchEasyRec's count.
    """
    tiers: Callable[..., TierBytes] = torcheasyrec_tiers
    value = planner_value_bytes
    if model == "runtime":
        stored = getattr(options, "external_storage", None) is not None
        outside = np.array(stored and (ratio == 0 or (caching and ratio < 1)))
        tiers = partial(runtime_tiers, score_words=score_words(options), outside=outside)
        value = runtime_value_bytes
    found = tiers(
        _array(held.rows),
        _array(value(held.dim, held.element_bytes, held.optimizer)),
        _array(options.bucket_capacity),
        (_array(ratio.numerator), _array(ratio.denominator)),
        np.array(caching and (ratio < 1 or model == "torcheasyrec")),
    )
    return int(found.hbm) + counter_bytes(options), int(found.ddr)


def counter_bytes(options: TableOptions) -> int:
    """HBM of the admission counter on one rank, with its own bucket size; 0 without one."""
    counter = getattr(options, "admission_counter", None)
    if counter is None:
        return 0
    return admission_counter(counter.capacity, counter.bucket_capacity)


@cache
def _published() -> Profile:
    return load_profile("torchrec-default")


def efficiency(ratio: Fraction, caching: bool, stats: CacheStatistics | None = None) -> float:
    """Share x_eff of HBM's bandwidth that a lookup reaches, by profile ``torchrec-default``.

    It is 1 at ratio 1, where the runtime uses another kernel; otherwise it follows the law of the
    tiers at the hit ratio, which is 1 − ``stats.expected_miss_rate(ratio)``, or the ratio itself
    without statistics.
    """
    if ratio >= 1:
        return 1.0
    profile = _published()
    curve = profile.caching if caching else profile.hybrid
    reached = float(lookup.curve_bandwidth(profile, curve, np.array(1.0 - miss(ratio, stats))))
    return (reached - profile.host_link) / (profile.hbm - profile.host_link)


def torcheasyrec_efficiency(
    ratio: Fraction, caching: bool, stats: CacheStatistics | None = None
) -> float:
    """The same by the rules of TorchEasyRec's planner; given statistics override them."""
    x = np.array(float(ratio))
    if stats is not None:
        return float(torcheasyrec.measured(x, np.array(miss(ratio, stats)), "torcheasyrec"))
    return float(torcheasyrec.fitted(x, np.array(caching)))


def miss(ratio: Fraction, stats: CacheStatistics | None) -> float:
    """Share of the lookups that a cache of this ratio misses, from 0 to 1."""
    expected = 1.0 - float(ratio) if stats is None else stats.expected_miss_rate(float(ratio))
    return min(max(expected, 0.0), 1.0)


def bandwidth(effective: float, hbm: float, host_link: float) -> float:
    """(x_eff · HBM + (1 − x_eff) · host link) over the kernel's divisor, in the unit of both."""
    mixed = effective * hbm + (1 - effective) * host_link
    return mixed / _published().kernel.dynamicemb_divisor


def _array(value: int) -> np.ndarray:
    return np.array(value, dtype=np.int64)


Effective = Callable[[Fraction, bool, CacheStatistics | None], float]
"""From ratio, caching and statistics to the share of HBM's bandwidth that a lookup reaches."""
TENTHS = tuple(Fraction(tenth, 10) for tenth in range(1, 11))


class DynamicEmbEnumerator(EmbeddingEnumerator):
    """TorchRec's search space, with every dynamicemb table as mode × cache ratio.

    A table whose constraint says ``use_dynamicemb`` gets, in place of TorchRec's options, one with
    ``caching`` off and one with it on at every ratio: row-wise over all ranks, kernel
    ``customized_kernel``, ``cache_params.load_factor`` the ratio, and a copy of its
    ``dynamicemb_options`` with ``caching`` set, as TorchEasyRec's enumerator yields them.
    ``cache_params`` of the constraint are kept in every option, including statistics; a
    ``load_factor`` in them fixes the ratio. A tuple of one element, which TorchEasyRec makes, is
    read as the element.

    HBM and DDR are those of the runtime (or TorchEasyRec's count) with TorchRec's own input and
    output buffers; times are TorchRec's own row-wise formula at the bandwidth of the mode.

    Parameters
    ----------
    topology, batch_size, constraints, estimator
        As in TorchRec; ``estimator`` prices ordinary tables, and buffers of all.
    ratios : sequence of Fraction
        By default tenths, as in TorchEasyRec; 0 adds HOST_ONLY, which TorchEasyRec cannot express.
    effective : callable
        From ratio, caching and statistics (or None) to the share of HBM's bandwidth that a lookup
        reaches: :func:`efficiency`, or :func:`torcheasyrec_efficiency`.

    Raises
    ------
    BadInput
        For ratios outside 0 to 1, and ``cache_params`` of another type.
    """

    def __init__(
        self,
        topology: Topology,
        batch_size: int,
        constraints: Mapping[str, Any] | None = None,
        estimator: ShardEstimator | list[ShardEstimator] | None = None,
        *,
        ratios: Sequence[Fraction] = TENTHS,
        storage: StorageModel = "runtime",
        effective: Effective = efficiency,
    ) -> None:
        given = dict(constraints or {})
        dynamic = {n: c for n, c in given.items() if getattr(c, "use_dynamicemb", False)}
        plain = {name: _plain(c) if name in dynamic else c for name, c in given.items()}
        super().__init__(topology, batch_size, plain, estimator)
        if any(not 0 <= ratio <= 1 for ratio in ratios):
            raise BadInput(f"ratios: found {list(map(str, ratios))}; allowed: from 0 to 1")
        self._board = topology
        self._dynamic: dict[str, DynamicConstraint] = dynamic
        self._params = {name: _cache_params(name, c.cache_params) for name, c in dynamic.items()}
        self._ratios, self._model, self._effective = tuple(ratios), storage, effective

    def enumerate(
        self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> list[ShardingOption]:
        """All options, estimates populated; ordinary tables first.

        TorchRec's RuntimeError if a sharder of a dynamicemb table offers no row-wise sharding.
        """
        space = super().enumerate(module, sharders)
        bases = [option for option in space if option.name in self._dynamic]
        buffers = self._buffers(bases)
        found = [option for option in space if option.name not in self._dynamic]
        variants = [
            variant
            for base, buffer in zip(bases, buffers, strict=True)
            for variant in self._variants(base, buffer)
        ]
        self._price(variants)
        return found + variants

    def _buffers(self, bases: Sequence[ShardingOption]) -> list[int]:
        """HBM for input and output of one rank's shard, without its rows.

        TorchRec counts no buffers for an empty shard; its HBM is linear in the rows, so the value
        for no rows is extrapolated from one and two rows.
        """
        one, two = ([_with_rows(base, rows) for base in bases] for rows in (1, 2))
        if bases:
            self.populate_estimates(one + two)
        return [2 * _hbm(a) - _hbm(b) for a, b in zip(one, two, strict=True)]

    def _variants(self, base: ShardingOption, buffer: int) -> Iterator[ShardingOption]:
        constraint = self._dynamic[base.name]
        params = self._params[base.name]
        fixed = params.load_factor
        ratios = self._ratios if fixed is None else (Fraction(fixed).limit_denominator(1000),)
        for caching in (False, True):
            for ratio in ratios:
                if caching and ratio == 0:
                    continue  # a cache without HBM is an error of the runtime
                option: Any = copy.deepcopy(base)
                option.use_dynamicemb = True
                option.dynamicemb_options = copy.deepcopy(constraint.dynamicemb_options)
                option.dynamicemb_options.caching = caching
                option.compute_kernel = KERNEL
                option.cache_params = replace(params, load_factor=float(ratio))
                hbm, ddr = table_bytes(
                    rows_of(option), option.dynamicemb_options, ratio, caching, self._model
                )
                for shard in option.shards:
                    shard.storage = Storage(hbm=hbm + buffer, ddr=ddr)
                yield option

    def _price(self, variants: Sequence[Any]) -> None:
        """Set TorchRec's estimate of a fused row-wise table in memory as fast as the mode's."""
        at: dict[float, list[Any]] = {}
        for option in variants:
            share = self._effective(
                ratio_of(option), option.dynamicemb_options.caching, option.cache_params.stats
            )
            speed = bandwidth(share, self._board.hbm_mem_bw, self._board.hbm_to_ddr_mem_bw)
            at.setdefault(speed, []).append(option)
        for speed, options in at.items():
            board = copy.copy(self._board)
            board._hbm_mem_bw = speed
            estimator = OncePerSize(
                EmbeddingPerfEstimator(topology=board, constraints=self._constraints)
            )
            fused = [_as_fused(option) for option in options]
            estimator.estimate(fused, self._sharder_data_map)
            for option, priced in zip(options, fused, strict=True):
                for shard, other in zip(option.shards, priced.shards, strict=True):
                    shard.perf = other.perf


def rows_of(option: ShardingOption) -> Rows:
    """The part on every rank: the rows of the first shard, the fullest."""
    rows, dim = option.shards[0].size
    return Rows(int(rows), int(dim), option.tensor.element_size(), optimizer_of(option))


def _as_fused(option: ShardingOption) -> ShardingOption:
    """The option in a form that TorchRec's estimator knows, with shards of its own."""
    fused = copy.copy(option)
    fused.compute_kernel, fused.cache_params = "fused", None
    fused.shards = [copy.copy(shard) for shard in option.shards]
    return fused


def _cache_params(name: str, given: Any) -> CacheParams:
    """A constraint's; BadInput for anything but ``CacheParams``, alone or in a tuple of one.

    A stray comma in TorchEasyRec's ``build_dynamicemb_constraints`` makes a tuple of them. Without
    unwrapping, that would turn a fixed ratio into a sweep.
    """
    found = given[0] if isinstance(given, tuple) and len(given) == 1 else given
    if found is None:
        return CacheParams()
    if not isinstance(found, CacheParams):
        raise BadInput(
            f"table {name!r}: cache_params: found {type(found).__name__}; allowed: CacheParams"
        )
    return found


def _plain(constraint: Any) -> ParameterConstraints:
    """TorchRec's part of a constraint, changed so that TorchRec enumerates one row-wise option."""
    kept = {field.name: getattr(constraint, field.name) for field in fields(ParameterConstraints)}
    kept |= {"sharding_types": ["row_wise"], "compute_kernels": ["fused"], "cache_params": None}
    return ParameterConstraints(**kept)


def _with_rows(base: ShardingOption, rows: int) -> ShardingOption:
    option = copy.deepcopy(base)
    del option.shards[1:]
    option.shards[0].size = [rows, option.shards[0].size[1]]
    return option


def _hbm(option: ShardingOption) -> int:
    storage = option.shards[0].storage
    assert storage is not None, "TorchRec's storage estimator sets it"
    return int(storage.hbm)
