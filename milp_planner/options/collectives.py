"""Which exchange an option's buffers belong to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from milp_planner.costs.units import IntArray
from milp_planner.inputs.model import Model
from milp_planner.options.choice import Choice


def collectives_of(
    model: Model, choices: Sequence[Choice], table: IntArray
) -> tuple[IntArray, tuple[str, ...]]:
    """One collective for each library, kind of output and sharding type.

    TorchRec exchanges the outputs of all tables of a module that share a sharding type in one
    call; a replicated table exchanges none.

    Returns
    -------
    index : int64 array [options]
        −1 for none.
    names : tuple of str
        Such as ``torchrec/sequence/row_wise``.
    """
    index = np.full(len(choices), -1, dtype=np.int64)
    names: dict[str, int] = {}
    kinds = [f"{t.kind}/{t.output}" for t in model.tables]
    for option, (choice, owner) in enumerate(zip(choices, table.tolist(), strict=True)):
        if choice.sharding != "data_parallel":
            name = f"{kinds[owner]}/{choice.sharding}"
            index[option] = names.setdefault(name, len(names))
    return index, tuple(names)
