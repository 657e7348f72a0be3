"""Placements as text, to be sent between processes."""

from __future__ import annotations

import json

import numpy as np

from formulations.result.placement import Placement


def told(placement: Placement) -> str:
    """Write a placement as compact text; :func:`heard` reads it."""
    ranks = [placement.to_lists(table) for table in range(len(placement.options))]
    return json.dumps([placement.options.tolist(), ranks], separators=(",", ":"))


def heard(text: str) -> Placement:
    """Read a placement that :func:`told` wrote."""
    options, ranks = json.loads(text)
    return Placement(
        np.asarray(options, dtype=np.int64),
        [[np.asarray(block, dtype=np.int64) for block in table] for table in ranks],
    )
