"""Which exchange an option's buffers belong to."""

from __future__ import annotations

import numpy as np

from milp_planner.costs.units import IntArray
from milp_planner.inputs.model import Model
from milp_planner.options.choice import SHARDING_TYPES
from milp_planner.options.columns import OptionColumns


def collectives_of(model: Model, columns: OptionColumns) -> tuple[IntArray, tuple[str, ...]]:
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
    kinds: dict[str, int] = {}
    owner = [kinds.setdefault(f"{t.kind}/{t.output}", len(kinds)) for t in model.tables]
    kind = np.array(owner, dtype=np.int64)[columns.table]
    used, index = np.unique(kind * len(SHARDING_TYPES) + columns.sharding, return_inverse=True)
    names = list(kinds)
    labels = [divmod(int(code), len(SHARDING_TYPES)) for code in used]
    index = np.where(columns.is_sharding("data_parallel"), -1, index)
    return index, tuple(f"{names[k]}/{SHARDING_TYPES[s]}" for k, s in labels)
