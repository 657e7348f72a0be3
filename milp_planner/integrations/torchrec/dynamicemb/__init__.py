"""dynamicemb tables inside TorchRec's planner, chosen together with the ordinary ones.

Neither dynamicemb nor TorchEasyRec is imported: what is relied upon of them is written down in
:mod:`~milp_planner.integrations.torchrec.dynamicemb.protocols`.

- ``DynamicEmbEnumerator`` adds the options of dynamicemb tables (mode × cache ratio, row-wise over
  all ranks) to TorchRec's for the others, where dynamicemb is used without TorchEasyRec.
- TorchEasyRec's own enumerator yields such options itself; give it to ``MilpShardingPlanner``.
- ``decisions`` and ``with_dynamicemb`` say what was chosen in the words of the runtime.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from milp_planner.integrations.torchrec import require_torchrec

if TYPE_CHECKING:
    from milp_planner.integrations.torchrec.dynamicemb.chosen import (
        Decision,
        decisions,
        write_options,
    )
    from milp_planner.integrations.torchrec.dynamicemb.enumerator import DynamicEmbEnumerator
    from milp_planner.integrations.torchrec.dynamicemb.sharding import with_dynamicemb

_HOMES = {
    "Decision": "chosen",
    "DynamicEmbEnumerator": "enumerator",
    "decisions": "chosen",
    "with_dynamicemb": "sharding",
    "write_options": "chosen",
}

__all__ = ["Decision", "DynamicEmbEnumerator", "decisions", "with_dynamicemb", "write_options"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torchrec()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
