"""Stand-ins for what the adapter reads of dynamicemb and TorchEasyRec, field by field.

Names, defaults and rules are those of NVIDIA/recsys-examples main 43465aea and
alibaba/TorchEasyRec master 54cac316; neither can be installed where these tests run.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption, Storage
from torchrec.distributed.types import CacheParams
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim import RowWiseAdagrad
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from .models import Case, topology


@dataclass
class DynamicEmbTableOptions:
    """The fields that a plan reads, with dynamicemb's defaults."""

    caching: bool = False
    index_type: Any = torch.int64
    score_strategy: str = "TIMESTAMP"
    external_storage: str | None = None
    admit_strategy: Any = None
    training: bool = True


def mixed_case(
    shapes: dict[str, tuple[int, int]],
    constraints: dict[str, ParameterConstraints],
    hbm: int,
    ddr: int = 2**33,
    hosts: tuple[int, int] = (1, 2),
) -> Case:
    """A pooled collection under row-wise Adagrad: tables by name, some of them dynamicemb's."""
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


TENTHS = tuple((i + 1) / 10 for i in range(10))


class TorchEasyRecEnumerator(EmbeddingEnumerator):
    """TorchEasyRec's options of a dynamicemb table: {HYBRID, CACHING} × tenths, its own floats."""

    def __init__(
        self, *given: Any, dynamic: dict[str, Any], factors: Sequence[float] = TENTHS, **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self.dynamic, self.factors = dynamic, factors

    def enumerate(self, module: Any, sharders: Any) -> list[ShardingOption]:
        """TorchRec's options, those of dynamicemb tables replaced by their variants."""
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
            for factor in self.factors:
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
