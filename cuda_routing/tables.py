"""Per-feature constants as the compiled paths read them: ``struct Feature`` of ``rule.h``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuda_routing.features import Features

M64 = (1 << 64) - 1


def magic(divisor: int) -> int:
    """Barrett multiplier floor((2**64 − 1) / divisor)."""
    return M64 // divisor


def rule_table(features: Features) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Constants of each feature, and the custom boundaries.

    Returns
    -------
    table : array of uint64 [T, 5]
        Rule, block size, last key in range (saturated), multiplier of the block size, and 1 + row
        of the boundaries (0: none).
    edges : array of uint64 [number of custom boundaries, P + 1]
    """
    table = np.zeros((features.count, 5), np.uint64)
    rims = []
    for feature, code in enumerate(features.rules):
        block, edges = int(features.block_sizes[feature]), features.boundaries[feature]
        last = max(min(block * features.ranks, M64 + 1), 1) - 1
        if edges is not None:
            rims.append(edges)
        row = 0 if edges is None else len(rims)
        table[feature] = (int(code), block, last, magic(block) if block else 0, row)
    return table, np.array(rims, np.uint64).reshape(len(rims), features.ranks + 1)
