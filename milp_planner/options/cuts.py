"""How the columns of a table may be cut."""

from __future__ import annotations

import math
from collections.abc import Iterator

COLUMN_STEP = 4
"""Columns of a shard come in multiples of this (FBGEMM reads rows as vectors of four)."""
LEAST_WIDTH = 32
"""Narrowest column shard offered unasked: narrower rows cost as much to read."""


def column_cuts(dim: int, allowed: tuple[int, ...] | None) -> Iterator[tuple[int, int]]:
    """Legal cuts of a table into columns, as (width, shards), two shards or more.

    Widths are multiples of 4. Asked for by width: those widths, the last shard taking the rest.
    Unasked: for every number of shards that divides the columns or is a power of two, the most
    even cut whose width is at least 32.
    """
    if allowed is not None:
        for width in sorted(set(allowed), reverse=True):
            if width < dim and width % COLUMN_STEP == 0:
                yield width, math.ceil(dim / width)
        return
    for shards in range(2, dim // LEAST_WIDTH + 1):
        if dim % shards and shards & (shards - 1):
            continue
        width = math.ceil(dim / shards / COLUMN_STEP) * COLUMN_STEP
        if width >= LEAST_WIDTH and math.ceil(dim / width) == shards:
            yield width, shards


def is_even(dim: int, width: int, shards: int) -> bool:
    """Whether no narrower legal width gives as many shards."""
    return width == math.ceil(dim / shards / COLUMN_STEP) * COLUMN_STEP
