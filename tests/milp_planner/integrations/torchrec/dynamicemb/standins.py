"""Stand-ins for the parts of dynamicemb and TorchEasyRec that the adapter reads.

Names, defaults and rules are those of NVIDIA/recsys-examples main 43465aea and alibaba/TorchEasyRec
master 54cac316; neither can be installed where these tests run.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import torch
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption, Storage
from torchrec.distributed.types import CacheParams, CacheStatistics, ParameterSharding
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim import RowWiseAdagrad
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from ..models import Case, topology


@dataclass
class KVCounter:
    """dynamicemb's counter of an admission strategy."""

    capacity: int
    bucket_capacity: int = 1024


@dataclass
class DynamicEmbTableOptions:
    """The fields that a plan reads or sets, with dynamicemb's defaults."""

    caching: bool = False
    local_hbm_for_values: int = 0
    global_hbm_for_values: int = 0
    max_capacity: int | None = None
    bucket_capacity: int = 128
    dim: int | None = None
    index_type: Any = torch.int64
    score_strategy: str | tuple[str, ...] = "TIMESTAMP"
    external_storage: str | None = None
    admit_strategy: Any = None
    admission_counter: KVCounter | None = None
    training: bool = True


@dataclass
class DynamicEmbParameterConstraints(ParameterConstraints):
    """dynamicemb's constraints: TorchRec's with two more fields."""

    use_dynamicemb: bool | None = False
    dynamicemb_options: DynamicEmbTableOptions = field(default_factory=DynamicEmbTableOptions)


@dataclass
class DynamicEmbParameterSharding(ParameterSharding):
    """dynamicemb's sharding: TorchRec's with the options."""

    dynamicemb_options: DynamicEmbTableOptions = field(default_factory=DynamicEmbTableOptions)


class Misses(CacheStatistics):
    """Statistics with a single miss rate below ratio 1."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    @property
    def expected_lookups(self) -> float:
        """Lookups of a step."""
        return 1000.0

    @property
    def cacheability(self) -> float:
        """Not used here."""
        return self.rate

    def expected_miss_rate(self, clf: float) -> float:
        """The single miss rate."""
        return self.rate


def dynamic(ratio: float | None = None, **options: Any) -> DynamicEmbParameterConstraints:
    """The constraint of a dynamicemb table."""
    return DynamicEmbParameterConstraints(
        use_dynamicemb=True,
        dynamicemb_options=DynamicEmbTableOptions(**options),
        cache_params=None if ratio is None else CacheParams(load_factor=ratio),
    )


def mixed_case(
    shapes: dict[str, tuple[int, int]],
    constraints: dict[str, ParameterConstraints],
    hbm: int,
    ddr: int = 2**33,
    hosts: tuple[int, int] = (1, 2),
) -> Case:
    """A pooled collection with row-wise Adagrad, some of whose tables are dynamicemb's."""
    tables = [
        EmbeddingBagConfig(
            name=name, num_embeddings=rows, embedding_dim=dim, feature_names=[f"f_{name}"]
        )
        for name, (rows, dim) in shapes.items()
    ]
    module = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
    apply_optimizer_in_backward(RowWiseAdagrad, module.parameters(), {"lr": 0.1})
    board = topology(hosts[0] * hosts[1], hosts[1], hbm=hbm, ddr=ddr)
    return Case(module, board, constraints, batch_size=256, reserve=0.0)


class TorchEasyRecEnumerator(EmbeddingEnumerator):
    """TorchEasyRec's options of a dynamicemb table: {HYBRID, CACHING} × tenths, its own floats."""

    def __init__(self, *given: Any, dynamic: dict[str, Any], **more: Any) -> None:
        super().__init__(*given, **more)
        self.dynamic = dynamic

    def enumerate(self, module: Any, sharders: Any) -> list[ShardingOption]:
        """TorchRec's options, with those of each dynamicemb table replaced by twenty variants."""
        found = []
        for option in super().enumerate(module, sharders):
            if option.name not in self.dynamic:
                found.append(option)
            elif (option.sharding_type, option.compute_kernel) == ("row_wise", "fused"):
                found += self._variants(option)
        return found

    def _variants(self, base: Any) -> list[Any]:
        variants = []
        for caching in (False, True):
            for factor in [(i + 1) / 10 for i in range(10)]:
                option = copy.deepcopy(base)
                option.use_dynamicemb = True
                option.dynamicemb_options = copy.deepcopy(self.dynamic[base.name])
                option.dynamicemb_options.caching = caching
                option.compute_kernel = "customized_kernel"
                option.cache_params = CacheParams(load_factor=factor)
                for shard in option.shards:
                    rows, dim = shard.size
                    value = 16 * math.ceil(math.ceil(dim * (1 + 1 / dim) * 4) / 16)
                    slots = max(16, 16 * math.ceil(rows / 16))
                    hbm = math.ceil(slots * (value * factor + 17 + 4 / 128))
                    shard.storage = Storage(
                        hbm=hbm, ddr=math.ceil(slots * value * (1 if caching else 1 - factor))
                    )
                    shard.perf.fwd_compute *= 10 / (0.3 + 0.7 * factor - 0.1 * (not caching))
                variants.append(option)
        return variants


def runtime_share(tables: Sequence[tuple[DynamicEmbTableOptions, int]]) -> Fraction:
    """The share of HBM that the runtime gives every fused table, from (options, bytes of a row)."""
    hbm = sum(options.local_hbm_for_values for options, _ in tables)
    total = sum(int(options.max_capacity or 0) * row for options, row in tables)
    return min(Fraction(hbm, total), Fraction(1))
