"""dynamicemb tables inside TorchRec's planner, chosen together with the ordinary ones.

Neither dynamicemb nor TorchEasyRec is imported: their attributes used here are listed in
:mod:`~milp_planner.integrations.torchrec.dynamicemb.marks`.

- ``DynamicEmbEnumerator`` adds the options of dynamicemb tables (mode × cache ratio, row-wise over
  all ranks) to TorchRec's for the others, for use without TorchEasyRec.
- TorchEasyRec's own enumerator yields such options itself; give it to ``MilpShardingPlanner``.
- ``decisions`` and ``with_dynamicemb`` express the choice in the runtime's own terms.
"""

from milp_planner.integrations.torchrec.dynamicemb.decided import (
    Decision,
    decisions,
    with_dynamicemb,
    write_options,
)
from milp_planner.integrations.torchrec.dynamicemb.enumerator import (
    DynamicEmbEnumerator,
    torcheasyrec_efficiency,
)

__all__ = [
    "Decision",
    "DynamicEmbEnumerator",
    "decisions",
    "torcheasyrec_efficiency",
    "with_dynamicemb",
    "write_options",
]
