"""Pooling factors as real batches have them, for TorchRec's constraints."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from torchrec import KeyedJaggedTensor
from torchrec.distributed.planner.types import ParameterConstraints

from milp_planner.errors import BadInput


def measured_pooling(
    batches: Iterable[KeyedJaggedTensor],
    tables: Iterable[Any],
    constraints: Mapping[str, ParameterConstraints] | None = None,
) -> dict[str, ParameterConstraints]:
    """Constraints with the pooling factors that some batches show.

    A pooling factor is the mean number of ids that a sample has in a feature (for sequence tables
    its mean length). TorchRec wants one for each feature of a table, in the order of its
    ``feature_names``, and plans with 1 where it gets none.

    Parameters
    ----------
    batches : iterable of KeyedJaggedTensor
        Local batches, as one rank gets them.
    tables : iterable of EmbeddingBagConfig or EmbeddingConfig
        As ``embedding_bag_configs()`` or ``embedding_configs()`` of a collection lists them.
    constraints : mapping of table name to ParameterConstraints, optional
        Kept, in copies; only their ``pooling_factors`` are replaced.

    Returns
    -------
    dict of table name to ParameterConstraints

    Raises
    ------
    BadInput
        Without samples, and for a feature that no batch has.
    """
    ids: dict[str, int] = {}
    samples: dict[str, int] = {}
    for batch in batches:
        for key in batch.keys():  # noqa: SIM118 (a KeyedJaggedTensor is no mapping)
            lengths = batch[key].lengths()
            ids[key] = ids.get(key, 0) + int(lengths.sum())
            samples[key] = samples.get(key, 0) + lengths.numel()
    found = {name: copy.copy(limit) for name, limit in (constraints or {}).items()}
    for table in tables:
        missing = [name for name in table.feature_names if not samples.get(name)]
        if missing:
            raise BadInput(
                f"table {table.name!r}: no batch has a sample of feature {missing[0]!r}; found: "
                f"{', '.join(sorted(samples)) or 'no features'}"
            )
        limit = found.setdefault(table.name, ParameterConstraints())
        limit.pooling_factors = [ids[name] / samples[name] for name in table.feature_names]
    return found
