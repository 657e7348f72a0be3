"""Real dynamicemb tables on a GPU, in every mode: what the profile's dynamicemb curves are for.

Written against NVIDIA/recsys-examples, ``corelib/dynamicemb`` (its own benchmark builds tables the
same way) and not yet run on a GPU.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from milp_planner.features.calibrate.machine import ELEMENT
from milp_planner.features.calibrate.timing import Lap, Probe

ROWS, DIM, IDS = 2**20, 128, 2**18
STATES = 3
"""Values of a row with Adam's two moments, over the row itself."""
ALPHA = 1.05
"""Zipf exponent of the ids, that of the published A10 sweep."""
MOVED_BYTES = 3 * IDS * (8 + 2 * DIM * ELEMENT)
"""Forward, and backward twice that: ids, rows read, rows written."""


def installed() -> bool:
    """Whether dynamicemb can be imported."""
    return find_spec("dynamicemb") is not None


def probe(mode: str, ratio: float, seed: int, device: str = "cuda") -> Probe:
    """Forward and backward of one table.

    Parameters
    ----------
    mode : str
        HBM_ONLY, CACHING, HYBRID or HOST_ONLY.
    ratio : float
        Share of the value bytes in HBM: 1 for HBM_ONLY, 0 for HOST_ONLY.
    seed : int
        Of the ids.
    device : str
    """
    import torch

    table = _table(mode, ratio, torch.device(device))
    offsets = torch.arange(IDS + 1, device=device)
    shares = np.arange(1, ROWS + 1, dtype=np.float64) ** -ALPHA
    cumulated = np.cumsum(shares / shares.sum())

    def prepare(number: int) -> Any:
        draws = np.random.default_rng([seed, number]).random(IDS)
        ranks = np.minimum(np.searchsorted(cumulated, draws), ROWS - 1)
        return torch.from_numpy(ranks).to(device)

    def run(ids: Any, _lap: Lap) -> None:
        output = table(ids, offsets)
        output.backward(torch.ones_like(output))

    for start in range(0, ROWS, IDS):  # training inserts the keys it does not find
        run(torch.arange(start, start + IDS, device=device), lambda _: None)
    return Probe(f"dynamicemb {mode} x={ratio:g}", prepare, run)


def _table(mode: str, ratio: float, device: Any) -> Any:
    """One table whose layout the runtime will choose as ``mode``."""
    import torch
    from dynamicemb import (  # type: ignore[import-not-found]
        DynamicEmbInitializerArgs,
        DynamicEmbInitializerMode,
        DynamicEmbPoolingMode,
        DynamicEmbTableOptions,
        EmbOptimType,
    )
    from dynamicemb.batched_dynamicemb_tables import (  # type: ignore[import-not-found]
        BatchedDynamicEmbeddingTablesV2,
    )

    options = DynamicEmbTableOptions(
        index_type=torch.int64,
        embedding_dtype=torch.float32,
        dim=DIM,
        max_capacity=ROWS,
        local_hbm_for_values=int(ROWS * DIM * ELEMENT * STATES * ratio),
        bucket_capacity=128,
        initializer_args=DynamicEmbInitializerArgs(mode=DynamicEmbInitializerMode.NORMAL),
        caching=mode == "CACHING",
    )
    return BatchedDynamicEmbeddingTablesV2(
        table_options=[options],
        table_names=["calibration"],
        pooling_mode=DynamicEmbPoolingMode.NONE,
        output_dtype=torch.float32,
        device=device,
        optimizer=EmbOptimType.ADAM,
        learning_rate=1e-6,
    )
